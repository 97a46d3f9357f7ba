package postgres

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// creation checks the privilege to make what is missing.
func (d *doctor) creation() []sqlload.Check {
	if len(d.of.Missing) == 0 {
		return nil
	}
	schema, _ := unquoted(d.of.Table)
	if schema == "" {
		schema = d.facts.schema // where a table that is not there would be made
	}
	what := "the run makes " + strings.Join(d.of.Missing, " and ")
	return []sqlload.Check{{
		Name: "privilege to create",
		Ask:  "SELECT has_schema_privilege(nspname, 'CREATE') FROM pg_namespace WHERE nspname = " + sqlload.Literal(schema),
		Judge: func(row []string) loader.Finding {
			switch {
			case schema == "":
				return sqlload.Fail(what+", and search_path names no schema that exists", "CREATE SCHEMA AUTHORIZATION "+d.user()+", or --table schema.table")
			case row == nil:
				return sqlload.Fail(fmt.Sprintf("%s, and schema %s does not exist", what, schema), "CREATE SCHEMA "+qualified("", schema)+" AUTHORIZATION "+d.user())
			case row[0] != "t":
				return sqlload.Fail(fmt.Sprintf("%s, and user %s may not create tables in schema %s", what, d.facts.user, schema),
					fmt.Sprintf("GRANT CREATE ON SCHEMA %s TO %s", qualified("", schema), d.user()))
			}
			return sqlload.OK(fmt.Sprintf("%s; user %s may, in schema %s", what, d.facts.user, schema))
		},
	}}
}

// selectTraits reads, of the table with the oid, what this user may do with it, and what every row of it costs.
const selectTraits = "SELECT has_any_column_privilege($1, 'SELECT'), has_table_privilege($1, 'TRUNCATE'), " +
	"(SELECT pg_has_role(c.relowner, 'USAGE') OR pg_has_role(n.nspowner, 'USAGE') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1), " +
	"row_security_active($1), " +
	"(SELECT string_agg(CAST(CAST(indexrelid AS regclass) AS text), ', ' ORDER BY indexrelid) FROM pg_index WHERE indrelid = $1 AND NOT indisprimary " +
	"AND indexrelid NOT IN (SELECT conindid FROM pg_constraint WHERE conrelid = $1 AND contype IN ('u', 'x'))), " +
	"(SELECT string_agg(tgname, ', ' ORDER BY tgname) FROM pg_trigger WHERE tgrelid = $1 AND NOT tgisinternal AND tgenabled IN ('O', 'A') AND tgtype & 4 <> 0), " +
	"(SELECT string_agg(quote_ident(conname), ', ' ORDER BY conname) FROM pg_constraint WHERE conrelid = $1 AND contype = 'f'), " +
	"(SELECT string_agg(quote_ident(conname), ', ' ORDER BY conname) FROM pg_constraint WHERE conrelid = $1 AND contype IN ('u', 'x'))"

// selectLockHolder reads who keeps a load out now. A load needs ROW EXCLUSIVE (PostgreSQL manual, "Explicit Locking").
const selectLockHolder = "SELECT l.pid, l.mode, COALESCE(a.usename, ''), COALESCE(a.state, 'of unknown state'), " +
	"COALESCE(CAST(CAST(extract(epoch FROM now() - a.xact_start) AS bigint) AS text), '') " +
	"FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.relation = $1 AND l.granted AND l.pid <> pg_backend_pid() " +
	"AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) " +
	"AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') LIMIT 1"

// table lists the checks of a table that is there: what else this user needs on it, what every row costs, and who holds it.
func (d *doctor) table() []sqlload.Check {
	if d.of.Relation == nil || d.flavour == redshift { // which has neither indexes nor triggers
		return nil
	}
	in := func(query string) string { return strings.ReplaceAll(query, "$1", d.of.Relation.ID) }
	stays := d.intent.Create != loader.CreateRecreate
	checks := []sqlload.Check{{Name: "table's privileges", Ask: in(selectTraits), Judge: d.privileges}}
	if stays {
		checks = append(checks,
			sqlload.Check{Name: "row security", Ask: in(selectTraits), Judge: d.rowSecurity},
			sqlload.Check{Name: "indexes, triggers", Ask: in(selectTraits), Judge: d.burden})
	}
	switch {
	case d.flavour != yugabyteDB:
		checks = append(checks, sqlload.Check{Name: "table lock", Ask: in(selectLockHolder), Judge: d.locks})
	case stays:
		checks = append(checks, sqlload.Check{
			Name: "tablets", Ask: in("SELECT num_tablets, num_hash_key_columns FROM yb_table_properties($1)"), Judge: d.tablets,
		})
	}
	return checks
}

