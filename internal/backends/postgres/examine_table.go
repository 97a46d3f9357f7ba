package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// target checks the tables as Prepare would, and the privilege to make what is missing.
func (e *examination) target(ctx context.Context) (err error) {
	e.of, err = e.Check(ctx, conn{e.conn}, e.intent)
	e.findings = append(e.findings, e.of.Findings...)
	if err != nil || len(e.of.Missing) == 0 {
		return err
	}
	schema, _ := unquoted(e.of.Statements.Table)
	if schema == "" {
		schema = e.facts.schema // where a table that is not there would be made
	}
	return e.mayCreate(ctx, schema, e.of.Missing)
}

func (e *examination) mayCreate(ctx context.Context, schema string, missing []string) error {
	const check = "privilege to create"
	found, err := rowsOf(ctx, e.conn, "SELECT has_schema_privilege(nspname, 'CREATE') FROM pg_namespace WHERE nspname = "+literal(schema))
	what := "the run makes " + strings.Join(missing, " and ")
	switch {
	case err != nil:
		e.unknown(check, err)
		return err
	case schema == "":
		e.fail(check, what+", and search_path names no schema that exists", "CREATE SCHEMA AUTHORIZATION "+e.user()+", or --table schema.table")
	case len(found) == 0:
		e.fail(check, fmt.Sprintf("%s, and schema %s does not exist", what, schema), "CREATE SCHEMA "+qualified("", schema)+" AUTHORIZATION "+e.user())
	case found[0][0] != "t":
		e.fail(check, fmt.Sprintf("%s, and user %s may not create tables in schema %s", what, e.facts.user, schema),
			fmt.Sprintf("GRANT CREATE ON SCHEMA %s TO %s", qualified("", schema), e.user()))
	default:
		e.ok(check, fmt.Sprintf("%s; user %s may, in schema %s", what, e.facts.user, schema))
	}
	return nil
}

// onTable looks at what else this user needs on a table that stays, at what every row of it costs, and at who holds it.
func (e *examination) onTable(ctx context.Context) error {
	if e.of.Relation == nil || e.flavour == redshift { // which has neither indexes nor triggers
		return nil
	}
	name := e.of.Relation.Table
	in := func(query string) string { return strings.ReplaceAll(query, "$1", e.of.Relation.ID) }
	found, err := rowsOf(ctx, e.conn, in("SELECT has_any_column_privilege($1, 'SELECT'), has_table_privilege($1, 'TRUNCATE'), "+
		"(SELECT pg_has_role(c.relowner, 'USAGE') OR pg_has_role(n.nspowner, 'USAGE') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1), "+
		"row_security_active($1), "+
		"(SELECT string_agg(CAST(CAST(indexrelid AS regclass) AS text), ', ' ORDER BY indexrelid) FROM pg_index WHERE indrelid = $1 AND NOT indisprimary "+
		"AND indexrelid NOT IN (SELECT conindid FROM pg_constraint WHERE conrelid = $1 AND contype IN ('u', 'x'))), "+
		"(SELECT string_agg(tgname, ', ' ORDER BY tgname) FROM pg_trigger WHERE tgrelid = $1 AND NOT tgisinternal AND tgenabled IN ('O', 'A') AND tgtype & 4 <> 0), "+
		"(SELECT string_agg(quote_ident(conname), ', ' ORDER BY conname) FROM pg_constraint WHERE conrelid = $1 AND contype = 'f'), "+
		"(SELECT string_agg(quote_ident(conname), ', ' ORDER BY conname) FROM pg_constraint WHERE conrelid = $1 AND contype IN ('u', 'x'))"))
	if err != nil {
		e.unknown("table's privileges", err)
		return err
	}
	row := found[0]
	switch {
	case row[0] != "t":
		e.fail("privilege to read", fmt.Sprintf("user %s may insert into %s and not read it, so nothing could be counted", e.facts.user, name),
			fmt.Sprintf("GRANT SELECT ON %s TO %s", name, e.user()))
	case e.intent.Create == loader.CreateTruncate && row[1] != "t":
		e.fail("privilege to truncate", fmt.Sprintf("user %s may not empty %s", e.facts.user, name), fmt.Sprintf("GRANT TRUNCATE ON %s TO %s", name, e.user()))
	case e.intent.Create == loader.CreateRecreate && row[2] != "t":
		e.fail("privilege to drop", fmt.Sprintf("user %s owns neither %s nor its schema, so may not drop it", e.facts.user, name), fmt.Sprintf("ALTER TABLE %s OWNER TO %s", name, e.user()))
	}
	if row[3] == "t" && e.method == methodCopy && e.intent.Create != loader.CreateRecreate {
		e.fail("row security", fmt.Sprintf("%s has row-level security for user %s, and COPY is refused there", name, e.facts.user),
			fmt.Sprintf("ALTER ROLE %s BYPASSRLS, or --method %s", e.user(), methodInsert))
	}
	if e.intent.Create != loader.CreateRecreate {
		e.burden(name, row[4], row[5], row[6], row[7])
	}
	if e.flavour == yugabyteDB {
		return e.tablets(ctx, name)
	}
	return e.locks(ctx, name)
}

