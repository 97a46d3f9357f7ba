package databend

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"

	standin "github.com/terapush/terapush/internal/standin/databend"
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
	f.on(askConfigs, configured("8", "256", "s3"))
	f.on(selectNodes, result([]any{"tenant/warehouse", "10.0.0.1"}))
	f.on("EXPLAIN", result([]any{"InsertPlan"}))
	f.on("PRESIGN", result([]any{"PUT", `{"host":"x"}`, f.URL + "/bucket/x"}))
	return f
}

func configured(running, sessions, storage string) string {
	return result([]any{"query", "max_running_queries", running}, []any{"query", "max_active_sessions", sessions},
		[]any{"storage", "type", storage})
}

func openChecker(t *testing.T, target loader.Target) loader.Checker {
	t.Helper()
	l, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.(loader.Checker)
}

// check returns the findings, by check, that are not all right.
func check(t *testing.T, c loader.Checker, workers int) map[string]loader.Finding {
	t.Helper()
	findings, err := c.CheckServer(t.Context(), loader.Intent{Preparation: preparation(streamingLoad), Workers: workers})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(findings), 4)
	all := map[string]loader.Finding{}
	for _, f := range findings {
		if f.Grade != loader.GradeOK {
			all[f.Check] = f
		}
	}
	return all
}

func TestChecks(t *testing.T) {
	const warn, fail, unknown = loader.GradeWarn, loader.GradeFail, loader.GradeUnknown
	const role = "GRANT ROLE account_admin TO USER …; hosted servers hide their configuration from everybody"
	limits := func(name, value string) string { return result([]any{resultTimeout, "60"}, []any{name, value}) }
	for name, c := range map[string]struct {
		method      string
		ask, answer string
		want        loader.Finding // zero: nothing is wrong
	}{
		"healthy":                    {},
		"healthy, insert":            {method: insert},
		"healthy, insert-no-presign": {method: insertNoPresign},
		"healthy, stage-load":        {method: stageLoad},
		"too few slots": {ask: askConfigs, answer: configured("2", "256", "s3"), want: loader.Finding{Check: "running queries", Grade: warn,
			Found: "max_running_queries = 2 on each host: 4 of 6 workers always wait",
			Fix:   "[query] max_running_queries = 6 in databend-query.toml and restart the server, or --workers 2"}},
		"uploads take no slots": {method: stageLoad, ask: askConfigs, answer: configured("2", "256", "s3")},
		"too few sessions": {ask: askConfigs, answer: configured("8", "4", "s3"), want: loader.Finding{Check: "sessions", Grade: warn,
			Found: "max_active_sessions = 4 on each host: sessions above it are refused",
			Fix:   "[query] max_active_sessions = 12 in databend-query.toml and restart the server, or --workers 4"}},
		"a table in memory": {ask: askConfigs, answer: configured("8", "256", "memory"), want: loader.Finding{Check: "storage", Grade: warn,
			Found: "type memory: the rows are gone when the server ends", Fix: `[storage] type = "s3" (or fs) in databend-query.toml`}},
		"statements are ended": {ask: askSettings, answer: limits(executeTimeout, "30"), want: loader.Finding{Check: executeTimeout, Grade: warn,
			Found: "max_execute_time_in_seconds = 30: the server ends a longer statement, also one that loads",
			Fix:   "--set max_execute_time_in_seconds=0"}},
		"statements may not wait": {ask: askSettings, answer: limits(queueTimeout, "5"), want: loader.Finding{Check: queueTimeout, Grade: warn,
			Found: "statement_queued_timeout_in_seconds = 5: a statement that waits longer for its turn is refused",
			Fix:   "--set statement_queued_timeout_in_seconds=0"}},
		"answers are forgotten": {ask: askSettings, answer: result([]any{resultTimeout, "5"}), want: loader.Finding{Check: resultTimeout, Grade: warn,
			Found: "http_handler_result_timeout_secs = 5: the answer of a long statement may be lost between two polls",
			Fix:   "--set http_handler_result_timeout_secs=60"}},
		"names are forgotten": {method: stageLoad, ask: askSettings, answer: limits(fileMemory, "2"), want: loader.Finding{Check: "file names", Grade: warn,
			Found: "load_file_metadata_expire_hours = 2: a run that is resumed later loads files twice",
			Fix:   "SET GLOBAL load_file_metadata_expire_hours = 24"}},
		"no right to insert": {ask: "EXPLAIN INSERT", answer: failure(permissionDenied, "no"), want: loader.Finding{Check: "privileges", Grade: fail,
			Found: "server error 1063: no", Fix: "GRANT INSERT, SELECT ON db.* TO USER 'root'"}},
		"no right to make the table": {ask: "EXPLAIN CREATE TABLE", answer: failure(permissionDenied, "no"), want: loader.Finding{
			Check: "privileges", Grade: fail, Found: "server error 1063: no", Fix: "GRANT CREATE ON db.* TO USER 'root'"}},
		"a server that plans nothing": {ask: "EXPLAIN", answer: failure(1005, "no"), want: loader.Finding{Check: "privileges", Grade: unknown,
			Found: "the server does not say: server error 1005: no"}},
		"nodes that cannot be listed": {ask: selectNodes, answer: failure(1063, "no"), want: loader.Finding{Check: "cluster", Grade: unknown,
			Found: "the server does not say: server error 1063: no", Fix: role}},
		"a configuration that cannot be read": {ask: askConfigs, answer: failure(1063, "no"), want: loader.Finding{
			Check: "running queries", Grade: unknown, Found: "the server does not say: server error 1063: no", Fix: role}},
		"two nodes of which one is named": {ask: selectNodes, answer: result([]any{"w", "127.0.0.1"}, []any{"w", "10.0.0.2"}),
			want: loader.Finding{Check: "cluster", Grade: warn, Found: "w: the target names 1 of 2 nodes; the others parse no rows",
				Fix: "name them all: databend://user@127.0.0.1,10.0.0.2/…"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newHealthy(t)
			checker := openChecker(t, f.target(cmp.Or(c.method, streamingLoad)))
			if c.ask == "EXPLAIN CREATE TABLE" {
				f.on("SELECT table_id", result())
			}
			if c.ask != "" {
				f.on(c.ask, c.answer)
			}
			want := map[string]loader.Finding{}
			if c.want.Check != "" {
				want[c.want.Check] = c.want
			}
			require.Equal(t, want, check(t, checker, 6))
		})
	}
}

