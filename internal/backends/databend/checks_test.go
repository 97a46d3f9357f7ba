package databend

import (
	"testing"

	"github.com/stretchr/testify/require"

	standin "github.com/terapush/terapush/internal/fake/databend"
	"github.com/terapush/terapush/pkg/loader"
)

// healthy makes the server answer what CheckServer asks, with nothing wrong.
func (f *fake) healthy() {
	f.on("SELECT name, value FROM system.settings WHERE name IN ('"+queueTimeout, say(result([]any{queueTimeout, "0"},
		[]any{executeTimeout, "0"}, []any{resultTimeout, "60"}, []any{fileMemory, "24"})))
	f.on("SELECT `group`", say(configured("8", "256", "s3")))
	f.on(selectNodes, say(result([]any{"tenant/warehouse", "10.0.0.1"})))
	f.on("EXPLAIN", say(result([]any{"InsertPlan"})))
	f.on("PRESIGN", say(result([]any{"PUT", `{"host":"x"}`, f.URL + "/bucket/x"})))
}

func intent(workers int) loader.Intent {
	return loader.Intent{Preparation: preparation(streamingLoad), Workers: workers}
}

func configured(running, sessions, storage string) string {
	return result([]any{"query", "max_running_queries", running}, []any{"query", "max_active_sessions", sessions}, []any{"storage", "type", storage})
}

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

func TestChecks(t *testing.T) {
	settings := "SELECT name, value FROM system.settings WHERE name IN ('" + queueTimeout
	for name, c := range map[string]struct {
		method string
		broken func(f *fake)
		want   loader.Finding // zero: nothing is wrong
	}{
		"healthy":                    {},
		"healthy, insert":            {method: insert},
		"healthy, insert-no-presign": {method: insertNoPresign},
		"healthy, stage-load":        {method: stageLoad},
		"too few slots": {
			broken: func(f *fake) { f.on("SELECT `group`", say(configured("2", "256", "s3"))) },
			want: loader.Finding{Check: "running queries", Grade: loader.GradeWarn,
				Found: "max_running_queries = 2 on each host: 4 of 6 workers always wait",
				Fix:   "[query] max_running_queries = 6 in databend-query.toml and restart the server, or --workers 2"},
		},
		"uploads take no slots": {
			method: stageLoad, broken: func(f *fake) { f.on("SELECT `group`", say(configured("2", "256", "s3"))) },
		},
		"too few sessions": {
			broken: func(f *fake) { f.on("SELECT `group`", say(configured("8", "4", "s3"))) },
			want: loader.Finding{Check: "sessions", Grade: loader.GradeWarn,
				Found: "max_active_sessions = 4 on each host: sessions above it are refused",
				Fix:   "[query] max_active_sessions = 12 in databend-query.toml and restart the server, or --workers 4"},
		},
		"a table in memory": {
			broken: func(f *fake) { f.on("SELECT `group`", say(configured("8", "256", "memory"))) },
			want: loader.Finding{Check: "storage", Grade: loader.GradeWarn, Found: "type memory: the rows are gone when the server ends",
				Fix: `[storage] type = "s3" (or fs) in databend-query.toml`},
		},
		"statements are ended": {
			broken: func(f *fake) {
				f.on(settings, say(result([]any{queueTimeout, "0"}, []any{executeTimeout, "30"}, []any{resultTimeout, "60"}, []any{fileMemory, "24"})))
			},
			want: loader.Finding{Check: executeTimeout, Grade: loader.GradeWarn, Found: "max_execute_time_in_seconds = 30: the server ends a longer statement, also one that loads",
				Fix: "--set max_execute_time_in_seconds=0"},
		},
		"statements may not wait": {
			broken: func(f *fake) { f.on(settings, say(result([]any{queueTimeout, "5"}, []any{resultTimeout, "60"}))) },
			want: loader.Finding{Check: queueTimeout, Grade: loader.GradeWarn, Found: "statement_queued_timeout_in_seconds = 5: a statement that waits longer for its turn is refused",
				Fix: "--set statement_queued_timeout_in_seconds=0"},
		},
		"answers are forgotten": {
			broken: func(f *fake) { f.on(settings, say(result([]any{resultTimeout, "5"}))) },
			want: loader.Finding{Check: resultTimeout, Grade: loader.GradeWarn,
				Found: "http_handler_result_timeout_secs = 5: the answer of a long statement may be lost between two polls",
				Fix:   "--set http_handler_result_timeout_secs=60"},
		},
		"names are forgotten": {
			method: stageLoad, broken: func(f *fake) { f.on(settings, say(result([]any{resultTimeout, "60"}, []any{fileMemory, "2"}))) },
			want: loader.Finding{Check: "file names", Grade: loader.GradeWarn,
				Found: "load_file_metadata_expire_hours = 2: a run that is resumed later loads files twice",
				Fix:   "SET GLOBAL load_file_metadata_expire_hours = 24"},
		},
		"no right to insert": {
			broken: func(f *fake) {
				f.on("EXPLAIN INSERT", say(failure(permissionDenied, "Permission denied: privilege [Insert] is required on 'default'.'db'.'t'")))
			},
			want: loader.Finding{Check: "privileges", Grade: loader.GradeFail,
				Found: "server error 1063: Permission denied: privilege [Insert] is required on 'default'.'db'.'t'",
				Fix:   "GRANT INSERT, SELECT ON db.* TO USER 'root'"},
		},
		"no right to make the table": {
			broken: func(f *fake) {
				f.on("SELECT table_id", say(result()))
				f.on("EXPLAIN CREATE TABLE", say(failure(permissionDenied, "no")))
			},
			want: loader.Finding{Check: "privileges", Grade: loader.GradeFail,
				Found: "server error 1063: no", Fix: "GRANT CREATE ON db.* TO USER 'root'"},
		},
		"a server that plans nothing": {
			broken: func(f *fake) { f.on("EXPLAIN", say(failure(1005, "no"))) },
			want:   loader.Finding{Check: "privileges", Grade: loader.GradeUnknown, Found: "the server does not say: server error 1005: no"},
		},
		"nodes that cannot be listed": {
			broken: func(f *fake) { f.on(selectNodes, say(failure(1063, "no"))) },
			want: loader.Finding{Check: "cluster", Grade: loader.GradeUnknown, Found: "the server does not say: server error 1063: no",
				Fix: "GRANT ROLE account_admin TO USER …; hosted servers hide their configuration from everybody"},
		},
		"two nodes of which one is named": {
			broken: func(f *fake) { f.on(selectNodes, say(result([]any{"w", "127.0.0.1"}, []any{"w", "10.0.0.2"}))) },
			want: loader.Finding{Check: "cluster", Grade: loader.GradeWarn,
				Found: "w: the target names 1 of 2 nodes; the others parse no rows",
				Fix:   "name them all: databend://user@127.0.0.1,10.0.0.2/…"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.healthy()
			if c.method == "" {
				c.method = streamingLoad
			}
			l, err := New().Open(t.Context(), f.target(c.method), testDeps())
			require.NoError(t, err)
			t.Cleanup(func() { _ = l.Close() })
			if c.broken != nil {
				c.broken(f)
			}
			findings, err := l.(loader.Checker).CheckServer(t.Context(), intent(6))
			require.NoError(t, err)
			want := map[string]loader.Finding{}
			if c.want.Check != "" {
				want[c.want.Check] = c.want
			}
			require.Equal(t, want, troubles(findings))
		})
	}
}

