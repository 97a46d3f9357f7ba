package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// catalog implements sqlload.Catalog and sqlload.Claims.
type catalog struct{ *opened }

// The traits of a relation.
const (
	traitPersistence = iota // p(ermanent), u(nlogged) or t(emporary)
	traitMayInsert          // t or f
	traitHasHeirs           // t or f
)

// Plan implements sqlload.Catalog. The target's table is schema.name, or a name alone.
func (l catalog) Plan(p loader.Preparation) sqlload.Statements {
	d, name := l.flavour.dialect(), cmp.Or(l.target.Table, p.Schema.Dataset)
	if l.flavour == yugabyteDB && len(p.Schema.Primary) == 0 { // whose tables are their primary keys
		p.Schema.Primary = p.Schema.NumberNames()
	}
	schema, _, ok := strings.Cut(name, ".")
	if !ok {
		schema = ""
	}
	s := sqlload.Statements{
		Dialect: d, Schema: p.Schema, Table: d.Identifier(name), Claims: claimsTable(schema, l.options.Unlogged),
	}
	if l.flavour != redshift {
		s.OtherClaims = claimsTable(schema, !l.options.Unlogged)
	}
	return s
}

// Locate implements sqlload.Catalog. DROP changes the first part of the identity, and TRUNCATE the second.
func (l catalog) Locate(ctx context.Context, c sqlload.Conn, s *sqlload.State) (*sqlload.Relation, error) {
	about := func(fileNode, persistence string) string {
		return "SELECT c.oid, " + fileNode + ", n.nspname, c.relname, c.relkind, obj_description(c.oid, 'pg_class'), " +
			persistence + ", " + l.may("INSERT", "c.oid", s) + ", " + l.hasHeirs() + " "
	}
	query := about("c.relfilenode", "c.relpersistence") +
		"FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(" + sqlload.Literal(s.Table) + ")"
	if l.flavour == redshift { // relfilenode means nothing there
		if s.Want.PrimaryKey {
			return nil, sqlload.Refuse("omit --primary-key", "a primary key was asked for, and Redshift enforces none")
		}
		query = about("0", "'p'") + fromCatalog(s.Table)
	}
	found, err := sqlload.Rows(ctx, c, query)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	row := found[0]
	r := &sqlload.Relation{
		ID: row[0], Identity: row[0] + "/" + row[1], Schema: row[2], Name: row[3], Comment: row[5], Traits: row[6:],
		Table:      sqlload.Qualified(row[2], row[3]),
		Claims:     claimsTable(row[2], row[6] == "u"),
		NextClaims: claimsTable(row[2], l.options.Unlogged),
	}
	if l.flavour == redshift {
		r.Identity = r.ID
	}
	if r.Traits[traitHasHeirs] == "t" {
		r.Own = "ONLY " + r.Table
	}
	if row[4] != "r" && row[4] != "p" { // a table, a partitioned one
		r.Kind = "view or a foreign table"
	}
	return r, nil
}

// hasHeirs is the condition that tables inherit from table c, whose rows are read through it, and would be counted or
// removed with its own. Those of a partitioned one are its own.
func (l catalog) hasHeirs() string {
	if l.flavour == redshift {
		return "false"
	}
	return "c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid)"
}

// may is the condition that this user has a privilege on all of the rows' columns, which suffices for COPY and INSERT,
// or, where the table has none of them, on some column: what is wrong then is the columns.
// Redshift is asked about the table: its function for columns takes no numbers. Without columns, as when they are only
// listed, any one will do.
func (l catalog) may(privilege, oid string, s *sqlload.State) string {
	if l.flavour == redshift || len(s.Schema.Columns) == 0 {
		return "has_table_privilege(" + oid + ", '" + privilege + "')"
	}
	return "COALESCE((SELECT bool_and(has_column_privilege(attrelid, attnum, '" + privilege + "')) FROM pg_attribute " +
		"WHERE attrelid = " + oid + " AND attname IN (" + sqlload.Literals(s.Schema.Names()) + ")), has_any_column_privilege(" + oid + ", '" + privilege + "'))"
}

