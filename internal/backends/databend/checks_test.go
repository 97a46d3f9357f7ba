package databend

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

const (
	askSettings = "SELECT name, value FROM system.settings WHERE name IN ('" + queueTimeout
	askConfigs  = "SELECT `group`"
)

// newHealthy is a server that answers what CheckServer asks, with nothing wrong.
func newHealthy(t *testing.T) *fake {
	f := newFake(t)
	f.on(askSettings, result([]any{queueTimeout, "0"}, []any{executeTimeout, "0"}, []any{resultTimeout, "60"}, []any{fileMemory, "24"}))
	f.on(askConfigs, configured("256", "s3"))
	f.on("EXPLAIN", result([]any{"InsertPlan"}))
	f.on("PRESIGN", result([]any{"PUT", `{"host":"x"}`, f.URL + "/bucket/x"}))
	return f
}

func configured(sessions, storage string) string {
	return result([]any{"query", "max_active_sessions", sessions}, []any{"storage", "type", storage})
}

// check returns the findings that are not all right: check, grade: what was found; what to do.
func check(t *testing.T, c loader.Checker, workers int) string {
	t.Helper()
	findings, err := c.CheckServer(t.Context(), loader.Intent{Preparation: preparation(methodStreamingLoad), Workers: workers})
	require.NoError(t, err)
	var all, checks []string
	for _, f := range findings {
		checks = append(checks, f.Check)
		if f.Grade != loader.GradeOK {
			all = append(all, fmt.Sprintf("%s, %s: %s; %s", f.Check, f.Grade, f.Found, f.Fix))
		}
	}
	require.Subset(t, checks, []string{"version", "table", "privileges"})
	return strings.Join(all, "\n")
}

func TestChecks(t *testing.T) {
	const role = "GRANT ROLE account_admin TO USER …; hosted servers hide their configuration from everybody"
	limit := func(name, value string) string { return result([]any{resultTimeout, "60"}, []any{name, value}) }
	denied := failure(permissionDenied, "no")
	for _, c := range []struct{ method, ask, answer, want string }{
		{methodStreamingLoad, "", "", ""},
		{methodInsert, "", "", ""},
		{methodInsertNoPresign, "", "", ""},
		{methodStageLoad, "", "", ""},
		{methodStreamingLoad, askConfigs, configured("4", "s3"), "sessions, warn: max_active_sessions = 4 on each host: sessions above it " +
			"are refused; [query] max_active_sessions = 12 in databend-query.toml and restart the server, or --workers 4"},
		{methodStreamingLoad, askConfigs, configured("256", "memory"), "storage, warn: type memory: the rows are gone when the server ends; " +
			`[storage] type = "s3" (or fs) in databend-query.toml`},
		{methodStreamingLoad, askSettings, limit(executeTimeout, "30"), executeTimeout + ", warn: max_execute_time_in_seconds = 30: " +
			"the server ends a longer statement, also one that loads; --set max_execute_time_in_seconds=0"},
		{methodStreamingLoad, askSettings, limit(queueTimeout, "5"), queueTimeout + ", warn: statement_queued_timeout_in_seconds = 5: " +
			"a statement that waits longer for its turn is refused; --set statement_queued_timeout_in_seconds=0"},
		{methodStreamingLoad, askSettings, result([]any{resultTimeout, "5"}), resultTimeout + ", warn: http_handler_result_timeout_secs = 5: " +
			"the answer of a long statement may be lost between two polls; --set http_handler_result_timeout_secs=60"},
		{methodStageLoad, askSettings, limit(fileMemory, "2"), "file names, warn: load_file_metadata_expire_hours = 2: " +
			"a run that is resumed later loads files twice; SET GLOBAL load_file_metadata_expire_hours = 24"},
		{methodStreamingLoad, "EXPLAIN INSERT", denied, "privileges, fail: server error 1063: no; GRANT INSERT, SELECT ON db.* TO USER 'root'"},
		{methodStreamingLoad, "EXPLAIN CREATE TABLE", denied, "privileges, fail: server error 1063: no; GRANT CREATE ON db.* TO USER 'root'"},
		{methodStreamingLoad, "EXPLAIN", failure(1005, "no"), "privileges, unknown: the server does not say: server error 1005: no; "},
		{methodStreamingLoad, askConfigs, denied, "sessions, unknown: the server does not say: server error 1063: no; " + role},
	} {
		t.Run(c.method+" "+c.want, func(t *testing.T) {
			f := newHealthy(t)
			checker := openTarget(t, f.target(c.method))
			if c.ask == "EXPLAIN CREATE TABLE" {
				f.on("SELECT table_id", result())
			}
			if c.ask != "" {
				f.on(c.ask, c.answer)
			}
			require.Equal(t, c.want, check(t, checker, 6))
		})
	}
}

// A server that lets one question wait is asked no more.
func TestChecksOfABusyServer(t *testing.T) {
	f := newHealthy(t)
	checker := openTarget(t, f.target(methodStreamingLoad))
	require.Equal(t, checkTimeout, checker.checking)
	checker.checking = 100 * time.Millisecond
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	f.call(askConfigs, func(seen) string { <-held; return result() })
	findings, err := checker.CheckServer(t.Context(), loader.Intent{Preparation: preparation(methodStreamingLoad)})
	require.NoError(t, err)
	require.Equal(t, "answers", findings[len(findings)-1].Check)
	require.Empty(t, f.asked("EXPLAIN"))
}

// The real server answers all questions, with nothing wrong.
func TestChecksOfServers(t *testing.T) {
	for _, method := range []string{methodStreamingLoad, methodInsertNoPresign, methodStageLoad} {
		t.Run(method, func(t *testing.T) {
			target := realServer(t)
			target.Method, target.Table = method, "checked"
			require.Empty(t, check(t, openTarget(t, target), 4))
		})
	}
	t.Run("through a bucket", func(t *testing.T) {
		target := realServer(t)
		via := urlOf(t, "TERAPUSH_TEST_S3")
		target.Method, target.Table, target.Via = methodStageLoad, "checked", &via
		found := check(t, openTarget(t, target), 4)
		require.Contains(t, found, "store from the server")
		require.NotContains(t, found, ", fail: ")
	})
}
