package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// createChecks check the privilege to make what is missing.
func (d *doctor) createChecks() []sqlload.Check {
	if len(d.table.Missing) == 0 {
		return nil
	}
	schema := d.schema()
	makes := "the run makes " + strings.Join(d.table.Missing, " and ")
	return []sqlload.Check{{
		Name: "privilege to create",
		Ask:  "SELECT has_schema_privilege(nspname, 'CREATE') FROM pg_namespace WHERE nspname = " + sqlload.Literal(schema),
		Judge: func(row []string) loader.Finding {
			switch {
			case schema == "":
				return sqlload.Fail(makes+", and search_path names no schema that exists",
					"CREATE SCHEMA AUTHORIZATION "+d.user()+", or --table schema.table")
			case row == nil:
				return sqlload.Fail(fmt.Sprintf("%s, and schema %s does not exist", makes, schema),
					fmt.Sprintf("CREATE SCHEMA %s AUTHORIZATION %s", sqlload.Qualified("", schema), d.user()))
			case row[0] != "t":
				fix := fmt.Sprintf("GRANT CREATE ON SCHEMA %s TO %s", sqlload.Qualified("", schema), d.user())
				if !slices.Contains(d.table.Missing, d.table.Table) { // only the claims
					fix += ", or --delivery at-least-once"
				}
				return sqlload.Fail(fmt.Sprintf("%s, and user %s may not create tables in schema %s", makes, d.facts.user, schema), fix)
			}
			return sqlload.OK(fmt.Sprintf("%s; user %s may, in schema %s", makes, d.facts.user, schema))
		},
	}}
}

// schema returns where missing tables are made.
func (d *doctor) schema() string {
	schema, _ := sqlload.Unquoted(d.table.Table)
	return cmp.Or(schema, d.facts.schema)
}

// makes lists the tables that were not there before.
func (d *doctor) makes() []string {
	return slices.DeleteFunc(slices.Clone(d.table.Missing), func(name string) bool {
		return d.table.Relation != nil && name == d.table.Table
	})
}

// selectPrivileges reads the user's privileges on the table with the oid $1, and its policies.
const selectPrivileges = "SELECT $may, has_table_privilege($1, 'TRUNCATE'), " +
	"(SELECT pg_has_role(c.relowner, 'USAGE') OR pg_has_role(n.nspowner, 'USAGE') " +
	"FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1), row_security_active($1), " +
	"(SELECT string_agg(quote_ident(polname), ', ' ORDER BY polname) FROM pg_policy WHERE polrelid = $1)"

// selectLock reads a lock that conflicts with a load's ROW EXCLUSIVE (PostgreSQL manual, "Explicit Locking").
const selectLock = "SELECT l.pid, l.mode, COALESCE(a.usename, ''), COALESCE(a.state, 'of unknown state'), " +
	"COALESCE(CAST(CAST(extract(epoch FROM now() - a.xact_start) AS bigint) AS text), '') " +
	"FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid " +
	"WHERE l.relation = $1 AND l.granted AND l.pid <> pg_backend_pid() " +
	"AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) " +
	"AND l.mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock') LIMIT 1"

// tableChecks check an existing table. Redshift has neither indexes nor triggers.
func (d *doctor) tableChecks() []sqlload.Check {
	if d.table.Relation == nil || d.flavour == redshift {
		return nil
	}
	id := d.table.Relation.ID
	known := strings.NewReplacer("$1", id, "$may", catalog{d.opened}.may("SELECT", id, d.table.State))
	about := known.Replace
	kept := d.intent.Create != loader.CreateRecreate
	checks := []sqlload.Check{{Name: "privileges", Ask: about(selectPrivileges), Judge: d.checkPrivileges}}
	if kept {
		checks = append(checks, d.CheckEffects(d.table.State), d.checkCosts())
	}
	switch {
	case d.flavour != yugabyteDB:
		checks = append(checks, sqlload.Check{Name: "table lock", Ask: about(selectLock), Judge: d.checkLock})
	case kept:
		checks = append(checks, sqlload.Check{
			Name: "tablets", Advice: true, Judge: d.checkTablets,
			Ask: about("SELECT num_tablets, num_hash_key_columns FROM yb_table_properties($1)"),
		})
	}
	return checks
}