// Columns implements sqlload.Catalog. A domain takes what its base type takes, of which its CHECKs are a part, and may
// have a default of its own, and NOT NULL. COPY refuses generated columns; those GENERATED ALWAYS AS IDENTITY it fills,
// and so does our INSERT.
func (l catalog) Columns(ctx context.Context, c sqlload.Conn, _ *sqlload.State, r *sqlload.Relation) ([]sqlload.Column, error) {
	query := selectColumns
	if l.flavour == redshift {
		query = selectRedshiftColumns
	}
	return sqlload.ReadColumns(ctx, c, query+r.ID+" ORDER BY attnum", readType)
}

// AllColumns implements sqlload.Surveyor.
func (l catalog) AllColumns(
	ctx context.Context, c sqlload.Conn, _ *sqlload.State, schema string,
) (map[string][]sqlload.Column, error) {
	question := selectColumns + "target.oid ORDER BY attnum"
	query := strings.NewReplacer("$question", question, "$schema", sqlload.Literal(schema)).Replace(eachTable)
	return sqlload.ReadAllColumns(ctx, c, query, readType)
}

// readType reads the type of a column below its domains.
func readType(column *sqlload.Column, more []string) {
	if len(more) == 0 {
		return
	}
	column.Is = sqlload.ParseType(more[0])
	if labels := more[1]; labels != "" {
		column.Is = sqlload.ServerType{Name: "enum", Labels: strings.Split(labels, "\x01")}
	}
}

const (
	selectColumns = "SELECT attname, format_type(atttypid, atttypmod), NOT (attnotnull OR typnotnull), " +
		"COALESCE(pg_get_expr(adbin, adrelid), typdefault), " +
		// attgenerated is a column of PostgreSQL 12
		"CASE WHEN COALESCE(to_jsonb(a) ->> 'attgenerated', '') <> '' THEN 'stored generated' " +
		"ELSE CASE attidentity WHEN 'a' THEN 'identity always' WHEN 'd' THEN 'identity by default' ELSE '' END END, " +
		"pg_get_expr(adbin, adrelid), col_description(attrelid, attnum), format_type(b.type, b.mod), " +
		"(SELECT string_agg(enumlabel, chr(1) ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = b.type) " +
		"FROM pg_attribute a JOIN pg_type t ON t.oid = atttypid LEFT JOIN pg_attrdef d ON adrelid = attrelid AND adnum = attnum " +
		"CROSS JOIN LATERAL (WITH RECURSIVE b(type, mod) AS (SELECT atttypid, atttypmod " +
		"UNION ALL SELECT typbasetype, typtypmod FROM b JOIN pg_type u ON u.oid = b.type AND typtype = 'd') " +
		"SELECT b.* FROM b JOIN pg_type u ON u.oid = b.type AND typtype <> 'd') b " +
		"WHERE attnum > 0 AND NOT attisdropped AND attrelid = "
	// An identity is a default there.
	selectRedshiftColumns = "SELECT attname, format_type(atttypid, atttypmod), NOT attnotnull, CASE WHEN atthasdef THEN 'a default' END " +
		"FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND attrelid = "
)

// Fits implements sqlload.Catalog.
func (l catalog) Fits(ctx context.Context, c sqlload.Conn, s *sqlload.State, r *sqlload.Relation) error {
	persistence := r.Traits[traitPersistence]
	switch {
	case persistence == "t":
		return sqlload.Refuse("choose another --table", "it is temporary: each session has one of its own")
	case r.Traits[traitMayInsert] != "t":
		return sqlload.Refuse(fmt.Sprintf("GRANT SELECT, INSERT ON %s TO %s", r.Table, grantee(c)),
			"this user may not insert")
	case l.options.Unlogged && persistence != "u":
		return sqlload.Refuse("omit the option, or "+r.Elsewhere(), "it is logged, but option unlogged was given")
	}
	return l.keyFits(ctx, c, s, r)
}

// keyFits checks the primary key where one was asked for.
func (catalog) keyFits(ctx context.Context, c sqlload.Conn, s *sqlload.State, r *sqlload.Relation) error {
	if !s.Want.PrimaryKey {
		return nil
	}

	indexes, err := sqlload.Rows(ctx, c, "SELECT i.indisprimary, (SELECT string_agg(a.attname, ', ' "+
		"ORDER BY array_position(CAST(i.indkey AS int2[]), a.attnum)) FROM pg_attribute a "+
		"WHERE a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)) FROM pg_index i WHERE i.indrelid = "+r.ID)
	if err != nil {
		return err
	}

	key := strings.Join(s.Schema.Primary, ", ")

	if !slices.ContainsFunc(indexes, func(row []string) bool { return row[0] == "t" && row[1] == key }) {
		return sqlload.Refuse("add it, or "+r.Elsewhere(), "a primary key was asked for, and the table's is not (%s)", key)
	}
	return nil
}

