package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// troubles are the findings that are not all right, by check.
func troubles(findings []loader.Finding) map[string]loader.Finding {
	all := map[string]loader.Finding{}
	for _, f := range findings {
		if f.Grade != loader.GradeOK {
			all[f.Check] = f
		}
	}
	return all
}

// examine opens the table and examines the server for a push of 1 GiB.
func (s *standIn) examine(t *testing.T, target loader.Target, change func(*loader.Intent)) []loader.Finding {
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
	for _, f := range findings {
		t.Logf("%-7s %-18s %s", f.Grade, f.Check, f.Found)
	}
	return findings
}

func TestExamineNamesWhatIsWrong(t *testing.T) {
	says := func(view string, rows ...[]any) fake.Options {
		return fake.Options{Views: map[string][][]any{view: rows}}
	}
	denied := func(view string) fake.Options { return fake.Options{Denied: map[string]int{view: codeNoTable}} }
	const (
		absent = "the server does not say: ORA-00942: table or view does not exist"
		grant  = "GRANT SELECT_CATALOG_ROLE TO TERA"
	)
	for name, c := range map[string]struct {
		method string
		server fake.Options
		intent func(*loader.Intent)
		table  string // "" is one that does not exist
		want   loader.Finding
	}{
		"healthy":         {},
		"healthy, single": {method: methodSingle},
		"healthy, fast":   {method: methodFast},
		"healthy, direct": {method: methodDirect, intent: func(i *loader.Intent) { i.Workers = 1000 }},
		"no right to make a table": {
			server: says("SESSION_PRIVS", []any{"UNLIMITED TABLESPACE"}),
			want: loader.Finding{Check: "privileges", Grade: loader.GradeFail, Found: `the run creates "T" in schema TERA, for which TERA needs CREATE TABLE`,
				Fix: "GRANT CREATE TABLE TO TERA"},
			table: "t",
		},
		"no right to make one for another": {
			table: "other.t",
			want: loader.Finding{Check: "privileges", Grade: loader.GradeWarn, Found: `the run creates "OTHER"."T" in schema OTHER, for which TERA needs CREATE ANY TABLE`,
				Fix: "GRANT CREATE ANY TABLE TO TERA"},
		},
		"no quota": {
			server: says("SESSION_PRIVS", []any{"CREATE TABLE"}),
			want: loader.Finding{Check: "quota", Grade: loader.GradeFail, Found: "TERA has no quota on USERS: the first row would fail (ORA-01950)",
				Fix: "ALTER USER TERA QUOTA UNLIMITED ON USERS"},
		},
		"a small quota": {
			server: fake.Options{Views: map[string][][]any{"SESSION_PRIVS": {{"CREATE TABLE"}}, "USER_TS_QUOTAS": {{"USERS", int64(1 << 20), int64(513 << 20), int64(1), int64(2), "NO"}}}},
			want: loader.Finding{Check: "quota", Grade: loader.GradeWarn, Found: "512 MiB of quota are left on USERS, for 1.0 GiB of rows",
				Fix: "ALTER USER TERA QUOTA UNLIMITED ON USERS"},
		},
		"too few sessions": {
			server: says("V$RESOURCE_LIMIT", []any{"processes", int64(290), int64(290), "  300", "  300", int64(0)}),
			want: loader.Finding{Check: "processes", Grade: loader.GradeWarn, Found: "290 of 300 are in use, and the push needs 12 (ORA-00018, ORA-00020)",
				Fix: "ALTER SYSTEM SET processes = 604 SCOPE = SPFILE, and a restart; or --workers 6"},
		},
		"too few sessions for the user": {
			server: says("USER_RESOURCE_LIMITS", []any{"SESSIONS_PER_USER", "10"}),
			want: loader.Finding{Check: "sessions per user", Grade: loader.GradeWarn,
				Found: "the profile allows 10, and the push needs 12 (ORA-02391)",
				Fix:   "ALTER PROFILE … LIMIT SESSIONS_PER_USER 12 (SELECT profile FROM dba_users WHERE username = 'TERA'), or --workers 6"},
		},
		"a hidden instance": {
			server: denied("V$RESOURCE_LIMIT"),
			want:   loader.Finding{Check: "processes", Grade: loader.GradeUnknown, Found: absent, Fix: grant},
		},
		"shared servers": {
			server: says("V$SESSION", []any{int64(2), int64(1), "TERA", "SHARED", "ACTIVE"}),
			want: loader.Finding{Check: "server process", Grade: loader.GradeWarn,
				Found: "SHARED: sessions share a few processes, and arrays go through the dispatchers' memory",
				Fix:   "name a service without dispatchers, or ALTER SYSTEM SET shared_servers = 0"},
		},
		"a hidden session": {
			server: denied("V$SESSION"),
			want:   loader.Finding{Check: "server process", Grade: loader.GradeUnknown, Found: absent, Fix: grant},
		},
		"commits that nobody waits for": {
			server: says("V$PARAMETER", []any{"commit_wait", "NOWAIT"}, []any{"commit_logging", "BATCH"}, []any{"undo_tablespace", "UNDOTBS1"}),
			want: loader.Finding{Check: "commit", Grade: loader.GradeWarn,
				Found: "commit_wait = NOWAIT: a commit is acknowledged before it is durable, and a crash loses acknowledged batches",
				Fix:   "--set commit_wait=WAIT"},
		},
		"another character set": {
			server: fake.Options{CharacterSet: "WE8MSWIN1252"},
			want: loader.Finding{Check: "character set", Grade: loader.GradeWarn,
				Found: "WE8MSWIN1252: the server replaces characters that it cannot store, and verification finds that late",
				Fix:   "a database with AL32UTF8: the character set is chosen when it is created (or changed by DMU)"},
		},
		"values that are too long": {
			server: fake.Options{Standard: true},
			intent: func(i *loader.Intent) {
				i.Schema = rows.Schema{Dataset: "d", Columns: []rows.Column{{Name: "id", Type: rows.Int64}, {Name: "body", Type: rows.Text, MaxBytes: 5000}}}
			},
			want: loader.Finding{Check: "max_string_size", Grade: loader.GradeFail, Found: "STANDARD: values of column body have up to 5000 bytes, and 4000 fit",
				Fix: "--payload-bytes 4000, or ALTER SYSTEM SET max_string_size = EXTENDED SCOPE = SPFILE in upgrade mode with utl32k.sql"},
		},
		"small redo logs": {
			intent: func(i *loader.Intent) { i.TotalBytes = 64 << 30 },
			want: loader.Finding{Check: "redo logs", Grade: loader.GradeWarn,
				Found: `3 groups of at least 200 MiB, which the rows fill 109 times: loads wait at each switch until a log is free ("log file switch" in V$SESSION_EVENT)`,
				Fix:   "ALTER DATABASE ADD LOGFILE SIZE 4G (four times), ALTER SYSTEM SWITCH LOGFILE, then ALTER DATABASE DROP LOGFILE GROUP … for the small ones"},
		},
		"hidden redo logs": {
			server: denied("V$LOG"),
			want:   loader.Finding{Check: "redo logs", Grade: loader.GradeUnknown, Found: absent, Fix: grant},
		},
		"direct path that is logged": {
			method: methodDirect, server: says("V$DATABASE", []any{int64(1), "P", "ARCHIVELOG", "YES", "YES"}),
			want: loader.Finding{Check: "force logging", Grade: loader.GradeWarn, Found: "YES: direct path writes every block into the redo log as well",
				Fix: "ALTER DATABASE NO FORCE LOGGING, where no standby needs it; then ALTER TABLE … NOLOGGING"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.method == "" {
				c.method = methodArray
			}
			s := startStandIn(t, c.method == methodDirect, c.server)
			target := s.table(c.method)
			if c.table != "" {
				target.Table = c.table
			}
			found := troubles(s.examine(t, target, c.intent))
			want := map[string]loader.Finding{}
			if c.want.Check != "" {
				want[c.want.Check] = c.want
			}
			require.Equal(t, want, found)
		})
	}
}