// What nobody but an administrator may read is unknown, and no failure.
func TestChecksWithoutTheConfiguration(t *testing.T) {
	f := newFake(t)
	f.healthy()
	f.on("SELECT `group`", say(failure(1063, "not allowed")))
	l, err := New().Open(t.Context(), f.target(streamingLoad), testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	findings, err := l.(loader.Checker).CheckServer(t.Context(), intent(6))
	require.NoError(t, err)
	found := troubles(findings)
	require.Len(t, found, 1)
	require.Equal(t, loader.GradeUnknown, found["running queries"].Grade)
	require.Contains(t, found["running queries"].Fix, "GRANT ROLE account_admin")
}

func TestChecksOfAServerThatIsGone(t *testing.T) {
	f := newFake(t)
	f.healthy()
	l, err := New().Open(t.Context(), f.target(streamingLoad), testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	f.Close()
	_, err = l.(loader.Checker).CheckServer(t.Context(), intent(0))
	require.ErrorContains(t, err, "check 127.0.0.1:")
}

// A server that lets one question wait is asked no more.
func TestChecksOfABusyServer(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.healthy()
	l, err := New().Open(t.Context(), f.target(streamingLoad), testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	held := make(chan struct{})
	t.Cleanup(func() { close(held) })
	f.on(selectNodes, func(seen) string { <-held; return result() })
	findings, err := l.(loader.Checker).CheckServer(t.Context(), intent(0))
	require.NoError(t, err)
	require.Equal(t, "answers", findings[len(findings)-1].Check)
	require.Empty(t, f.asked("EXPLAIN"))
}

// The stand-in answers as the real one does.
func TestChecksOfTheStandIn(t *testing.T) {
	for _, method := range []string{streamingLoad, insertNoPresign, stageLoad} {
		t.Run(method, func(t *testing.T) {
			target := standIn(t, standin.Options{})
			target.Method, target.Table = method, "examined"
			require.Empty(t, troubles(examine(t, target)))
		})
	}
}

func TestChecksOfTheRealServer(t *testing.T) {
	for _, method := range []string{streamingLoad, insertNoPresign, stageLoad} {
		t.Run(method, func(t *testing.T) {
			target := realServer(t)
			target.Method, target.Table = method, "examined"
			findings := examine(t, target)
			for _, f := range findings {
				t.Logf("%-7s %-18s %s", f.Grade, f.Check, f.Found)
			}
			require.Empty(t, troubles(findings))
			require.GreaterOrEqual(t, len(findings), 6)
		})
	}
}

func TestChecksOfTheRealServerThroughABucket(t *testing.T) {
	target := realServer(t)
	target.Method, target.Table = stageLoad, "examined"
	via := urlOf(t, "TERAPUSH_TEST_S3")
	target.Via = &via
	findings := examine(t, target)
	for _, f := range findings {
		t.Logf("%-7s %-22s %s", f.Grade, f.Check, f.Found)
		require.NotEqual(t, loader.GradeFail, f.Grade)
	}
	require.Contains(t, troubles(findings), "store from the server")
}

func examine(t *testing.T, target loader.Target) []loader.Finding {
	t.Helper()
	l, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	findings, err := l.(loader.Checker).CheckServer(t.Context(), intent(4))
	require.NoError(t, err)
	return findings
}
