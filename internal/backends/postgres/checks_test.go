package postgres_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// intent is a push of 1 GiB of documents by COPY.
func intent(t testing.TB) loader.Intent {
	return loader.Intent{
		Preparation: loader.Preparation{
			Run: "run-1", Schema: documents(t, batch.PGBinary, dataset.Bytes).schema(),
			Contract: contract("copy", batch.PGBinary), Create: loader.CreateIfMissing,
		},
		Workers: 4, BatchBytes: 16 << 20, TotalBytes: 1 << 30, Advice: true,
	}
}

func examine(t testing.TB, to loader.Target, i loader.Intent) []loader.Finding {
	t.Helper()
	l, err := postgres.New().Open(t.Context(), to, deps())
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	findings, err := l.(loader.Checker).CheckServer(t.Context(), i)
	require.NoError(t, err)
	require.NotEmpty(t, findings)
	for _, f := range findings {
		require.NotEmpty(t, f.Found, f.Check)
		require.Equal(t, f.Grade == loader.GradeOK, f.Fix == "", "%+v", f)
	}
	return findings
}

// complaints are the findings that are not ok, without what the servers for tests are known for: they give durability up.
func complaints(findings []loader.Finding) (found []loader.Finding) {
	for _, f := range findings {
		if f.Grade != loader.GradeOK && !strings.HasPrefix(f.Found, "fsync is off") {
			found = append(found, f)
		}
	}
	return found
}

// only requires that one thing is named, and how.
func only(t *testing.T, findings []loader.Finding, check string, grade loader.Grade, found, fix string) {
	t.Helper()
	wrong := complaints(findings)
	require.Len(t, wrong, 1, "%+v", wrong)
	require.Equal(t, check, wrong[0].Check, "%+v", wrong)
	require.Equal(t, grade, wrong[0].Grade, "%+v", wrong)
	require.Contains(t, wrong[0].Found, found)
	require.Contains(t, wrong[0].Fix, fix)
}

// ordinary is a role that owns a schema of its own, and no more.
func ordinary(t *testing.T) (to loader.Target, schema, role string) {
	to = target(t)
	schema, _, _ = strings.Cut(to.Table, ".")
	role = "r_" + schema
	sql(t, fmt.Sprintf("CREATE ROLE %s LOGIN; GRANT ALL ON SCHEMA %s TO %[1]s", role, schema))
	t.Cleanup(func() { sql(t, fmt.Sprintf("DROP OWNED BY %s CASCADE; DROP ROLE %[1]s", role)) })
	to.User, to.Password = role, loader.Secret("x")
	sql(t, fmt.Sprintf("ALTER ROLE %s PASSWORD 'x'", role))
	return to, schema, role
}