func (d *doctor) privileges(row []string) (f loader.Finding) {
	name, user := d.of.Relation.Table, d.facts.user
	switch reads, empties, owns := row[0] == "t", row[1] == "t", row[2] == "t"; {
	case !reads:
		f = sqlload.Fail(fmt.Sprintf("user %s may insert into %s and not read it, so nothing could be counted", user, name),
			fmt.Sprintf("GRANT SELECT ON %s TO %s", name, d.user()))
		f.Check = "privilege to read"
	case d.intent.Create == loader.CreateTruncate && !empties:
		f = sqlload.Fail(fmt.Sprintf("user %s may not empty %s", user, name), fmt.Sprintf("GRANT TRUNCATE ON %s TO %s", name, d.user()))
		f.Check = "privilege to truncate"
	case d.intent.Create == loader.CreateRecreate && !owns:
		f = sqlload.Fail(fmt.Sprintf("user %s owns neither %s nor its schema, so may not drop it", user, name),
			fmt.Sprintf("ALTER TABLE %s OWNER TO %s", name, d.user()))
		f.Check = "privilege to drop"
	}
	return f
}

func (d *doctor) rowSecurity(row []string) (f loader.Finding) {
	if row[3] == "t" && d.method == methodCopy {
		return sqlload.Fail(fmt.Sprintf("%s has row-level security for user %s, and COPY is refused there", d.of.Relation.Table, d.facts.user),
			fmt.Sprintf("ALTER ROLE %s BYPASSRLS, or --method %s", d.user(), methodInsert))
	}
	return f
}

// burden tells what makes every row dearer than the row.
func (d *doctor) burden(row []string) loader.Finding {
	name, indexes, triggers, foreign, unique := d.of.Relation.Table, row[4], row[5], row[6], row[7]
	var has, fixes []string
	note := func(what, names, fix string) {
		if names != "" {
			has, fixes = append(has, what+" "+names), append(fixes, fix)
		}
	}
	dropped := func(constraints string) string {
		return fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT %s", name, strings.ReplaceAll(constraints, ", ", ", DROP CONSTRAINT "))
	}
	note("indexes", indexes, "DROP INDEX "+indexes)
	note("triggers", triggers, fmt.Sprintf("ALTER TABLE %s DISABLE TRIGGER USER", name))
	note("foreign keys", foreign, dropped(foreign))
	note("unique constraints", unique, dropped(unique)) // whose indexes go with them and in no other way
	if len(has) == 0 {
		return sqlload.OK(name + " has no secondary index, no trigger on INSERT and no foreign key")
	}
	means := "every row pays for them, in log and in look-ups"
	switch {
	case d.options.nonTransactional && indexes+unique != "":
		means = "without transactions an index can end up without its rows"
	case d.options.rowsPerTransaction > 0 && triggers != "":
		means = "YugabyteDB ignores " + optionRowsPerTransaction + " on a table with triggers"
	}
	return sqlload.Warn(fmt.Sprintf("%s has %s: %s", name, strings.Join(has, "; "), means),
		strings.Join(fixes, "; ")+"; and make them again after the load")
}

func (d *doctor) locks(row []string) (f loader.Finding) {
	if row == nil {
		return f
	}
	pid, mode, user, state, since := row[0], row[1], row[2], row[3], row[4]
	if since != "" {
		since = " for " + since + " s"
	}
	return sqlload.Warn(fmt.Sprintf("session %s of user %s, %s%s, holds %s on %s: loads wait for it, %s at a time, and are then tried again",
		pid, user, state, since, mode, d.of.Relation.Table, lockWait), "end its transaction, or SELECT pg_terminate_backend("+pid+")")
}

// tablets judges whether a YugabyteDB table spreads: one tablet, or keys in order, is one node's work.
func (d *doctor) tablets(row []string) (f loader.Finding) {
	if row == nil {
		return f
	}
	name := d.of.Relation.Table
	n, _ := strconv.Atoi(row[0])
	switch {
	case row[1] == "0":
		return sqlload.Warn(name+"'s key is not hashed: rows in key order all go to one tablet of "+row[0]+", on one node",
			"--create recreate, which makes "+d.statements(d.of.State).primary()+", or make it so")
	case n < len(d.hosts):
		return sqlload.Warn(fmt.Sprintf("%s has %d tablets on %d nodes: some have nothing to do", name, n, len(d.hosts)),
			fmt.Sprintf("make it anew with SPLIT INTO %d TABLETS", len(d.hosts)))
	}
	return sqlload.OK(fmt.Sprintf("%s has %d tablets, hashed by its key", name, n))
}
