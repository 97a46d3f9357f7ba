package oracle

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// check asks the server about a push of 1 GiB by 8 workers, and returns the findings that are not all right.
func (s *standIn) check(t *testing.T, target loader.Target, change func(*loader.Intent)) []loader.Finding {
	t.Helper()
	i := loader.Intent{Workers: 8, BatchBytes: 4 << 20, TotalBytes: 1 << 30, Advice: true}
	if change != nil {
		change(&i)
	}
	findings := backendtest.Doctor(t, s.backend, backendtest.Deps(), target, i)
	for _, r := range s.Requests() {
		require.Regexp(t, "^(SELECT |CONNECT|LOGOFF|ROLLBACK)", r.SQL, "it changes nothing")
	}
	return slices.DeleteFunc(findings, func(f loader.Finding) bool { return f.Grade == loader.GradeOK })
}

func TestCheckServer(t *testing.T) {
	type faults = map[string]fake.Fault
	says := func(view string, rows ...[]any) faults { return faults{view: {Answer: rows}} }
	quota := func(used, limit string) faults {
		return faults{"session_privs": {Answer: [][]any{{"CREATE TABLE"}}}, "user_ts_quotas": {Answer: [][]any{{"USERS", used, limit}}}}
	}
	denied := func(view string) faults { return faults{view: {Fail: fake.Ora(codeNoTable)}} }
	const grant = "GRANT SELECT_CATALOG_ROLE TO TERA"
	warn, fail, unknown := backendtest.Warn, backendtest.Fail, backendtest.Unknown
	workers := func(n int) func(*loader.Intent) { return func(i *loader.Intent) { i.Workers = n } }
	long := func(i *loader.Intent) {
		i.Schema = rows.Schema{Dataset: "d", Columns: []rows.Column{
			{Name: "id", Type: rows.Int64}, {Name: "fits", Type: rows.Text, MaxBytes: 4000},
			{Name: "body", Type: rows.Bytes, MaxBytes: 2001},
		}}
	}
	for name, c := range map[string]struct {
		method string
		server faults
		intent func(*loader.Intent)
		table  string // "": one that does not exist
		want   loader.Finding
	}{
		"healthy":         {},
		"healthy, single": {method: methodSingle},
		"healthy, fast":   {method: methodFast},
		"healthy, direct": {method: methodDirect, intent: workers(1000)}, // of which one loads
		"no right to create a table": {server: says("session_privs", []any{"UNLIMITED TABLESPACE"}), table: "t",
			want: fail("privileges", `"T" in schema TERA, for which TERA needs CREATE TABLE`, "GRANT CREATE TABLE TO TERA")},
		"no right to create one for another": {table: "other.t",
			want: warn("privileges", `"OTHER"."T" in schema OTHER`, "GRANT CREATE ANY TABLE TO TERA")},
		"no quota": {server: says("session_privs", []any{"CREATE TABLE"}),
			want: fail("quota", "TERA has no quota on USERS", "ALTER USER TERA QUOTA UNLIMITED ON USERS")},
		"a small quota": {server: quota("1048576", "537919488"),
			want: warn("quota", "512 MiB of quota are left on USERS, for 1.0 GiB", "ALTER USER TERA QUOTA UNLIMITED ON USERS")},
		"a quota that is enough": {server: quota("0", "1073741824")},
		"too few processes": {server: says("v$resource_limit", []any{"processes", "289", "  300"}),
			want: warn("processes", "289 of 300 are in use, and the push needs 12",
				"processes = 602 SCOPE = SPFILE, and a restart; or --workers 7")},
		"just enough processes": {server: says("v$resource_limit",
			[]any{"processes", "288", "  300"}, []any{"sessions", "9", " UNLIMITED"})},
		"too few sessions for the user": {server: says("user_resource_limits", []any{"11"}),
			want: warn("sessions per user", "the profile allows 11, and the push needs 12",
				"LIMIT SESSIONS_PER_USER 12 (SELECT profile FROM dba_users WHERE username = 'TERA'), or --workers 7")},
		"just enough sessions for the user": {server: says("user_resource_limits", []any{"12"})},
		"a hidden instance": {server: denied("v$resource_limit"),
			want: unknown("processes", "the server does not say: ORA-00942", grant)},
		"commits that are not waited for": {server: says("v$parameter", []any{"commit_wait", "NOWAIT"}),
			want: warn("commit", "commit_wait = NOWAIT", "--set commit_wait=WAIT")},
		"commits that cannot be waited for": {server: says("v$parameter", []any{"commit_wait", "FORCE_NOWAIT"}),
			want: warn("commit", "commit_wait = FORCE_NOWAIT", "ALTER SYSTEM SET commit_wait = WAIT")},
		"hidden parameters": {server: denied("v$parameter"), want: unknown("commit", "V$PARAMETER cannot be read", grant)},
		"another character set": {server: says("nls_database_parameters", []any{settingCharset, "WE8MSWIN1252"}),
			want: warn("character set", "WE8MSWIN1252: the server replaces characters", "AL32UTF8")},
		"values that are too long": {
			server: says("v$parameter", []any{"max_string_size", "STANDARD"}, []any{"commit_wait", nil}), intent: long,
			want: fail("max_string_size", "column body have up to 2001 bytes, and 2000 fit", "--payload-bytes 2000")},
	} {
		t.Run(name, func(t *testing.T) {
			method := cmp.Or(c.method, methodArray)
			s := startStandIn(t, fake.Options{Native: method == methodDirect, Script: fake.Where(c.server)})
			target := s.table(method)
			target.Table = cmp.Or(c.table, target.Table)
			found := s.check(t, target, c.intent)
			if name == "a hidden instance" { // which hides both
				found = slices.DeleteFunc(found, func(f loader.Finding) bool { return f.Check == "sessions" })
			}
			backendtest.Only(t, c.want, found)
		})
	}
}

// Of a table that is another user's, what is granted on it counts.
func TestCheckAnothersTable(t *testing.T) {
	missing := backendtest.Warn("privileges", "", "GRANT SELECT, INSERT ON OWNER.T TO TERA")
	for name, c := range map[string]struct {
		granted [][]any
		want    loader.Finding
	}{
		"granted":     {granted: [][]any{{"INSERT"}, {"SELECT"}}},
		"to read":     {[][]any{{"SELECT"}}, missing},
		"not granted": {nil, missing},
	} {
		t.Run(name, func(t *testing.T) {
			s := startStandIn(t, fake.Options{Owner: "OWNER", Script: fake.Where(map[string]fake.Fault{
				"all_tab_privs": {Answer: c.granted}, "session_privs": {Answer: [][]any{{"CREATE ANY TABLE"}}},
			})})
			require.NoError(t, s.Run(`CREATE TABLE "OWNER"."T" (ID NUMBER(19))`))
			target := s.table(methodArray)
			target.Table = "owner.t"
			backendtest.Only(t, c.want, s.check(t, target, nil))
		})
	}
}

func TestCheckOfAServerThatIsGone(t *testing.T) {
	s := startStandIn(t, fake.Options{})
	l := backendtest.Open(t, s.backend, s.table(methodArray), backendtest.Deps())
	s.Close()
	_, err := l.(loader.Checker).CheckServer(t.Context(), loader.Intent{})
	require.Error(t, err)
}