// One thing is broken at a time, for one role or in one schema, and exactly that is named.
func TestExamineNamesWhatIsBroken(t *testing.T) {
	const made = "CREATE TABLE $s.documents (document_id bigint NOT NULL, payload bytea NOT NULL); GRANT SELECT, INSERT ON $s.documents TO $r"
	const claimed = "; CREATE TABLE $s.terapush_claims (run text, batch bigint, first_key bigint, row_count bigint, PRIMARY KEY (run, batch)); " +
		"GRANT SELECT, INSERT, DELETE ON $s.terapush_claims TO $r"
	for name, c := range map[string]struct {
		given             string
		change            func(*loader.Target, *loader.Intent)
		check, found, fix string // no check: all is well
		grade             loader.Grade
	}{
		"nothing":               {},
		"nothing, with a table": {given: made},
		"may not create": {
			given: "REVOKE CREATE ON SCHEMA $s FROM $r", check: "privilege to create", grade: loader.GradeFail,
			found: `makes "$s"."documents" and "$s"."terapush_claims"`, fix: `GRANT CREATE ON SCHEMA "$s" TO "$r"`,
		},
		"may not create claims": {
			given: made + "; REVOKE CREATE ON SCHEMA $s FROM $r", check: "privilege to create", grade: loader.GradeFail,
			found: `makes "$s"."terapush_claims", and user $r may not`, fix: `GRANT CREATE ON SCHEMA "$s" TO "$r"`,
		},
		"need not create": {given: made + claimed + "; REVOKE CREATE ON SCHEMA $s FROM $r"},
		"no schema": {
			change: func(to *loader.Target, _ *loader.Intent) { to.Table = "nowhere.documents" },
			check:  "privilege to create", grade: loader.GradeFail, found: "schema nowhere does not exist", fix: `CREATE SCHEMA "nowhere"`,
		},
		"no schema in search_path": {
			change: func(to *loader.Target, _ *loader.Intent) {
				to.Table, to.Settings = "documents", []loader.Setting{{Name: "search_path", Value: "nowhere"}}
			},
			check: "privilege to create", grade: loader.GradeFail, found: "search_path names no schema", fix: "--table schema.table",
		},
		"table is missing": {
			change: func(_ *loader.Target, i *loader.Intent) { i.Create = loader.CreateNever },
			check:  "table", grade: loader.GradeFail, found: "does not exist", fix: "--create if-missing",
		},
		"may not insert": {
			given: made + "; REVOKE INSERT ON $s.documents FROM $r", check: "table", grade: loader.GradeFail,
			found: "may not insert", fix: `GRANT SELECT, INSERT ON "$s"."documents"`,
		},
		"may not read": {
			given: made + "; REVOKE SELECT ON $s.documents FROM $r", check: "privileges", grade: loader.GradeFail,
			found: "may insert", fix: `GRANT SELECT ON "$s"."documents" TO "$r"`,
		},
		"may read by columns": {
			given: made + "; REVOKE SELECT ON $s.documents FROM $r; GRANT SELECT (document_id, payload) ON $s.documents TO $r",
		},
		"another table": {
			given: "CREATE TABLE $s.documents (document_id int, payload bytea); GRANT ALL ON $s.documents TO $r",
			check: "table", grade: loader.GradeFail, found: "document_id is integer", fix: "choose another --table",
		},
		"claims without a key": {
			given: made + claimed + "; ALTER TABLE $s.terapush_claims DROP CONSTRAINT terapush_claims_pkey",
			check: "claim table", grade: loader.GradeFail, found: "no unique key", fix: "ADD PRIMARY KEY (run, batch)",
		},
		"claims are gone": {
			given: made, change: func(_ *loader.Target, i *loader.Intent) { i.Resume = true },
			check: "claim table", grade: loader.GradeFail, found: "is gone", fix: "start a new run",
		},
		"not ours to drop": {
			given:  made + "; ALTER TABLE $s.documents OWNER TO $r",
			change: func(_ *loader.Target, i *loader.Intent) { i.Create = loader.CreateRecreate },
			check:  "table", grade: loader.GradeFail, found: "was not made by terapush", fix: "--yes-drop",
		},
		"may not drop": {
			given:  made + "; COMMENT ON TABLE $s.documents IS 'made by terapush'",
			change: func(_ *loader.Target, i *loader.Intent) { i.Create = loader.CreateRecreate },
			check:  "privileges", grade: loader.GradeFail, found: "owns neither", fix: `OWNER TO "$r"`,
		},
		"may drop as the schema's owner": {
			given:  made + "; COMMENT ON TABLE $s.documents IS 'made by terapush'; ALTER SCHEMA $s OWNER TO $r",
			change: func(_ *loader.Target, i *loader.Intent) { i.Create = loader.CreateRecreate },
		},
		"may not truncate": {
			given:  made + "; COMMENT ON TABLE $s.documents IS 'made by terapush'",
			change: func(_ *loader.Target, i *loader.Intent) { i.Create = loader.CreateTruncate },
			check:  "privileges", grade: loader.GradeFail, found: "may not empty", fix: `GRANT TRUNCATE ON "$s"."documents"`,
		},
		"role's connections": {
			given: "ALTER ROLE $r CONNECTION LIMIT 3", check: "connection limit", grade: loader.GradeWarn,
			found: "3 free (role $r has CONNECTION LIMIT 3, 0 in use), and the run opens 6", fix: `ALTER ROLE "$r" CONNECTION LIMIT 6, or --workers 1`,
		},
		"statement timeout": {
			given: "ALTER ROLE $r SET statement_timeout = '4s'", check: "timeouts", grade: loader.GradeWarn,
			found: "statement_timeout is 4s and ends longer loads: each session would have to load 4.0 MiB/s", fix: "--set statement_timeout=0",
		},
		"statement timeout that no load can meet": {
			given:  "ALTER ROLE $r SET statement_timeout = '3s'; ALTER ROLE $r SET idle_session_timeout = '30s'",
			change: func(_ *loader.Target, i *loader.Intent) { i.BatchBytes = 6 << 30 },
			check:  "timeouts", grade: loader.GradeFail, found: "load 2.0 GiB/s", fix: "--set statement_timeout=0",
		},
		"statement timeout, set aside": {
			given: "ALTER ROLE $r SET statement_timeout = '4s'",
			change: func(to *loader.Target, _ *loader.Intent) {
				to.Settings = []loader.Setting{{Name: "statement_timeout", Value: "0"}}
			},
		},
		"idle session timeout": {
			given: "ALTER ROLE $r SET idle_session_timeout = '30s'", check: "timeouts", grade: loader.GradeWarn,
			found: "idle_session_timeout is 30s", fix: "--set idle_session_timeout=0",
		},
		"read only": {
			given: "ALTER ROLE $r SET default_transaction_read_only = on", check: "server", grade: loader.GradeFail,
			found: "read-only", fix: "--set default_transaction_read_only=off",
		},
		"read only, set aside": {
			given: "ALTER ROLE $r SET default_transaction_read_only = on",
			change: func(to *loader.Target, _ *loader.Intent) {
				to.Settings = []loader.Setting{{Name: "default_transaction_read_only", Value: "off"}}
			},
		},
		"log too small for the run": {
			change: func(_ *loader.Target, i *loader.Intent) { i.TotalBytes = 100 << 30 },
			check:  "checkpoints", grade: loader.GradeWarn, found: "max_wal_size 4.0 GiB: a checkpoint about every 2.1 GiB of log, 47 for 100 GiB of rows",
			fix: "start the server with max_wal_size='64GB'",
		},
		"commits that may be lost": {
			given: "ALTER ROLE $r SET synchronous_commit = off", check: "durability", grade: loader.GradeWarn,
			found: "synchronous_commit is off", fix: "--set synchronous_commit=on",
		},
		"indexes, triggers": {
			given: made + "; CREATE INDEX slow ON $s.documents (payload); ALTER TABLE $s.documents ADD PRIMARY KEY (document_id); " +
				"CREATE TABLE $s.other (id bigint PRIMARY KEY); ALTER TABLE $s.documents ADD CONSTRAINT known FOREIGN KEY (document_id) REFERENCES $s.other; " +
				"CREATE FUNCTION $s.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; " +
				"CREATE TRIGGER each BEFORE INSERT ON $s.documents FOR EACH ROW EXECUTE FUNCTION $s.f(); " +
				"CREATE TRIGGER unlike BEFORE DELETE ON $s.documents FOR EACH ROW EXECUTE FUNCTION $s.f()",
			check: "indexes, triggers", grade: loader.GradeWarn, found: `"$s"."documents" has indexes $s.slow; triggers each; foreign keys known`,
			fix: `DROP INDEX $s.slow; ALTER TABLE "$s"."documents" DISABLE TRIGGER USER; ALTER TABLE "$s"."documents" DROP CONSTRAINT known`,
		},
		"row security": {
			given: made + "; ALTER TABLE $s.documents ENABLE ROW LEVEL SECURITY", check: "privileges", grade: loader.GradeFail,
			found: "COPY is refused", fix: "--method insert",
		},
	} {
		t.Run(name, func(t *testing.T) {
			to, schema, role := ordinary(t)
			names := strings.NewReplacer("$s", schema, "$r", role)
			if c.given != "" {
				sql(t, names.Replace(c.given))
			}
			i := intent(t)
			if c.change != nil {
				c.change(&to, &i)
			}
			findings := examine(t, to, i)
			if c.check == "" {
				require.Empty(t, complaints(findings))
				return
			}
			only(t, findings, c.check, c.grade, names.Replace(c.found), names.Replace(c.fix))
		})
	}
}

