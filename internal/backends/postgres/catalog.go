package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// catalog asks the server's catalog about the target table.
type catalog struct{ *opened }

// traits are what Fits wants to know of a relation beside its columns.
const (
	traitPersistence = iota // p(ermanent), u(nlogged) or t(emporary)
	traitMayInsert          // t or f
)

// Plan implements sqlload.Catalog.
func (l catalog) Plan(p loader.Preparation) sqlload.Statements {
	name := l.tableName(p.Schema)
	s := plannedStatements(name, p.Schema, l.flavour, l.options.unlogged)
	if l.flavour != redshift {
		s.OtherClaims = claimsTable(schemaOf(name), !l.options.unlogged)
	}
	return s
}

// tableName is the table as the target gives it: schema.name, or a name alone.
func (l *opened) tableName(s rows.Schema) string {
	if l.target.Table == "" {
		return s.Dataset
	}
	return l.target.Table
}

// statements are those about the table that Prepare has settled, or is about to.
func (l *opened) statements(s *sqlload.State) statements {
	st := statements{
		Statements: s.Statements, method: l.method, options: l.options, flavour: l.flavour,
		unlogged:   l.options.unlogged,
		primaryKey: s.Want.PrimaryKey || s.Want.Contract.Dedup == loader.DedupRange,
	}
	if s.Relation != nil && s.Want.Create != loader.CreateRecreate {
		st.unlogged = s.Relation.Traits[traitPersistence] == "u"
	}
	return st
}

// Locate implements sqlload.Catalog. DROP changes the first part of the identity, and TRUNCATE the second.
func (l catalog) Locate(ctx context.Context, c sqlload.Conn, s *sqlload.State) (*sqlload.Relation, error) {
	query := "SELECT c.oid, c.relfilenode, n.nspname, c.relname, c.relkind, obj_description(c.oid, 'pg_class'), " +
		"c.relpersistence, has_table_privilege(c.oid, 'INSERT') " +
		"FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(" + sqlload.Literal(s.Table) + ")"
	if l.flavour == redshift { // what the catalog calls file node is none
		if s.Want.PrimaryKey {
			return nil, refuse("leave --primary-key away", "a primary key was asked for, and Redshift enforces none")
		}
		query = "SELECT c.oid, 0, n.nspname, c.relname, c.relkind, obj_description(c.oid, 'pg_class'), 'p', " +
			"has_table_privilege(c.oid, 'INSERT') " + fromCatalog(s.Table)
	}
	found, err := sqlload.Rows(ctx, c, query)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	row := found[0]
	r := &sqlload.Relation{
		ID: row[0], Identity: row[0] + "/" + row[1], Schema: row[2], Name: row[3], Comment: row[5], Traits: row[6:],
		Table:      qualified(row[2], row[3]),
		Claims:     claimsTable(row[2], row[6] == "u"),
		NextClaims: claimsTable(row[2], l.options.unlogged),
	}
	if l.flavour == redshift {
		r.Identity = r.ID
	}
	if row[4] != "r" && row[4] != "p" { // a table, a partitioned one
		r.Kind = "view or a foreign table"
	}
	return r, nil
}

// Columns implements sqlload.Catalog.
func (l catalog) Columns(ctx context.Context, c sqlload.Conn, _ *sqlload.State, r *sqlload.Relation) ([]sqlload.Column, error) {
	identity := " OR attidentity <> ''"
	if l.flavour == redshift { // where an identity is a default
		identity = ""
	}
	found, err := sqlload.Rows(ctx, c, "SELECT attname, format_type(atttypid, NULL), format_type(atttypid, atttypmod), "+
		"NOT attnotnull OR atthasdef"+identity+" FROM pg_attribute "+
		"WHERE attnum > 0 AND NOT attisdropped AND attrelid = "+r.ID+" ORDER BY attnum")
	columns := make([]sqlload.Column, len(found))
	for i, row := range found {
		columns[i] = sqlload.Column{
			Name: row[0], Type: row[2], Optional: row[3] == "t",
			Takes: func(want rows.Column) bool { return l.flavour.takes(row[1], row[2], want) },
		}
	}
	return columns, err
}

// takes reports whether a column takes values of ours in every format, and as they are: binary COPY converts nothing. bare
// is its type, full the same with length or precision.
func (f flavour) takes(bare, full string, want rows.Column) bool {
	ours := f.columnType(want)
	switch {
	case want.Type == rows.Decimal: // numeric of another scale would round, or be read back otherwise
		return full == ours
	case want.Type == rows.Timestamp: // one of fewer digits would round
		return full == ours || full == "timestamp(6) without time zone"
	case f == redshift && want.Type.Variable():
		var have int
		_, _ = fmt.Sscanf(strings.TrimPrefix(full, bare), "(%d)", &have)
		kind, _, _ := strings.Cut(ours, "(")
		return kind == bare && have >= max(want.MaxBytes, 1)
	}
	return bare == ours || want.Type == rows.Text && bare == "character varying"
}