// A table that is there and another user's: what counts is what is granted on it.
func TestExamineAnothersTable(t *testing.T) {
	for name, c := range map[string]struct {
		granted [][]any
		want    loader.Grade
	}{
		"granted":     {[][]any{{"O", "TERA", "OWNER", "T", "INSERT", "NO"}, {"O", "TERA", "OWNER", "T", "SELECT", "NO"}}, loader.GradeOK},
		"to read":     {[][]any{{"O", "TERA", "OWNER", "T", "SELECT", "NO"}}, loader.GradeWarn},
		"not granted": {nil, loader.GradeWarn},
	} {
		t.Run(name, func(t *testing.T) {
			s := startStandIn(t, false, fake.Options{Owner: "OWNER", Views: map[string][][]any{
				"ALL_OBJECTS":   {{"OWNER", "T", nil, int64(1), int64(1), "TABLE", "VALID"}},
				"ALL_TABLES":    {{"OWNER", "T", "N", nil, nil, "DISABLED", nil, "YES", "NO", "NO", "DISABLED", "VALID"}},
				"ALL_TAB_PRIVS": c.granted, "SESSION_PRIVS": {{"CREATE ANY TABLE"}},
			}})
			target := s.table(methodArray)
			target.Table = "owner.t"
			findings := s.examine(t, target, nil)
			found := troubles(findings)
			if c.want == loader.GradeOK {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, c.want, found["privileges"].Grade)
			require.Equal(t, "GRANT SELECT, INSERT ON OWNER.T TO TERA", found["privileges"].Fix)
		})
	}
}

func TestExamineThroughAStore(t *testing.T) {
	s, b := startWithStore(t, fake.Options{})
	found := troubles(s.examine(t, s.through(b), nil))
	require.Len(t, found, 1)
	require.Contains(t, found["store from the server"].Found, "Oracle reads the objects from "+storeAddress)
}

func TestExamineOfAServerThatIsGone(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	l, err := s.backend.Open(t.Context(), s.table(methodArray), testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	s.Close()
	_, err = l.(loader.Checker).CheckServer(t.Context(), loader.Intent{})
	require.Error(t, err)
}

// CheckServer asks, and changes nothing.
func TestExamineChangesNothing(t *testing.T) {
	s := startStandIn(t, false, fake.Options{})
	s.examine(t, s.table(methodArray), nil)
	for _, statement := range s.Log() {
		require.Regexp(t, "^(SELECT |$)", statement.Text)
	}
}