// burden tells what makes every row dearer than the row.
func (e *examination) burden(name, indexes, triggers, foreign, unique string) {
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
		e.ok("indexes, triggers", name+" has no secondary index, no trigger on INSERT and no foreign key")
		return
	}
	means := "every row pays for them, in log and in look-ups"
	switch {
	case e.options.nonTransactional && indexes+unique != "":
		means = "without transactions an index can end up without its rows"
	case e.options.rowsPerTransaction > 0 && triggers != "":
		means = "YugabyteDB ignores " + optionRowsPerTransaction + " on a table with triggers"
	}
	e.warn("indexes, triggers", fmt.Sprintf("%s has %s: %s", name, strings.Join(has, "; "), means),
		strings.Join(fixes, "; ")+"; and make them again after the load")
}

// locks finds who keeps a load out now. A load needs ROW EXCLUSIVE (PostgreSQL manual, "Explicit Locking").
func (e *examination) locks(ctx context.Context, name string) error {
	found, err := rowsOf(ctx, e.conn, "SELECT l.pid, l.mode, COALESCE(a.usename, ''), COALESCE(a.state, 'of unknown state'), "+
		"COALESCE(CAST(CAST(extract(epoch FROM now() - a.xact_start) AS bigint) AS text), '') "+
		"FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.relation = "+e.of.Relation.ID+" AND l.granted AND l.pid <> pg_backend_pid() "+
		"AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "+
		"AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') LIMIT 1")
	if err != nil {
		e.unknown("table lock", err)
		return err
	}
	if len(found) > 0 {
		pid, mode, user, state, seconds := found[0][0], found[0][1], found[0][2], found[0][3], found[0][4]
		since := ""
		if seconds != "" {
			since = " for " + seconds + " s"
		}
		e.warn("table lock", fmt.Sprintf("session %s of user %s, %s%s, holds %s on %s: loads wait for it, %s at a time, and are then tried again",
			pid, user, state, since, mode, name, lockWait), "end its transaction, or SELECT pg_terminate_backend("+pid+")")
	}
	return nil
}

// tablets tells whether a YugabyteDB table spreads: one tablet, or keys in order, is one node's work.
func (e *examination) tablets(ctx context.Context, name string) error {
	if e.intent.Create == loader.CreateRecreate {
		return nil
	}
	found, err := rowsOf(ctx, e.conn, "SELECT num_tablets, num_hash_key_columns FROM yb_table_properties("+e.of.Relation.ID+")")
	if err != nil {
		e.unknown("tablets", err)
		return err
	}
	if len(found) == 0 {
		return nil
	}
	n, _ := strconv.Atoi(found[0][0])
	switch {
	case found[0][1] == "0":
		e.warn("tablets", name+"'s key is not hashed: rows in key order all go to one tablet of "+found[0][0]+", on one node",
			"--create recreate, which makes "+e.statements(e.of.State).primary()+", or make it so")
	case n < len(e.hosts):
		e.warn("tablets", fmt.Sprintf("%s has %d tablets on %d nodes: some have nothing to do", name, n, len(e.hosts)),
			fmt.Sprintf("make it anew with SPLIT INTO %d TABLETS", len(e.hosts)))
	default:
		e.ok("tablets", fmt.Sprintf("%s has %d tablets, hashed by its key", name, n))
	}
	return nil
}