// What a finding about a table says to do is what undoes it: an index that a constraint has made goes with the constraint.
func TestExamineFixesTheTable(t *testing.T) {
	to, schema, role := ordinary(t)
	sql(t, strings.NewReplacer("$s", schema, "$r", role).Replace("CREATE TABLE $s.documents (document_id bigint NOT NULL UNIQUE, payload bytea NOT NULL); "+
		"CREATE INDEX slow ON $s.documents (payload); ALTER TABLE $s.documents ADD CONSTRAINT \"It's known\" FOREIGN KEY (document_id) REFERENCES $s.documents (document_id); "+
		"GRANT ALL ON $s.documents TO $r"))
	found := complaints(examine(t, to, intent(t)))
	require.Len(t, found, 1, "%+v", found)
	require.Contains(t, found[0].Found, "unique constraints documents_document_id_key")
	fix, _, _ := strings.Cut(found[0].Fix, "; and make them")
	sql(t, fix)
	require.Empty(t, complaints(examine(t, to, intent(t))))
}

// More workers than a server has connections for, and than its version makes use of.
func TestExamineManyWorkers(t *testing.T) {
	to := target(t)
	i := intent(t)
	i.Workers = 500
	wrong := complaints(examine(t, to, i))
	if version := sql(t, "SELECT current_setting('server_version_num')")[0][0]; version < "160000" {
		require.Equal(t, "server", wrong[0].Check)
		require.Contains(t, wrong[0].Found, "before version 16 more than 16 sessions on one table gain little")
		require.Contains(t, wrong[0].Fix, "--workers 16")
		wrong = wrong[1:]
	}
	require.Len(t, wrong, 1)
	require.Equal(t, "connection limit", wrong[0].Check)
	require.Equal(t, loader.GradeWarn, wrong[0].Grade)
	require.Regexp(t, `^\d+ free \(max_connections 200, 0 reserved, \d+ in use\), and the run opens 502: refused sessions are retried$`, wrong[0].Found)
	require.Regexp(t, `^start the server with max_connections=5\d\d: it is set on its command line, or --workers 1\d\d$`, wrong[0].Fix)
}

