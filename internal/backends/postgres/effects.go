package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// effects is a query for what changes, diverts or hides rows: policies that hold for this user, triggers before rows
// are inserted, and rules, which COPY ignores.
func (l *opened) effects(s *sqlload.State) string {
	const query = "SELECT 'policy ' || quote_ident(polname), CASE polcmd WHEN 'a' THEN 'may refuse rows' " +
		"WHEN 'r' THEN 'may hide rows' ELSE 'may refuse or hide rows' END, " +
		"'load as a role with BYPASSRLS' FROM pg_policy WHERE polrelid = $1 AND polcmd IN ('a', 'r', '*') AND row_security_active($1) " +
		"AND (0 = ANY (polroles) OR EXISTS (SELECT 1 FROM unnest(polroles) r WHERE pg_has_role(r, 'USAGE'))) " +
		"UNION ALL SELECT 'trigger ' || quote_ident(tgname), 'may change rows, drop them or put them elsewhere', " +
		"'ALTER TABLE $2 DISABLE TRIGGER ' || quote_ident(tgname) FROM pg_trigger WHERE tgrelid = $1 AND NOT tgisinternal " +
		"AND tgenabled IN ('A', CASE current_setting('session_replication_role') WHEN 'replica' THEN 'R' ELSE 'O' END) " +
		"AND tgtype & 7 = 7" // ROW, BEFORE, INSERT (pg_trigger.h)
	const rules = " UNION ALL SELECT 'rule ' || quote_ident(rulename), 'may do something else in place of an INSERT', " +
		"'--method copy, which ignores it' FROM pg_rewrite WHERE ev_class = $1 AND ev_type = '3' AND ev_enabled IN ('O', 'A')"
	text := query
	if l.method == methodInsert {
		text += rules
	}
	oid := "CAST(to_regclass(" + sqlload.Literal(s.Table) + ") AS oid)"
	return strings.NewReplacer("$1", oid, "$2", strings.ReplaceAll(s.Table, "'", "''")).Replace(text)
}

// behind implements sqlload.Table.Behind for the sequences of serial and identity columns, and of a DEFAULT
// nextval('…'). GREATEST keeps a sequence that another program has moved meanwhile from going back. One that belongs to
// another table, as the default of a copy does, is not moved: the other table's rows would get the numbers of a copy's.
func (l *opened) behind(ctx context.Context, c sqlload.Conn, s *sqlload.State, largest int64) (statements []string, err error) {
	key := sqlload.Literal(s.Schema.Key().Name)
	found, err := sqlload.Rows(ctx, c, "SELECT DISTINCT q.seqrelid, n.nspname, r.relname, "+
		"has_sequence_privilege(q.seqrelid, 'SELECT'), has_sequence_privilege(q.seqrelid, 'UPDATE'), "+
		"(SELECT CAST(CAST(o.refobjid AS regclass) AS text) FROM pg_depend o WHERE o.classid = CAST('pg_class' AS regclass) "+
		"AND o.objid = q.seqrelid AND o.refclassid = o.classid AND o.deptype = 'a' AND o.refobjid <> a.attrelid) FROM pg_attribute a "+
		"LEFT JOIN pg_attrdef f ON f.adrelid = a.attrelid AND f.adnum = a.attnum "+
		"JOIN pg_depend d ON d.classid = CAST('pg_attrdef' AS regclass) AND d.objid = f.oid AND d.refclassid = CAST('pg_class' AS regclass) "+
		"OR d.refclassid = CAST('pg_class' AS regclass) AND d.refobjid = a.attrelid AND d.refobjsubid = a.attnum AND d.deptype = 'i' "+
		"JOIN pg_sequence q ON q.seqrelid = CASE d.deptype WHEN 'i' THEN d.objid ELSE d.refobjid END "+
		"JOIN pg_class r ON r.oid = q.seqrelid JOIN pg_namespace n ON n.oid = r.relnamespace "+
		"WHERE a.attrelid = "+s.Relation.ID+" AND a.attname = "+key+" AND q.seqincrement > 0")
	if err != nil {
		return nil, err
	}
	for _, row := range found {
		name := sqlload.Qualified(row[1], row[2])
		move := fmt.Sprintf("SELECT setval(%s, GREATEST(last_value, %d)) FROM %s", sqlload.Literal(name), largest, name)
		if row[3] == "t" {
			next, err := sqlload.Number(ctx, c, "SELECT last_value + CASE WHEN is_called THEN 1 ELSE 0 END FROM "+name)
			if err != nil {
				return nil, err
			}
			if next > largest {
				continue
			}
		}
		if row[5] != "" {
			return nil, fmt.Errorf("sequence %s numbers the key and belongs to table %s: give %s a sequence of its own",
				name, row[5], s.Table)
		}
		if row[4] != "t" {
			return nil, fmt.Errorf(
				"sequence %s numbers the key, and this user may not move it: GRANT UPDATE ON SEQUENCE %s TO %s, "+
					"or let its owner run %s", name, name, grantee(c), move)
		}
		statements = append(statements, move)
	}
	return statements, nil
}

// publicationVersion is of PostgreSQL, and the one that publishes schemas.
const publicationVersion, publicationOfSchemas = 100000, 150000

// publicationChecks find publications that take up tables as they are made. A subscriber without such a table stops at
// its first row, and takes nothing of the other tables either.
func (d *doctor) publicationChecks() []sqlload.Check {
	version, made := d.amount("server_version_num"), d.makes()
	if len(made) == 0 || version < publicationVersion || d.statements(d.table.State).unlogged {
		return nil
	}
	in := ""
	if version >= publicationOfSchemas {
		in = " OR oid IN (SELECT pnpubid FROM pg_publication_namespace WHERE pnnspid = to_regnamespace(" +
			sqlload.Literal(sqlload.Qualified("", d.schema())) + "))"
	}
	return []sqlload.Check{{
		Name: "publication",
		Ask: "SELECT string_agg(quote_ident(pubname), ', ' ORDER BY pubname), " +
			"(SELECT string_agg(slot_name, ', ' ORDER BY slot_name) FROM pg_replication_slots " +
			"WHERE plugin = 'pgoutput' AND database = current_database()) FROM pg_publication WHERE puballtables" + in,
		Judge: func(row []string) (none loader.Finding) {
			if row[0] == "" {
				return none
			}
			tables := strings.Join(made, " and ")
			fix := fmt.Sprintf("make %s (--dry-run) on every subscriber and then here; or name a schema that is not published: --table schema.table",
				tables)
			if d.table.Relation != nil {
				fix += "; or --delivery at-least-once"
			}
			if row[1] == "" {
				return sqlload.Warn(fmt.Sprintf("publication %s takes up what the run makes, %s; nobody subscribes now, and a subscriber without "+
					"these tables could not", row[0], tables), fix)
			}
			return sqlload.Fail(fmt.Sprintf("publication %s takes up what the run makes, %s: a subscriber (slot %s) without these tables stops, "+
				"and the rows of all other tables do not arrive there any more", row[0], tables, row[1]), fix)
		},
	}}
}
