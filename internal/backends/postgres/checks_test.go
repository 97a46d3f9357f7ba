package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

var warn, fail, unknown = backendtest.Warn, backendtest.Fail, backendtest.Unknown

func intent(t *testing.T) loader.Intent {
	return backendtest.Intent(preparation(t, loader.CreateIfMissing))
}

// complaints are the findings that are not ok. The servers for tests have fsync off.
func complaints(t testing.TB, to loader.Target, i loader.Intent) []loader.Finding {
	t.Helper()
	return backendtest.Complaints(backendtest.Doctor(t, postgres.New(), backendtest.Deps(), to, i), "fsync is off")
}

// ordinary is a role that may make tables in the target's schema, and no more.
func ordinary(t *testing.T) (to loader.Target, schema, role string) {
	to = target(t)
	schema, _, _ = strings.Cut(to.Table, ".")
	role = "r_" + schema
	sql(t, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD 'x'; GRANT ALL ON SCHEMA %s TO %[1]s", role, schema))
	t.Cleanup(func() { sql(t, fmt.Sprintf("DROP OWNED BY %s CASCADE; DROP ROLE %[1]s", role)) })
	to.User, to.Password = role, "x"
	return to, schema, role
}

// One thing is broken at a time, for one role or in one schema, and exactly that is named.
func TestDoctorNamesWhatIsBroken(t *testing.T) {
	const (
		made = "CREATE TABLE $s.documents (document_id bigint NOT NULL, payload bytea NOT NULL); GRANT SELECT, INSERT ON $s.documents TO $r; "
		ours = made + "COMMENT ON TABLE $s.documents IS 'made by terapush'; "
		// The run's claims are there, too.
		claimed = made + "CREATE TABLE $s.terapush_claims (run text, batch bigint, first_key bigint, row_count bigint, PRIMARY KEY (run, batch)); " +
			"GRANT SELECT, INSERT, DELETE ON $s.terapush_claims TO $r; " +
			"CREATE TABLE $s.terapush_runs (name text, run text, part text, state text, epoch text, target text, owner text, " +
			"appends bigint, fingerprint bigint, first_key bigint, last_key bigint, changed bigint, PRIMARY KEY (run, part)); " +
			"GRANT SELECT, INSERT, UPDATE, DELETE ON $s.terapush_runs TO $r; "
		noCreate = "REVOKE CREATE ON SCHEMA $s FROM $r"
	)
	set := func(name, value string) func(*loader.Target, *loader.Intent) {
		return func(to *loader.Target, _ *loader.Intent) { to.Settings = []loader.Setting{{Name: name, Value: value}} }
	}
	for name, c := range map[string]struct {
		given  string
		create loader.CreateMode
		change func(*loader.Target, *loader.Intent)
		want   loader.Finding // none: all is well
	}{
		"nothing":               {},
		"nothing, with a table": {given: made},
		"may not create": {
			given: noCreate,
			want:  fail("privilege to create", `makes "$s"."documents" and "$s"."terapush_claims" and "$s"."terapush_runs"`, `GRANT CREATE ON SCHEMA "$s" TO "$r"`),
		},
		"may not create claims": {
			given: made + noCreate,
			want:  fail("privilege to create", `makes "$s"."terapush_claims" and "$s"."terapush_runs", and user $r may not`, `GRANT CREATE ON SCHEMA "$s" TO "$r"`),
		},
		"need not create": {given: claimed + noCreate},
		"no schema": {
			change: func(to *loader.Target, _ *loader.Intent) { to.Table = "nowhere.documents" },
			want:   fail("privilege to create", "schema nowhere does not exist", `CREATE SCHEMA "nowhere"`),
		},
		"no schema in search_path": {
			change: func(to *loader.Target, i *loader.Intent) {
				to.Table = "documents"
				set("search_path", "nowhere")(to, i)
			},
			want: fail("privilege to create", "search_path names no schema", "--table schema.table"),
		},
		"table is missing": {create: loader.CreateNever, want: fail("table", "does not exist", "--create if-missing")},
		"may not insert": {
			given: made + "REVOKE INSERT ON $s.documents FROM $r",
			want:  fail("table", "may not insert", `GRANT SELECT, INSERT ON "$s"."documents"`),
		},
		"may not read": {
			given: made + "REVOKE SELECT ON $s.documents FROM $r",
			want:  fail("privileges", "may insert", `GRANT SELECT ON "$s"."documents" TO "$r"`),
		},
		"may read by columns": {
			given: made + "REVOKE SELECT ON $s.documents FROM $r; GRANT SELECT (document_id, payload) ON $s.documents TO $r",
		},
		"other columns": {
			given: made + "ALTER TABLE $s.documents RENAME document_id TO id; ALTER TABLE $s.documents RENAME payload TO body",
			want:  fail("table", "column document_id (bigint) is missing", "choose another --table"),
		},
		"claims without a key": {
			given: claimed + "ALTER TABLE $s.terapush_claims DROP CONSTRAINT terapush_claims_pkey",
			want:  fail("claim table", "no unique key", "ADD PRIMARY KEY (run, batch)"),
		},
		"claims are gone": {
			given: made, change: func(_ *loader.Target, i *loader.Intent) { i.Resume = true },
			want: fail("claim table", "is gone", "start a new run"),
		},
		"may not drop": {
			given: ours, create: loader.CreateRecreate, want: fail("privileges", "owns neither", `OWNER TO "$r"`),
		},
		"may drop as the schema's owner": {given: ours + "ALTER SCHEMA $s OWNER TO $r", create: loader.CreateRecreate},
		"may not truncate": {
			given: ours, create: loader.CreateTruncate,
			want: fail("privileges", "may not empty", `GRANT TRUNCATE ON "$s"."documents"`),
		},
		"role's connections": {
			given: "ALTER ROLE $r CONNECTION LIMIT 3",
			want: warn("connection limit", "3 free (role $r has CONNECTION LIMIT 3, 0 in use), and the run opens 6",
				`ALTER ROLE "$r" CONNECTION LIMIT 6, or --workers 1`),
		},
		"read only": {
			given: "ALTER ROLE $r SET default_transaction_read_only = on",
			want:  fail("server", "read-only", "--set default_transaction_read_only=off"),
		},
		"commits that may be lost": {
			given: "ALTER ROLE $r SET synchronous_commit = off",
			want:  warn("durability", "synchronous_commit is off", "--set synchronous_commit=on"),
		},
		"row security": {
			given: made + "ALTER TABLE $s.documents ENABLE ROW LEVEL SECURITY",
			want:  fail("privileges", "COPY is refused", "--method insert"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			to, schema, role := ordinary(t)
			names := strings.NewReplacer("$s", schema, "$r", role)
			if c.given != "" {
				sql(t, names.Replace(c.given))
			}
			i := intent(t)
			if c.create != "" {
				i.Create = c.create
			}
			if c.change != nil {
				c.change(&to, &i)
			}
			c.want.Found, c.want.Fix = names.Replace(c.want.Found), names.Replace(c.want.Fix)
			backendtest.Only(t, c.want, complaints(t, to, i))
		})
	}
}

// What a finding about a table says to do is what undoes it: an index that a constraint has made goes with the
// constraint.
func TestDoctorFixesTheTable(t *testing.T) {
	to, schema, role := ordinary(t)
	names := strings.NewReplacer("$s", schema, "$r", role)
	sql(t, names.Replace("CREATE TABLE $s.documents (document_id bigint PRIMARY KEY, payload bytea NOT NULL UNIQUE); "+
		"CREATE INDEX slow ON $s.documents (payload); "+
		"ALTER TABLE $s.documents ADD CONSTRAINT \"It's known\" FOREIGN KEY (document_id) REFERENCES $s.documents; "+
		"CREATE FUNCTION $s.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; "+
		"CREATE TRIGGER each AFTER INSERT ON $s.documents FOR EACH ROW EXECUTE FUNCTION $s.f(); "+
		"CREATE TRIGGER unlike BEFORE DELETE ON $s.documents FOR EACH ROW EXECUTE FUNCTION $s.f(); "+
		"GRANT ALL ON $s.documents TO $r"))
	found := complaints(t, to, intent(t))
	backendtest.Only(t, warn("indexes, triggers", names.Replace(`$s.documents has foreign key "It's known", index $s.slow, `+
		`trigger each, unique constraint documents_payload_key: every row pays`), ""), found)
	fix, _, _ := strings.Cut(found[0].Fix, "; after the load")
	sql(t, fix)
	require.Empty(t, complaints(t, to, intent(t)))
	require.Equal(t, "1", sql(t, "SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relnamespace = '"+schema+"'::regnamespace")[0][0],
		"the checks have made nothing")
}

func TestDoctorNamesWhoHoldsTheTable(t *testing.T) {
	to, schema, role := ordinary(t)
	sql(t, fmt.Sprintf("CREATE TABLE %[1]s.documents (document_id bigint NOT NULL, payload bytea NOT NULL); GRANT ALL ON %[1]s.documents TO %[2]s", schema, role))
	c, err := pgconn.Connect(t.Context(), server(t))
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	_, err = c.Exec(t.Context(), "BEGIN; LOCK TABLE "+schema+".documents IN SHARE MODE").ReadAll()
	require.NoError(t, err)
	backendtest.Only(t, warn("table lock", "holds ShareLock", fmt.Sprintf("pg_terminate_backend(%d)", c.PID())), complaints(t, to, intent(t)))
}

// A slot belongs to a whole server, so this one is the test's own.
func TestDoctorFindsAnIdleSlot(t *testing.T) {
	server(t)
	url := backendtest.Scratch(t, "postgres")
	to, err := loader.ParseTarget(url)
	require.NoError(t, err)
	to.Table = "documents"
	i := intent(t)
	backendtest.Only(t, loader.Finding{}, complaints(t, to, i))
	t.Setenv("TERAPUSH_TEST_POSTGRES", url)
	sql(t, "SELECT pg_create_physical_replication_slot('left', true)")
	backendtest.Only(t, warn("replication", "no client reads from slot left", "SELECT pg_drop_replication_slot('left')"), complaints(t, to, i))
}

// healthy answers the checks of a server that nothing is wrong with, but for the settings: "name=value unit", and where
// they are set.
func healthy(settings ...string) []answer {
	ok := []string{
		"max_connections=100", "superuser_reserved_connections=3", "fsync=on", "full_page_writes=on", "synchronous_commit=on",
		"archive_mode=on",
	}
	var rows [][]string
	for _, s := range slices.Concat(ok, settings) { // the last one of a name holds
		name, text, _ := strings.Cut(s, "=")
		text, where, set := strings.Cut(text, ", on the ")
		if !set {
			where = "configuration file"
		}
		value, unit, _ := strings.Cut(text, " ")
		rows = append(rows, []string{name, value, unit, where})
	}
	return []answer{
		{part: "SELECT name, setting", rows: rows},
		roles("1", "f"),
		{part: "SELECT current_user, current_user", rows: [][]string{{"u", "u", "d", "public"}}}, // Redshift
		{part: "has_schema_privilege", rows: [][]string{{"t"}}},
		{part: "'TRUNCATE'", rows: [][]string{{"t", "t", "t", "f", "", "", "", "", ""}}},
		{part: "yb_table_properties", rows: [][]string{{"6", "1"}}},
		{part: "pg_locks"},
		replication("0", "0", "", "", "f"),
	}
}

func roles(pid, standby string) answer {
	return answer{part: "FROM pg_roles", rows: [][]string{{"u", "u", "d", "public", standby, pid, "f", "-1", "-1", "3", "1", "2"}}}
}

func replication(row ...string) answer {
	return answer{part: "pg_stat_replication", rows: [][]string{row}}
}

// published is a publication, with a subscriber's slot.
func published(slot string) answer {
	return answer{part: "FROM pg_publication WHERE puballtables OR oid IN", rows: [][]string{{"p", slot}}}
}

// noClaims hides the claim table, which the run then makes.
func noClaims() answer { return answer{part: "has_table_privilege(c.oid, 'DELETE')"} }

func costs(kind, fix string) answer {
	return answer{part: "SELECT 'foreign key'", rows: [][]string{{kind, "that", fix}}}
}

// What depends on settings that no session can change, and on products that cannot be installed here.
func TestDoctorScripted(t *testing.T) {
	for name, c := range map[string]struct {
		settings []string
		says     []answer
		option   [2]string // YugabyteDB's
		intent   func(*loader.Intent)
		want     loader.Finding // none: all is well
	}{
		"nothing":   {},
		"a standby": {says: []answer{roles("1", "t")}, want: fail("server", "is a standby and takes no rows", "name the primary")},
		"a pooler":  {says: []answer{roles("4711", "f")}, want: warn("pooler", "calls this connection 1, the server 4711", "default_pool_size of at least 6")},
		"torn pages": {
			settings: []string{"full_page_writes=off"},
			want:     warn("durability", "torn pages", "ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf()"),
		},
		"torn pages, from the start": {
			settings: []string{"full_page_writes=off, on the command line"},
			want:     warn("durability", "torn pages", "start the server with full_page_writes=on: it is set on its command line"),
		},
		"Aurora, which tears no pages": {
			settings: []string{"full_page_writes=off", "apg_enable_batch_mode_function_execution=on"},
		},
		"RDS": {
			settings: []string{"rds.extensions=", "full_page_writes=off"},
			want:     warn("durability", "torn pages", "set full_page_writes to on in the parameter group"),
		},
		"archiving fails": {says: []answer{replication("0", "0", "", "", "t")}, want: warn("replication", "archiving of the log fails", "archive_command")},
		"a slot with a bound": {
			settings: []string{"max_slot_wal_keep_size=1024 MB"}, says: []answer{replication("0", "0", "one, two", "1048576", "f")},
			want: warn("replication", "slot one, two, for which the server keeps its log: 1.0 MiB so far, up to 1.0 GiB", "pg_drop_replication_slot('one')"),
		},
		"a standby that is waited for": {
			settings: []string{"synchronous_standby_names=far"}, says: []answer{replication("1", "0", "", "", "f")},
		},
		"a standby that is not there": {
			settings: []string{"synchronous_standby_names=far"},
			want:     fail("replication", "synchronous_standby_names far), and none is connected", "--set synchronous_commit=local"),
		},
		"a standby that is not waited for": {settings: []string{"synchronous_standby_names=far", "synchronous_commit=local"}},
		"a standby that the user may not see": {
			settings: []string{"synchronous_standby_names=far"}, says: []answer{replication("0", "1", "", "", "f")},
			want: unknown("replication", "this user may not see", `GRANT pg_monitor TO "u"`),
		},
		"views that the user may not see": {
			says: []answer{{part: "pg_stat_replication", code: "42501", message: "permission denied"}},
			want: unknown("replication", "permission denied", `GRANT pg_monitor TO "u"`),
		},
		"a publication with a subscriber": {
			settings: []string{"server_version_num=150000"}, says: []answer{published("sub"), noClaims()},
			want: fail("publication", `publication p takes up what the run makes, "public"."terapush_claims": a subscriber (slot sub) without these tables stops`,
				"make \"public\".\"terapush_claims\" (--dry-run) on every subscriber and then here"),
		},
		"connections kept for others": {
			settings: []string{"reserved_connections=91"},
			want: warn("connection limit", "4 free (max_connections 100, 94 reserved, 2 in use), and the run opens 6: refused sessions are retried",
				"ALTER SYSTEM SET max_connections = 102, and restart the server, or --workers 2"),
		},

		"YugabyteDB": {option: [2]string{"rows-per-transaction", "0"}, settings: []string{"full_page_writes=off"}},
		"YugabyteDB, a key in order": {
			option: [2]string{"rows-per-transaction", "0"}, says: []answer{{part: "yb_table_properties", rows: [][]string{{"3", "0"}}}},
			want: warn("tablets", "all go to one tablet of 3", `PRIMARY KEY ("document_id" HASH)`),
		},
		"YugabyteDB, an index, and no transactions": {
			option: [2]string{"disable-transactional-writes", "true"}, says: []answer{costs("index", "DROP INDEX slow")},
			intent: func(i *loader.Intent) { i.Contract.Dedup = loader.DedupNone },
			want:   warn("indexes, triggers", "without transactions an index can end up without its rows", "DROP INDEX slow"),
		},
		"YugabyteDB, a trigger, and rows per transaction": {
			option: [2]string{"rows-per-transaction", "20"}, says: []answer{costs("trigger", "DISABLE TRIGGER")},
			intent: func(i *loader.Intent) { i.Contract.Dedup = loader.DedupNone },
			want:   warn("indexes, triggers", "YugabyteDB ignores rows-per-transaction on a table with triggers", "DISABLE TRIGGER"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := intent(t)
			i.Schema = people()
			f := newFake(t, auroraVersion)
			to := f.target("postgres", "copy")
			if c.option[0] != "" {
				i = intent(t)
				f = newFake(t, yugabyteVersion)
				to = f.target("yugabyte", "copy")
				to.Options[c.option[0]] = c.option[1]
			}
			f.says(append(c.says, healthy(c.settings...)...)...)
			if c.intent != nil {
				c.intent(&i)
			}
			backendtest.Only(t, c.want, complaints(t, to, i))
		})
	}
}

// Redshift is asked nothing that it does not know.
func TestDoctorOfRedshift(t *testing.T) {
	f, to := newRedshift(t)
	f.says(healthy()...)
	i := backendtest.Intent(loader.Preparation{Run: "run-1", Schema: people(), Contract: contract("s3-copy", batch.CSV), Create: loader.CreateIfMissing})
	i.BatchBytes, i.Contract.GroupBatches, i.Contract.Commits = 1<<20, 4, 1
	found := complaints(t, to, i)
	backendtest.Only(t, unknown("store from the server", "", ""), found)
	for _, unknown := range []string{"pg_stat_activity", "pg_locks", "row_security_active", "pg_stat_replication"} {
		require.Empty(t, f.queries(unknown))
	}
}

// A server that hangs half way says nothing that would stop a push.
func TestDoctorOfAServerThatHangs(t *testing.T) {
	for _, silent := range []string{"SET lock_timeout", "FROM pg_roles", "obj_description", "row_security_active", "pg_stat_replication"} {
		t.Run(silent, func(t *testing.T) {
			f, hang := newFake(t, auroraVersion), make(chan struct{})
			f.says(healthy()...)
			l := open(t, f.target("postgres", "copy"))
			f.says(answer{part: silent, hang: hang})
			defer close(hang)
			i := intent(t)
			i.Schema = people()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			findings, err := l.(loader.Checker).CheckServer(ctx, i)
			require.Error(t, err)
			for _, f := range findings {
				require.NotEqual(t, loader.GradeFail, f.Grade, "%+v", f)
			}
		})
	}
}