// The servers for tests have fsync off on their command line, which no statement changes.
func TestExamineKnowsTheCommandLine(t *testing.T) {
	for _, f := range examine(t, target(t), intent(t)) {
		if strings.HasPrefix(f.Found, "fsync is off") {
			require.Equal(t, "start the server with fsync=on: it is set on its command line", f.Fix)
			return
		}
	}
	t.Fatal("nothing is said of fsync")
}

// Nothing is made or changed by looking.
func TestExamineChangesNothing(t *testing.T) {
	to, schema, _ := ordinary(t)
	examine(t, to, intent(t))
	require.Equal(t, "0", sql(t, "SELECT count(*) FROM pg_class WHERE relnamespace = '"+schema+"'::regnamespace")[0][0])
}

func TestExamineNamesWhoHoldsTheTable(t *testing.T) {
	to, schema, role := ordinary(t)
	sql(t, fmt.Sprintf("CREATE TABLE %[1]s.documents (document_id bigint NOT NULL, payload bytea NOT NULL); GRANT ALL ON %[1]s.documents TO %[2]s", schema, role))
	c, err := pgconn.Connect(t.Context(), server(t))
	require.NoError(t, err)
	defer func() { _ = c.Close(t.Context()) }()
	_, err = c.Exec(t.Context(), "BEGIN; LOCK TABLE "+schema+".documents IN SHARE MODE").ReadAll()
	require.NoError(t, err)
	only(t, examine(t, to, intent(t)), "table lock", loader.GradeWarn, "holds ShareLock", fmt.Sprintf("pg_terminate_backend(%d)", c.PID()))
}

