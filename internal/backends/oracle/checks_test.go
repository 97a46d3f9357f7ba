package oracle

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// check asks the server about a push of 1 GiB by 8 workers, and returns the findings that are not all right, by check.
func (s *standIn) check(t *testing.T, target loader.Target, change func(*loader.Intent)) map[string]loader.Finding {
	t.Helper()
	i := loader.Intent{Workers: 8, BatchBytes: 4 << 20, TotalBytes: 1 << 30, Advice: true}
	if change != nil {
		change(&i)
	}
	l, err := s.backend.Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	findings, err := l.(loader.Checker).CheckServer(t.Context(), i)
	require.NoError(t, err)
	all := map[string]loader.Finding{}
	for _, f := range findings {
		t.Logf("%-7s %-18s %s", f.Grade, f.Check, f.Found)
		if f.Grade != loader.GradeOK {
			all[f.Check] = f
		}
	}
	for _, r := range s.Requests() {
		require.Regexp(t, "^(SELECT |CONNECT|LOGOFF|ROLLBACK)", r.SQL, "it changes nothing")
	}
	return all
}

func TestCheckServer(t *testing.T) {
	says := func(view string, rows ...[]any) fake.Options {
		return fake.Options{Answers: map[string][][]any{view: rows}}
	}
	denied := func(view string) fake.Options { return fake.Options{Denied: map[string]int{view: codeNoTable}} }
	const (
		absent = "the server does not say: ORA-00942: table or view does not exist"
		grant  = "GRANT SELECT_CATALOG_ROLE TO TERA"
		lost   = ": a commit is acknowledged before it is durable, and a crash loses acknowledged batches"
	)
	workers := func(n int) func(*loader.Intent) { return func(i *loader.Intent) { i.Workers = n } }
	for name, c := range map[string]struct {
		method string
		server fake.Options
		intent func(*loader.Intent)
		table  string // "": one that does not exist
		want   loader.Finding
	}{
		"healthy":         {},
		"healthy, single": {method: methodSingle},
		"healthy, fast":   {method: methodFast},
		"healthy, direct": {method: methodDirect, intent: workers(1000)}, // of which one loads
		"no right to create a table": {
			server: says("SESSION_PRIVS", []any{"UNLIMITED TABLESPACE"}), table: "t",
			want: loader.Finding{Check: "privileges", Grade: loader.GradeFail,
				Found: `the run creates "T" in schema TERA, for which TERA needs CREATE TABLE`, Fix: "GRANT CREATE TABLE TO TERA"},
		},
		"no right to create one for another": {
			table: "other.t",
			want: loader.Finding{Check: "privileges", Grade: loader.GradeWarn,
				Found: `the run creates "OTHER"."T" in schema OTHER, for which TERA needs CREATE ANY TABLE`,
				Fix:   "GRANT CREATE ANY TABLE TO TERA"},
		},
		"no quota": {
			server: says("SESSION_PRIVS", []any{"CREATE TABLE"}),
			want: loader.Finding{Check: "quota", Grade: loader.GradeFail,
				Found: "TERA has no quota on USERS: the first row would fail (ORA-01950)",
				Fix:   "ALTER USER TERA QUOTA UNLIMITED ON USERS"},
		},
		"a small quota": {
			server: fake.Options{Answers: map[string][][]any{
				"SESSION_PRIVS": {{"CREATE TABLE"}}, "USER_TS_QUOTAS": {{"USERS", "1048576", "537919488"}},
			}},
			want: loader.Finding{Check: "quota", Grade: loader.GradeWarn,
				Found: "512 MiB of quota are left on USERS, for 1.0 GiB of rows", Fix: "ALTER USER TERA QUOTA UNLIMITED ON USERS"},
		},
		"a quota that is enough": {
			server: fake.Options{Answers: map[string][][]any{
				"SESSION_PRIVS": {{"CREATE TABLE"}}, "USER_TS_QUOTAS": {{"USERS", "0", "1073741824"}},
			}},
		},
		"too few processes": {
			server: says("V$RESOURCE_LIMIT", []any{"processes", "289", "  300"}), intent: workers(8),
			want: loader.Finding{Check: "processes", Grade: loader.GradeWarn,
				Found: "289 of 300 are in use, and the push needs 12 (ORA-00018, ORA-00020)",
				Fix:   "ALTER SYSTEM SET processes = 602 SCOPE = SPFILE, and a restart; or --workers 7"},
		},
		"just enough processes": {server: says("V$RESOURCE_LIMIT",
			[]any{"processes", "288", "  300"}, []any{"sessions", "9", " UNLIMITED"})},
		"too few sessions for the user": {
			server: says("USER_RESOURCE_LIMITS", []any{"11"}),
			want: loader.Finding{Check: "sessions per user", Grade: loader.GradeWarn,
				Found: "the profile allows 11, and the push needs 12 (ORA-02391)",
				Fix:   "ALTER PROFILE … LIMIT SESSIONS_PER_USER 12 (SELECT profile FROM dba_users WHERE username = 'TERA'), or --workers 7"},
		},
		"just enough sessions for the user": {server: says("USER_RESOURCE_LIMITS", []any{"12"})},
		"a hidden instance": {
			server: denied("V$RESOURCE_LIMIT"),
			want:   loader.Finding{Check: "processes", Grade: loader.GradeUnknown, Found: absent, Fix: grant},
		},
		"shared servers": {
			server: says("V$SESSION", []any{"SHARED"}),
			want: loader.Finding{Check: "server process", Grade: loader.GradeWarn,
				Found: "SHARED: sessions share a few processes, and arrays go through the dispatchers' memory",
				Fix:   "name a service without dispatchers, or ALTER SYSTEM SET shared_servers = 0"},
		},
		"pooled servers": {
			server: says("V$SESSION", []any{"POOLED"}),
			want: loader.Finding{Check: "server process", Grade: loader.GradeWarn,
				Found: "POOLED (DRCP): a loading session keeps its process, and the pool has few",
				Fix:   "name the service without :POOLED, or EXEC DBMS_CONNECTION_POOL.ALTER_PARAM('', 'MAXSIZE', …)"},
		},
		"commits that are not waited for": {
			server: says("V$PARAMETER", []any{"commit_wait", "NOWAIT"}),
			want: loader.Finding{Check: "commit", Grade: loader.GradeWarn, Found: "commit_wait = NOWAIT" + lost,
				Fix: "--set commit_wait=WAIT"},
		},
		"commits that cannot be waited for": {
			server: says("V$PARAMETER", []any{"commit_wait", "FORCE_NOWAIT"}),
			want: loader.Finding{Check: "commit", Grade: loader.GradeWarn, Found: "commit_wait = FORCE_NOWAIT" + lost,
				Fix: "ALTER SYSTEM SET commit_wait = WAIT"},
		},
		"hidden parameters": {
			server: denied("V$PARAMETER"),
			want:   loader.Finding{Check: "commit", Grade: loader.GradeUnknown, Found: "V$PARAMETER cannot be read", Fix: grant},
		},
		"another character set": {
			server: says("NLS_DATABASE_PARAMETERS", []any{settingCharset, "WE8MSWIN1252"}),
			want: loader.Finding{Check: "character set", Grade: loader.GradeWarn,
				Found: "WE8MSWIN1252: the server replaces characters that it cannot store, and verification finds that late",
				Fix:   "a database with AL32UTF8: the character set is chosen when it is created (or changed by DMU)"},
		},
		"values that are too long": {
			server: says("V$PARAMETER", []any{"max_string_size", "STANDARD"}, []any{"commit_wait", nil}),
			intent: func(i *loader.Intent) {
				i.Schema = rows.Schema{Dataset: "d", Columns: []rows.Column{
					{Name: "id", Type: rows.Int64}, {Name: "fits", Type: rows.Text, MaxBytes: 4000},
					{Name: "body", Type: rows.Bytes, MaxBytes: 2001},
				}}
			},
			want: loader.Finding{Check: "max_string_size", Grade: loader.GradeFail,
				Found: "STANDARD: values of column body have up to 2001 bytes, and 2000 fit",
				Fix: "--payload-bytes 2000, or ALTER SYSTEM SET max_string_size = EXTENDED SCOPE = SPFILE in upgrade mode " +
					"with utl32k.sql"},
		},
		"small redo logs": {
			intent: func(i *loader.Intent) { i.TotalBytes = 64 << 30 },
			want: loader.Finding{Check: "redo logs", Grade: loader.GradeWarn,
				Found: "3 groups of at least 200 MiB, which the rows fill 109 times: loads wait at each switch until a log is free " +
					`("log file switch" in V$SESSION_EVENT)`,
				Fix: "ALTER DATABASE ADD LOGFILE SIZE 4G (four times), ALTER SYSTEM SWITCH LOGFILE, " +
					"then ALTER DATABASE DROP LOGFILE GROUP … for the small ones"},
		},
		"direct path that is logged": {
			method: methodDirect, server: says("V$DATABASE", []any{"YES"}),
			want: loader.Finding{Check: "force logging", Grade: loader.GradeWarn,
				Found: "YES: direct path writes every block into the redo log as well",
				Fix:   "ALTER DATABASE NO FORCE LOGGING, where no standby needs it; then ALTER TABLE … NOLOGGING"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			method := cmp.Or(c.method, methodArray)
			c.server.Native = method == methodDirect
			s := startStandIn(t, c.server)
			target := s.table(method)
			target.Table = cmp.Or(c.table, target.Table)
			want := map[string]loader.Finding{}
			if c.want.Check != "" {
				want[c.want.Check] = c.want
			}
			found := s.check(t, target, c.intent)
			if name == "a hidden instance" { // which hides both
				delete(found, "sessions")
			}
			require.Equal(t, want, found)
		})
	}
}

