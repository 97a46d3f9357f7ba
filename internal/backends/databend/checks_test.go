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
	f.on("SHOW GRANTS", say(result([]any{"INSERT,SELECT", "db", "1", "USER", "root", "GRANT INSERT,SELECT ON 'default'.'db'.* TO 'root'@'%'"})))
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

func TestExamineNamesWhatIsWrong(t *testing.T) {
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
				Found: "max_running_queries = 2 on each host, 2 in all: of 6 workers 4 wait at any time",
				Fix:   "[query] max_running_queries = 6 in databend-query.toml, and a restart; or --workers 2"},
		},
		"uploads take no slots": {
			method: stageLoad, broken: func(f *fake) { f.on("SELECT `group`", say(configured("2", "256", "s3"))) },
		},
		"too few sessions": {
			broken: func(f *fake) { f.on("SELECT `group`", say(configured("8", "4", "s3"))) },
			want: loader.Finding{Check: "sessions", Grade: loader.GradeWarn,
				Found: "max_active_sessions = 4 on each host: 6 workers are more, and what comes above it is refused",
				Fix:   "[query] max_active_sessions = 12 in databend-query.toml, and a restart; or --workers 4"},
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
			want: loader.Finding{Check: executeTimeout, Grade: loader.GradeWarn, Found: "a statement is ended after 30 s, also one that loads",
				Fix: "--set max_execute_time_in_seconds=0"},
		},
		"statements may not wait": {
			broken: func(f *fake) { f.on(settings, say(result([]any{queueTimeout, "5"}, []any{resultTimeout, "60"}))) },
			want: loader.Finding{Check: queueTimeout, Grade: loader.GradeWarn, Found: "a statement that has waited 5 s for its turn is refused",
				Fix: "--set statement_queued_timeout_in_seconds=0"},
		},
		"answers are forgotten": {
			broken: func(f *fake) { f.on(settings, say(result([]any{resultTimeout, "5"}))) },
			want: loader.Finding{Check: resultTimeout, Grade: loader.GradeWarn,
				Found: "an answer is forgotten after 5 s: that of a long statement may be lost between two looks at it",
				Fix:   "--set http_handler_result_timeout_secs=60"},
		},
		"names are forgotten": {
			method: stageLoad, broken: func(f *fake) { f.on(settings, say(result([]any{resultTimeout, "60"}, []any{fileMemory, "2"}))) },
			want: loader.Finding{Check: "file names", Grade: loader.GradeWarn,
				Found: "COPY remembers for 2 hours which files it has loaded, and a run counts on 24: one that is resumed later than that loads files twice",
				Fix:   "SET GLOBAL load_file_metadata_expire_hours = 24"},
		},
		"no streaming load": {
			broken: func(f *fake) { delete(f.routes, "/v1/streaming_load") },
			want: loader.Finding{Check: "streaming load", Grade: loader.GradeFail,
				Found: "this server (v1.2.900) has no streaming load: HTTP status 404: not found",
				Fix:   "it came with version 1.2.782; take --method insert-no-presign, which every server has"},
		},
		"no presigned uploads": {
			method: insert, broken: func(f *fake) {
				f.on("PRESIGN", say(failure(storageUnsupported, "storage doesn't support presign operation")))
			},
			want: loader.Finding{Check: "presigned uploads", Grade: loader.GradeFail,
				Found: "the storage behind stage @~ knows no presigned URLs: server error 3902: storage doesn't support presign operation",
				Fix:   "--method insert-no-presign, which uploads through the node"},
		},
		"no presigned uploads, and none needed": {
			method: insertNoPresign, broken: func(f *fake) {
				f.on("PRESIGN", say(failure(storageUnsupported, "storage doesn't support presign operation")))
			},
		},
		"no right to insert": {
			broken: func(f *fake) {
				f.on("SHOW GRANTS", say(result([]any{"GRANT SELECT ON 'default'.'db'.'other' TO 'root'@'%'"})))
				f.on("EXPLAIN INSERT", say(failure(permissionDenied, "Permission denied: privilege [Insert] is required on 'default'.'db'.'t'")))
			},
			want: loader.Finding{Check: "privileges", Grade: loader.GradeFail,
				Found: "rows cannot be put into db.t: server error 1063: Permission denied: privilege [Insert] is required on 'default'.'db'.'t'",
				Fix:   "GRANT INSERT, SELECT ON db.* TO USER 'root'"},
		},
		"a right by a role that is not listed": {
			broken: func(f *fake) {
				f.on("SHOW GRANTS", say(result()))
				f.on("EXPLAIN INSERT", say(result([]any{"InsertPlan"})))
			},
		},
		"no right to make the table, as far as is listed": {
			broken: func(f *fake) { f.on("SELECT table_id", say(result())) },
			want: loader.Finding{Check: "privileges", Grade: loader.GradeUnknown,
				Found: "SHOW GRANTS lists no CREATE on db.t: a role may have it all the same", Fix: "GRANT CREATE ON db.* TO USER 'root'"},
		},
		"nodes that cannot be listed": {
			broken: func(f *fake) { f.on(selectNodes, say(failure(1063, "no"))) },
			want: loader.Finding{Check: "cluster", Grade: loader.GradeUnknown, Found: "the nodes cannot be listed: server error 1063: no",
				Fix: "GRANT SELECT ON system.clusters TO USER …"},
		},
		"two nodes of which one is named": {
			broken: func(f *fake) { f.on(selectNodes, say(result([]any{"w", "127.0.0.1"}, []any{"w", "10.0.0.2"}))) },
			want: loader.Finding{Check: "cluster", Grade: loader.GradeWarn,
				Found: "w: 2 nodes, and the target names 1, by its own address 127.0.0.1: the others parse no rows",
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
func TestExamineWithoutTheConfiguration(t *testing.T) {
	f := newFake(t)
	f.healthy()
	f.on("SELECT `group`", say(failure(1063, "not allowed")))
	l, err := New().Open(t.Context(), f.target(streamingLoad), testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	findings, err := l.(loader.Checker).CheckServer(t.Context(), intent(6))
	require.NoError(t, err)
	found := troubles(findings)
	require.Len(t, found, 2)
	for _, check := range []string{"running queries", "storage"} {
		require.Equal(t, loader.GradeUnknown, found[check].Grade)
		require.Contains(t, found[check].Fix, "GRANT ROLE account_admin")
	}
}

func TestExamineOfAServerThatIsGone(t *testing.T) {
	f := newFake(t)
	f.healthy()
	l, err := New().Open(t.Context(), f.target(streamingLoad), testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	f.Close()
	_, err = l.(loader.Checker).CheckServer(t.Context(), intent(0))
	require.ErrorContains(t, err, "examine 127.0.0.1:")
}

// A server that lets one question wait is asked no more.
func TestExamineOfABusyServer(t *testing.T) {
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
	require.Equal(t, []string{"version", "answers"}, []string{findings[0].Check, findings[1].Check})
	require.Empty(t, f.asked("SHOW GRANTS"))
}

// The stand-in answers as the real one does.
func TestExamineTheStandIn(t *testing.T) {
	for _, method := range []string{streamingLoad, insertNoPresign, stageLoad} {
		t.Run(method, func(t *testing.T) {
			target := standIn(t, standin.Options{})
			target.Method, target.Table = method, "examined"
			require.Empty(t, troubles(examine(t, target)))
		})
	}
}

func TestExamineTheRealServer(t *testing.T) {
	for _, method := range []string{streamingLoad, insertNoPresign, stageLoad} {
		t.Run(method, func(t *testing.T) {
			target := realServer(t)
			target.Method, target.Table = method, "examined"
			findings := examine(t, target)
			for _, f := range findings {
				t.Logf("%-7s %-18s %s", f.Grade, f.Check, f.Found)
			}
			require.Empty(t, troubles(findings))
			require.GreaterOrEqual(t, len(findings), 8)
		})
	}
}

func TestExamineTheRealServerThroughABucket(t *testing.T) {
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

func TestReadGrant(t *testing.T) {
	on := tableName{"db", "t"}
	for text, want := range map[string]bool{
		"GRANT ALL ON *.* TO 'root'@'%'":                                  true,
		"GRANT SELECT,INSERT ON 'default'.'db'.* TO 'u'@'%'":              true,
		"GRANT INSERT ON 'default'.'db'.'t' TO ROLE `r`":                  true,
		"GRANT OWNERSHIP ON 'default'.'db'.'t' TO ROLE `r`":               true,
		"GRANT INSERT ON 'db'.* TO 'u'@'%'":                               true,
		"GRANT INSERT ON 'default'.'db'.'other' TO 'u'@'%'":               false,
		"GRANT INSERT ON 'default'.'other'.* TO 'u'@'%'":                  false,
		"GRANT SELECT ON 'default'.'db'.'t' TO 'u'@'%'":                   false,
		"GRANT Read ON STAGE 's' TO 'u'@'%'":                              false,
		"GRANT ROLE `r` TO 'u'@'%'":                                       false,
		"something that a later version may say about INSERT on 'db'.'t'": false,
	} {
		allowed := false
		for _, g := range readGrant(text) {
			allowed = allowed || g.allows("INSERT", on)
		}
		require.Equal(t, want, allowed, text)
	}
}