func TestChecksOfAServerThatIsGone(t *testing.T) {
	f := newHealthy(t)
	checker := openChecker(t, f.target(streamingLoad))
	f.Close()
	_, err := checker.CheckServer(t.Context(), loader.Intent{Preparation: preparation(streamingLoad)})
	require.ErrorContains(t, err, "check 127.0.0.1:")
}

// A server that lets one question wait is asked no more.
func TestChecksOfABusyServer(t *testing.T) {
	t.Parallel()
	f := newHealthy(t)
	checker := openChecker(t, f.target(streamingLoad))
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	f.call(selectNodes, func(seen) string { <-held; return result() })
	findings, err := checker.CheckServer(t.Context(), loader.Intent{Preparation: preparation(streamingLoad)})
	require.NoError(t, err)
	require.Equal(t, "answers", findings[len(findings)-1].Check)
	require.Empty(t, f.asked("EXPLAIN"))
}

// The stand-in answers as the real server does.
func TestChecksOfServers(t *testing.T) {
	for _, method := range []string{streamingLoad, insertNoPresign, stageLoad} {
		t.Run(method, func(t *testing.T) {
			target := standInTarget(t, standin.Options{})
			target.Method, target.Table = method, "checked"
			require.Empty(t, check(t, openChecker(t, target), 4))
			target = realServer(t)
			target.Method, target.Table = method, "checked"
			require.Empty(t, check(t, openChecker(t, target), 4))
		})
	}
	t.Run("through a bucket", func(t *testing.T) {
		target := realServer(t)
		via := urlOf(t, "TERAPUSH_TEST_S3")
		target.Method, target.Table, target.Via = stageLoad, "checked", &via
		found := check(t, openChecker(t, target), 4)
		require.Contains(t, found, "store from the server")
		for _, f := range found {
			require.NotEqual(t, loader.GradeFail, f.Grade, f)
		}
	})
}