func (d *doctor) checkPrivileges(row []string) (f loader.Finding) {
	name, user := d.table.Relation.Table, d.facts.user
	switch reads, truncates, drops, secured := row[0] == "t", row[1] == "t", row[2] == "t", row[3] == "t"; {
	case !reads:
		return sqlload.Fail(fmt.Sprintf("user %s may insert into %s but not read it, so its rows could not be counted", user, name),
			fmt.Sprintf("GRANT SELECT ON %s TO %s", name, d.user()))
	case d.intent.Create == loader.CreateTruncate && !truncates:
		return sqlload.Fail(fmt.Sprintf("user %s may not empty %s", user, name),
			fmt.Sprintf("GRANT TRUNCATE ON %s TO %s", name, d.user()))
	case d.intent.Create == loader.CreateRecreate && !drops:
		return sqlload.Fail(fmt.Sprintf("user %s owns neither %s nor its schema and may not drop the table", user, name),
			fmt.Sprintf("ALTER TABLE %s OWNER TO %s", name, d.user()))
	case d.intent.Create != loader.CreateRecreate && secured && d.method == methodCopy:
		return sqlload.Fail(fmt.Sprintf("%s has row-level security for user %s (policies: %s), under which COPY is refused",
			name, user, cmp.Or(row[4], "none")),
			fmt.Sprintf("ALTER ROLE %s BYPASSRLS, or --method %s", d.user(), methodInsert))
	}
	return f
}

// checkCosts says besides what indexes and triggers do to options.
func (d *doctor) checkCosts() sqlload.Check {
	c := d.CheckCosts(d.table.State, d.intent.Advice)
	judge := c.Judge
	c.Judge = func(all []string) loader.Finding {
		f := judge(all)
		has := func(kinds ...string) bool {
			return slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(all, kind) })
		}
		switch {
		case d.options.NonTransactional && has("index", "unique constraint"):
			f.Found += "; without transactions an index can end up without its rows"
		case d.options.RowsPerTransaction > 0 && has("trigger"):
			f.Found += "; YugabyteDB ignores rows-per-transaction on a table with triggers"
		}
		return f
	}
	return c
}

func (d *doctor) checkLock(row []string) (f loader.Finding) {
	if row == nil {
		return f
	}
	pid, mode, user, state, seconds := row[0], row[1], row[2], row[3], row[4]
	if seconds != "" {
		state += " for " + seconds + " s"
	}
	return sqlload.Warn(fmt.Sprintf("session %s of user %s, %s, holds %s on %s: loads wait for it, %s each, and are then retried",
		pid, user, state, mode, d.table.Relation.Table, lockWait), "end its transaction, or SELECT pg_terminate_backend("+pid+")")
}

// checkTablets reports whether the rows of a YugabyteDB table are spread over the nodes: with keys in order all nodes
// but one wait.
func (d *doctor) checkTablets(row []string) (f loader.Finding) {
	if row == nil {
		return f
	}
	name := d.table.Relation.Table
	n, _ := strconv.Atoi(row[0])
	switch {
	case row[1] == "0":
		keys, _ := d.table.Constraints()
		return sqlload.Warn(fmt.Sprintf("the key of %s is not hashed: rows in key order all go to one tablet of %d, on one node", name, n),
			"a table made with "+strings.Join(keys, ", ")+", as terapush makes them, would spread them")
	case n < len(d.hosts.List):
		return sqlload.Warn(
			fmt.Sprintf("%s has %d tablets on %d nodes: some have nothing to do", name, n, len(d.hosts.List)),
			fmt.Sprintf("make the table again with SPLIT INTO %d TABLETS", len(d.hosts.List)))
	}
	return sqlload.OK(fmt.Sprintf("%s has %d tablets, hashed by its key", name, n))
}