// Create implements sqlload.Catalog.
func (l catalog) Create(ctx context.Context, c sqlload.Conn, s *sqlload.State) ([]string, error) {
	st := l.statements(s)
	numbers, err := l.ownNumbers(ctx, c, s)
	return append([]string{st.createTable(), st.markTable()}, numbers...), err
}

// ownNumbers returns the statement that makes the serial columns of a copy identities: LIKE copies their defaults,
// which take numbers from the sequence of the original, and keep it from being dropped. A sequence that belongs to no
// column is shared on purpose. YugabyteDB is not known to alter a column so, and before PostgreSQL 10 there are none. c
// is nil in a dry run, which does not know them.
func (l catalog) ownNumbers(ctx context.Context, c sqlload.Conn, s *sqlload.State) ([]string, error) {
	like := s.Want.Like
	if like.Name == "" || l.flavour == yugabyteDB || c == nil {
		return nil, nil
	}
	found, err := sqlload.Rows(ctx, c, "SELECT quote_ident(a.attname) FROM pg_attribute a "+
		"JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum "+
		"JOIN pg_depend d ON d.classid = CAST('pg_class' AS regclass) AND d.refclassid = d.classid "+
		"AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype = 'a' "+
		"JOIN pg_depend n ON n.classid = CAST('pg_attrdef' AS regclass) AND n.objid = f.oid "+
		"AND n.refclassid = d.classid AND n.refobjid = d.objid "+
		"WHERE a.attrelid = CAST("+sqlload.Literal(sqlload.Qualified(like.Schema, like.Name))+" AS regclass) "+
		"AND CAST(current_setting('server_version_num') AS int) >= 100000 "+
		"AND a.attnotnull AND a.atttypid IN (20, 21, 23) "+ // int8, int2, int4
		"AND pg_get_expr(f.adbin, f.adrelid) LIKE 'nextval(%::regclass)' ORDER BY a.attnum")
	if err != nil || len(found) == 0 {
		return nil, err
	}
	changes := make([]string, len(found))
	for i, row := range found {
		column := "ALTER COLUMN " + row[0]
		changes[i] = column + " DROP DEFAULT, " + column + " ADD GENERATED BY DEFAULT AS IDENTITY"
	}
	return []string{"ALTER TABLE " + s.Table + " " + strings.Join(changes, ", ")}, nil
}

// Exists implements sqlload.Catalog: the table or its type exists. With IF NOT EXISTS in two sessions at once it is the
// catalog's own unique key that fails.
func (catalog) Exists(err error) bool {
	return is(err, "42P07") || is(err, "42710") || is(err, "23505")
}

// Grant implements sqlload.Catalog. A table without a schema would be made in the first one of search_path.
func (catalog) Grant(ctx context.Context, c sqlload.Conn, privileges, table string) string {
	if !strings.HasPrefix(privileges, "CREATE") {
		return fmt.Sprintf("GRANT %s ON %s TO %s", privileges, table, grantee(c))
	}
	schema, _ := sqlload.Unquoted(table)
	if schema == "" {
		if found, err := sqlload.Rows(ctx, c, "SELECT current_schema()"); err == nil && len(found) == 1 {
			schema = found[0][0]
		}
	}
	return fmt.Sprintf("GRANT CREATE ON SCHEMA %s TO %s", sqlload.Qualified("", schema), grantee(c))
}

// grantee returns the connection's user as GRANT takes it: CURRENT_USER would be the one who grants.
func grantee(c sqlload.Conn) string {
	return sqlload.Qualified("", c.(conn).ParameterStatus("session_authorization"))
}

// Stored implements sqlload.Catalog. The size includes TOAST and indexes.
func (l catalog) Stored(s *sqlload.State) []string {
	if l.flavour == redshift {
		return []string{selectRedshiftSize(s.Table)}
	}
	return []string{"SELECT pg_total_relation_size(" + sqlload.Literal(s.Table) + ")"}
}