// Fits implements sqlload.Catalog.
func (l catalog) Fits(ctx context.Context, c sqlload.Conn, s *sqlload.State, r *sqlload.Relation) error {
	persistence := r.Traits[traitPersistence]
	switch {
	case persistence == "t":
		return refuse("choose another --table", "it is temporary: each session has its own")
	case r.Traits[traitMayInsert] != "t":
		return refuse(fmt.Sprintf("GRANT SELECT, INSERT ON %s TO %s", r.Table, grantee(c)), "this user may not insert")
	case l.options.unlogged && persistence != "u":
		return refuse("leave the option away, or use --create recreate", "it is logged, but option %s was given", optionUnlogged)
	}
	return l.keyFits(ctx, c, s, r)
}

// keyFits checks the primary key where one was asked for. Finding a batch's rows by their keys rests on it, and on there
// being no second index, which YugabyteDB updates in transactions of its own.
func (l catalog) keyFits(ctx context.Context, c sqlload.Conn, s *sqlload.State, r *sqlload.Relation) error {
	ranged := s.Want.Contract.Dedup == loader.DedupRange
	if !ranged && !s.Want.PrimaryKey {
		return nil
	}
	indexes, err := sqlload.Rows(ctx, c, "SELECT i.indisprimary, (SELECT string_agg(a.attname, ', ' "+
		"ORDER BY array_position(CAST(i.indkey AS int2[]), a.attnum)) FROM pg_attribute a "+
		"WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)) FROM pg_index i WHERE i.indrelid = "+r.ID)
	if err != nil {
		return err
	}
	names := make([]string, len(s.Schema.Number))
	for i, t := range s.Schema.Number {
		names[i] = s.Schema.Columns[t.Column].Name
	}
	key := strings.Join(names, ", ")
	keyed := slices.ContainsFunc(indexes, func(row []string) bool { return row[0] == "t" && row[1] == key })
	switch {
	case ranged && (!keyed || len(indexes) > 1):
		return refuse("make it so, or leave the option away",
			"option %s needs a table whose only index is %s", optionRowsPerTransaction, l.statements(s).primary())
	case !keyed:
		return refuse("add it, or use --create recreate", "a primary key was asked for, and its is not (%s)", key)
	}
	return nil
}

func refuse(hint, format string, values ...any) error {
	return &loader.Error{Op: "check the table", Applied: loader.No, Err: fmt.Errorf(format, values...), Hint: hint}
}

// Create implements sqlload.Catalog.
func (l catalog) Create(_ context.Context, _ sqlload.Conn, s *sqlload.State) ([]string, error) {
	st := l.statements(s)
	return []string{st.createTable(), st.markTable()}, nil
}

// Exists implements sqlload.Catalog: table or type exist, or, with IF NOT EXISTS in two sessions at once, the catalog's own
// unique key says so.
func (catalog) Exists(err error) bool {
	return is(err, "42P07") || is(err, "42710") || is(err, "23505")
}

// Grant implements sqlload.Catalog. Where a table that is to be made has no schema, search_path says which it would be.
func (catalog) Grant(ctx context.Context, c sqlload.Conn, privileges, table string) string {
	if !strings.HasPrefix(privileges, "CREATE") {
		return fmt.Sprintf("GRANT %s ON %s TO %s", privileges, table, grantee(c))
	}
	schema, _ := unquoted(table)
	if schema == "" {
		if found, err := sqlload.Rows(ctx, c, "SELECT current_schema()"); err == nil && len(found) == 1 {
			schema = found[0][0]
		}
	}
	return fmt.Sprintf("GRANT CREATE ON SCHEMA %s TO %s", qualified("", schema), grantee(c))
}

// grantee is the user of a connection as GRANT wants it: CURRENT_USER would be whoever grants.
func grantee(c sqlload.Conn) string {
	return qualified("", c.(conn).ParameterStatus("session_authorization"))
}

// Stored implements sqlload.Catalog: the heap with TOAST and indexes.
func (l catalog) Stored(s *sqlload.State) []string {
	if l.flavour == redshift {
		return []string{selectRedshiftSize(s.Table)}
	}
	return []string{"SELECT pg_total_relation_size(" + sqlload.Literal(s.Table) + ")"}
}

func is(err error, code string) bool {
	said := (*pgconn.PgError)(nil)
	return errors.As(err, &said) && said.Code == code
}
