package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// relation is a table as the catalog has it.
type relation struct {
	oid, schema, name string
	identity          string // oid/relfilenode: DROP changes the first, TRUNCATE the second
	persistence       string // p(ermanent), u(nlogged) or t(emporary)
	kind              string // r: a table, p: a partitioned one
	comment           string
	mayInsert         bool
}

// locate finds the target table; nil if there is none.
func (r *ready) locate(ctx context.Context, c *pgconn.PgConn) (*relation, error) {
	if r.flavour == redshift {
		return r.locateRedshift(ctx, c)
	}
	found, err := rowsOf(ctx, c, "SELECT c.oid, c.relfilenode, n.nspname, c.relname, c.relpersistence, c.relkind, "+
		"obj_description(c.oid, 'pg_class'), has_table_privilege(c.oid, 'INSERT') "+
		"FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass("+literal(r.Table)+")")
	if err != nil {
		return nil, failed("look for table "+r.Table, err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	row := found[0]
	return &relation{
		oid: row[0], identity: row[0] + "/" + row[1], schema: row[2], name: row[3], persistence: row[4], kind: row[5],
		comment: row[6], mayInsert: row[7] == "t",
	}, nil
}

// fits checks that the table takes the schema's rows as the run will send them.
func (r *ready) fits(ctx context.Context, c *pgconn.PgConn, found *relation, p loader.Preparation) error {
	refuse := func(hint, format string, values ...any) error {
		return &loader.Error{
			Op: fmt.Sprintf("check table %s.%s", found.schema, found.name), Applied: loader.No,
			Err: fmt.Errorf(format, values...), Hint: hint,
		}
	}
	switch {
	case found.kind != "r" && found.kind != "p":
		return refuse("choose another --table", "it is a view or a foreign table")
	case found.persistence == "t":
		return refuse("choose another --table", "it is temporary: each session has its own")
	case !found.mayInsert:
		return refuse(fmt.Sprintf("GRANT SELECT, INSERT ON %s TO %s", qualified(found.schema, found.name), grantee(c)),
			"this user may not insert")
	case r.options.unlogged && found.persistence != "u":
		return refuse("leave the option away, or use --create recreate", "it is logged, but option %s was given", optionUnlogged)
	}
	if err := r.columnsFit(ctx, c, found, refuse); err != nil {
		return err
	}
	return r.keyFits(ctx, c, found, p, refuse)
}

type refusal = func(hint, format string, values ...any) error

// columnsFit compares by name and type: binary COPY converts nothing. More columns are fine where the server can fill
// them itself.
func (r *ready) columnsFit(ctx context.Context, c *pgconn.PgConn, found *relation, refuse refusal) error {
	identity := " AND attidentity = ''"
	if r.flavour == redshift { // where an identity is a default
		identity = ""
	}
	columns, err := rowsOf(ctx, c, "SELECT attname, format_type(atttypid, NULL), format_type(atttypid, atttypmod), "+
		"attnotnull AND NOT atthasdef"+identity+" FROM pg_attribute "+
		"WHERE attnum > 0 AND NOT attisdropped AND attrelid = "+found.oid+" ORDER BY attnum")
	if err != nil {
		return failed("read the columns of "+r.Table, err)
	}
	var want, have, needed []string
	missing := 0
	for _, w := range r.Schema.Columns {
		want = append(want, w.Name+" "+r.columnType(w))
		if !slices.ContainsFunc(columns, func(h []string) bool { return h[0] == w.Name && r.takes(h[1], h[2], w) }) {
			missing++
		}
	}
	for _, h := range columns {
		have = append(have, h[0]+" "+h[2])
		if h[3] == "t" && !slices.Contains(r.Schema.Names(), h[0]) {
			needed = append(needed, h[0])
		}
	}
	switch {
	case missing > 0:
		return refuse("choose another --table, or use --create recreate", "its columns are (%s), the dataset's (%s)",
			strings.Join(have, ", "), strings.Join(want, ", "))
	case len(needed) > 0:
		return refuse("give them a default", "it needs values for %s, which the dataset does not have", strings.Join(needed, ", "))
	}
	return nil
}

// takes tells whether a column of the server takes values of ours in every format, and as they are. bare is its type,
// full the same with length or precision.
func (s statements) takes(bare, full string, want rows.Column) bool {
	switch {
	case want.Type == rows.Decimal: // numeric of another scale would round, or be read back otherwise
		return full == s.columnType(want)
	case want.Type == rows.Timestamp: // one of fewer digits would round
		return full == s.columnType(want) || full == "timestamp(6) without time zone"
	case s.flavour == redshift && want.Type.Variable():
		var have int
		_, _ = fmt.Sscanf(strings.TrimPrefix(full, bare), "(%d)", &have)
		kind, _, _ := strings.Cut(s.columnType(want), "(")
		return kind == bare && have >= max(want.MaxBytes, 1)
	}
	return bare == s.columnType(want) || want.Type == rows.Text && bare == "character varying"
}

// keyFits checks the primary key where one was asked for. Finding a batch's rows by their keys rests on it, and on
// there being no second index, which YugabyteDB updates in transactions of its own.
func (r *ready) keyFits(ctx context.Context, c *pgconn.PgConn, found *relation, p loader.Preparation, refuse refusal) error {
	if r.flavour == redshift && p.PrimaryKey {
		return refuse("leave --primary-key away", "a primary key was asked for, and Redshift enforces none")
	}
	ranged := p.Contract.Dedup == loader.DedupRange
	if !ranged && !p.PrimaryKey {
		return nil
	}
	indexes, err := rowsOf(ctx, c, "SELECT i.indisprimary, (SELECT string_agg(a.attname, ', ' "+
		"ORDER BY array_position(CAST(i.indkey AS int2[]), a.attnum)) FROM pg_attribute a "+
		"WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)) FROM pg_index i WHERE i.indrelid = "+found.oid)
	if err != nil {
		return failed("read the indexes of "+r.Table, err)
	}
	key := strings.Join(keyNames(r.Schema), ", ")
	keyed := slices.ContainsFunc(indexes, func(row []string) bool { return row[0] == "t" && row[1] == key })
	switch {
	case ranged && (!keyed || len(indexes) > 1):
		return refuse("make it so, or leave the option away",
			"option %s needs a table whose only index is %s", optionRowsPerTransaction, r.primary())
	case !keyed:
		return refuse("add it, or use --create recreate", "a primary key was asked for, and its is not (%s)", key)
	}
	return nil
}

// keyNames are the columns that a key is made of, as the catalog has them.
func keyNames(s rows.Schema) []string {
	names := make([]string, len(s.Number))
	for i, t := range s.Number {
		names[i] = s.Columns[t.Column].Name
	}
	return names
}