// lookups ask the catalog and not information_schema, which shows the constraints of one's own tables only, and no
// index.
//
// On PostgreSQL 15 (two million rows of pairs, one worker, three rounds) an index on random numbers left 5 to 8 % of
// the rows a second, one on rising numbers 25 to 31 %.
var lookups = sqlload.Lookups{
	Keys: "SELECT c.relname, CASE WHEN i.indisprimary THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, " +
		// lower(mail) and upper((mail)::text) name a column, whose values differ if theirs do
		`COALESCE(a.attname, substring(pg_get_indexdef(i.indexrelid, CAST(k.at AS int), false) from '^(?:lower|upper)\(\(?"?([^"()]+)"?\)?(?:::text)?\)$'), ''), ` +
		"CASE WHEN k.attnum = 0 THEN 'an expression: ' || pg_get_indexdef(i.indexrelid) " +
		"WHEN i.indpred IS NOT NULL THEN 'where ' || pg_get_expr(i.indpred, i.indrelid) ELSE '' END, 0 " +
		"FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid " +
		"CROSS JOIN LATERAL unnest(CAST(i.indkey AS int2[])) WITH ORDINALITY k(attnum, at) " +
		"LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum " +
		"WHERE i.indrelid = $id AND i.indisunique AND k.at <= i.indnkeyatts ORDER BY NOT i.indisprimary, c.relname, k.at",
	References: "SELECT f.conname, a.attname, n.nspname, p.relname, b.attname FROM pg_constraint f " +
		"JOIN pg_class p ON p.oid = f.confrelid JOIN pg_namespace n ON n.oid = p.relnamespace " +
		"CROSS JOIN LATERAL unnest(f.conkey, f.confkey) WITH ORDINALITY k(mine, theirs, at) " +
		"JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.mine " +
		"JOIN pg_attribute b ON b.attrelid = f.confrelid AND b.attnum = k.theirs " +
		"WHERE f.contype = 'f' AND f.conrelid = $id AND " + isWhole + " ORDER BY f.conname, k.at",
	Checks: "WITH RECURSIVE b(name, type) AS (SELECT attname, atttypid FROM pg_attribute WHERE attrelid = $id AND attnum > 0 AND NOT attisdropped " +
		"UNION ALL SELECT name, typbasetype FROM b JOIN pg_type t ON t.oid = type AND typtype = 'd') " +
		"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c' AND conrelid = $id " +
		`UNION ALL SELECT regexp_replace(pg_get_constraintdef(oid), '\mVALUE\M', quote_ident(name), 'g') ` +
		"FROM b JOIN pg_constraint ON contypid = type AND contype = 'c' ORDER BY 1",
	// Constraints of uniqueness have indexes that cannot be dropped alone.
	Costs: "SELECT 'foreign key', quote_ident(conname), format('ALTER TABLE %s DROP CONSTRAINT %I', CAST($id AS regclass), conname) " +
		"FROM pg_constraint f WHERE conrelid = $id AND contype = 'f' AND " + isWhole + " " +
		"UNION ALL SELECT 'index', CAST(CAST(indexrelid AS regclass) AS text), 'DROP INDEX ' || CAST(CAST(indexrelid AS regclass) AS text) " +
		"FROM pg_index WHERE indrelid = $id AND NOT indisprimary " +
		"AND indexrelid NOT IN (SELECT conindid FROM pg_constraint WHERE conrelid = $id AND contype IN ('u', 'x')) " +
		"UNION ALL SELECT 'trigger', quote_ident(tgname), format('ALTER TABLE %s DISABLE TRIGGER %I', CAST($id AS regclass), tgname) " +
		"FROM pg_trigger WHERE tgrelid = $id AND NOT tgisinternal AND tgenabled IN ('O', 'A') AND tgtype & 4 <> 0 " +
		"UNION ALL SELECT 'unique constraint', quote_ident(conname), " +
		"format('ALTER TABLE %s DROP CONSTRAINT %I', CAST($id AS regclass), conname) " +
		"FROM pg_constraint WHERE conrelid = $id AND contype IN ('u', 'x') ORDER BY 1, 2",
	Partitions: "SELECT pg_get_partkeydef(oid) FROM pg_class WHERE oid = $id AND relkind = 'p'",
	Bounds:     partitionBounds,
	Rows:       "SELECT CAST(reltuples AS bigint) FROM pg_class WHERE oid = $id",
	Tables:     selectTables + " ORDER BY c.relname",
	Others: "SELECT c.relname, CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'foreign table' END " +
		"FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace " +
		"WHERE n.nspname = $schema AND c.relkind IN ('v', 'm', 'f') AND NOT c.relispartition ORDER BY c.relname",
	Each: eachTable,
}