// An end of the time is an error, and no finding.
func TestExamineEnds(t *testing.T) {
	to := target(t)
	l, err := postgres.New().Open(t.Context(), to, deps())
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	_, err = l.(loader.Checker).CheckServer(expired(t), intent(t))
	require.Error(t, err)
}

// Settings of a whole server are broken one at a time on one that is the test's own.
func TestExamineServerSettings(t *testing.T) {
	to, run := scratch(t)
	i := intent(t)
	i.TotalBytes = 64 << 20 // its max_wal_size is 64 MB
	require.Empty(t, complaints(examine(t, to, i)))
	for name, c := range map[string]struct {
		given, undo       string
		change            func(*loader.Target)
		check, found, fix string
		grade             loader.Grade
	}{
		"a slot that nobody reads": {
			given: "SELECT pg_create_physical_replication_slot('left', true)", undo: "SELECT pg_drop_replication_slot('left')",
			check: "replication", grade: loader.GradeWarn, found: "no client reads from slot left", fix: "SELECT pg_drop_replication_slot('left')",
		},
		"a standby that is not there": {
			given: "ALTER SYSTEM SET synchronous_standby_names = 'far'", undo: "ALTER SYSTEM RESET synchronous_standby_names",
			check: "replication", grade: loader.GradeFail, found: "synchronous_standby_names far), and none is connected", fix: "--set synchronous_commit=local",
		},
		"a standby that is not waited for": {
			given: "ALTER SYSTEM SET synchronous_standby_names = 'far'", undo: "ALTER SYSTEM RESET synchronous_standby_names",
			change: func(to *loader.Target) { to.Settings = []loader.Setting{{Name: "synchronous_commit", Value: "local"}} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			for s := range strings.SplitSeq(c.given, "; ") {
				run(s)
			}
			run("SELECT pg_reload_conf()")
			defer func() { run(c.undo); run("SELECT pg_reload_conf()"); time.Sleep(100 * time.Millisecond) }()
			to := to
			if c.change != nil {
				c.change(&to)
			}
			var findings []loader.Finding
			for range 50 { // a server takes a moment to read its file again
				if findings = examine(t, to, i); len(complaints(findings)) > 0 && complaints(findings)[0].Check == c.check {
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
			if c.check == "" {
				require.Empty(t, complaints(findings))
				return
			}
			only(t, findings, c.check, c.grade, c.found, c.fix)
		})
	}
}

// scratch is a small server of the test's own, and runs a statement on it.
func scratch(t *testing.T) (to loader.Target, run func(string)) {
	t.Helper()
	server(t)
	dir, err := os.MkdirTemp("", "terapush-examine-") // t.TempDir's is closed to the server's user
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	script := func(args ...string) string {
		out, err := exec.Command("../../../scripts/servers", args...).CombinedOutput()
		require.NoError(t, err, "scripts/servers %s: %s", args, out)
		return string(out)
	}
	home := filepath.Join(dir, "server")
	t.Cleanup(func() { script("scratch-kill", home) })
	url := regexp.MustCompile(`postgres://\S+`).FindString(script("scratch", "postgres", home))
	to, err = loader.ParseTarget(url)
	require.NoError(t, err)
	to.Table = "documents"
	return to, func(text string) {
		c, err := pgconn.Connect(t.Context(), url)
		require.NoError(t, err)
		defer func() { _ = c.Close(t.Context()) }()
		_, err = c.Exec(t.Context(), text).ReadAll()
		require.NoError(t, err, text)
	}
}

func expired(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