// Of a table that is another user's, what is granted on it counts.
func TestCheckAnothersTable(t *testing.T) {
	for name, c := range map[string]struct {
		granted [][]any
		fix     string
	}{
		"granted":     {granted: [][]any{{"INSERT"}, {"SELECT"}}},
		"to read":     {[][]any{{"SELECT"}}, "GRANT SELECT, INSERT ON OWNER.T TO TERA"},
		"not granted": {nil, "GRANT SELECT, INSERT ON OWNER.T TO TERA"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startStandIn(t, fake.Options{Owner: "OWNER", Answers: map[string][][]any{
				"ALL_TAB_PRIVS": c.granted, "SESSION_PRIVS": {{"CREATE ANY TABLE"}},
			}})
			require.NoError(t, s.Run(`CREATE TABLE "OWNER"."T" (ID NUMBER(19))`))
			target := s.table(methodArray)
			target.Table = "owner.t"
			found := s.check(t, target, nil)
			require.Equal(t, c.fix, found["privileges"].Fix)
			if c.fix != "" {
				require.Equal(t, loader.GradeWarn, found["privileges"].Grade)
			}
		})
	}
}

func TestCheckStore(t *testing.T) {
	s, target := startWithStore(t)
	found := s.check(t, target, nil)
	require.Contains(t, found["store from the server"].Found, "Oracle reads the objects from "+storeAddress)

	s = startStandIn(t, fake.Options{Denied: map[string]int{"DBMS_CLOUD": 6550}})
	target.Hosts = []string{s.Address()}
	_, err := s.backend.Open(t.Context(), target, testDeps())
	require.ErrorContains(t, err, "GRANT EXECUTE ON DBMS_CLOUD TO tera")
}

func TestCheckOfAServerThatIsGone(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	l, err := s.backend.Open(t.Context(), s.table(methodArray), testDeps())
	require.NoError(t, err)
	s.Close()
	_, err = l.(loader.Checker).CheckServer(t.Context(), loader.Intent{})
	require.Error(t, err)
}