const (
	// What a column may have by which a table is divided, if no partition takes the rest: all lists, or from the first of
	// ranges without a gap to the last. Where partitions are divided again, each by other values, a row may still find
	// none.
	partitionBounds = "SELECT CASE WHEN lists THEN format('CHECK (%s IN (%s))', name, listed) " +
		"ELSE format('CHECK (%1$s >= %2$s AND %1$s < %3$s)', name, starts[1], ends[1]) END " +
		"FROM (SELECT name, bool_and(listed IS NOT NULL) AS lists, string_agg(DISTINCT listed, ', ') AS listed, " +
		"array_agg(DISTINCT least) FILTER (WHERE least <> ALL (mosts)) AS starts, " +
		"array_agg(DISTINCT most) FILTER (WHERE most <> ALL (leasts)) AS ends " +
		"FROM (SELECT *, array_agg(least) OVER all_of AS leasts, array_agg(most) OVER all_of AS mosts " +
		"FROM (SELECT name, substring(bound from '^FOR VALUES IN \\((.*)\\)$') AS listed, " +
		"regexp_replace(substring(bound from '^FOR VALUES FROM \\((.*)\\) TO \\('), digits, day) AS least, " +
		"regexp_replace(substring(bound from ' TO \\((.*)\\)$'), digits, day) AS most " +
		"FROM pg_partitioned_table p CROSS JOIN LATERAL (" + partitionColumn + ") named " +
		"JOIN pg_inherits i ON inhparent = partrelid JOIN pg_class c ON c.oid = inhrelid " +
		"CROSS JOIN LATERAL pg_get_expr(relpartbound, c.oid) bound " +
		"WHERE partrelid IN (" + partitionTree + ") AND name IS NOT NULL AND partnatts = 1 AND partstrat IN ('l', 'r') " +
		"AND COALESCE(to_jsonb(p) ->> 'partdefid', '0') = '0'" +
		") parts WINDOW all_of AS (PARTITION BY name)) known GROUP BY name) bounds " +
		"WHERE lists OR cardinality(starts) = 1 AND cardinality(ends) = 1"
	// The table, and what it is divided into, which may be divided again.
	partitionTree = "WITH RECURSIVE tree(oid) AS (SELECT CAST($id AS oid) " +
		"UNION ALL SELECT inhrelid FROM tree JOIN pg_inherits ON inhparent = tree.oid) SELECT oid FROM tree"
	// The column by which a table is divided, or of which date_trunc or the year: then the bounds are those of the
	// column, too, a year's as its first day. A zone other than UTC would move them.
	partitionColumn = "SELECT COALESCE(quote_ident(attname), truncated, of_year) AS name, " +
		`CASE WHEN of_year IS NULL THEN '^$' ELSE '^''(\d+)''$' END AS digits, '''\1-01-01''' AS day ` +
		"FROM (SELECT pg_get_partkeydef(partrelid)) key(text) " +
		"LEFT JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0] AND attnum > 0 " +
		`CROSS JOIN LATERAL substring(text from ` +
		`'^RANGE \(date_trunc\(''\w+''::text, \(?("[^"()]+"|[\w$]+)(?: AT TIME ZONE ''UTC''::text\))?\)\)$') truncated ` +
		`CROSS JOIN LATERAL substring(text from ` +
		`'^RANGE \((?:EXTRACT\(year FROM |date_part\(''year''::text, )("[^"()]+"|[\w$]+)\)\)$') of_year`
	// A foreign key to a partitioned table has others to its partitions, which PostgreSQL 11 and later make and need.
	isWhole      = "COALESCE(to_jsonb(f) ->> 'conparentid', '0') = '0'"
	selectTables = "SELECT c.relname, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace " +
		"WHERE n.nspname = $schema AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
	// The rows of a question stay in its order: it can only be asked again for each table.
	eachTable = "SELECT target.relname, q.* FROM (" + selectTables + ") target CROSS JOIN LATERAL ($question) q"
)
