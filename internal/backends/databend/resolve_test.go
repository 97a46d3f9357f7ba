package databend

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

func TestResolveEndsEveryAttemptAndThenLooks(t *testing.T) {
	f := newFake(t)
	db, _ := f.open(t, streamingLoad)
	ref := loader.RefOf(testBatch(2))
	ids := queryIDs(batchKind, ref.ID, 2)
	var order []string
	for _, id := range ids {
		f.routes["/v1/query/"+id+"/kill"] = func(http.ResponseWriter, *http.Request) { order = append(order, "cancel") }
	}
	left := 2
	f.on(selectProcesses(ids), func(seen) string {
		order = append(order, "look")
		if left--; left < 0 {
			return result()
		}
		return result([]any{"s1"})
	})
	f.on("KILL QUERY 's1'", func(seen) string {
		order = append(order, "kill")
		return failure(1063, "not allowed") // then one waits
	})
	f.on("SELECT COUNT(*)", func(seen) string {
		order = append(order, "count")
		return result([]any{"3"})
	})
	got, err := db.Resolve(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, loader.Resolution{Applied: loader.Yes}, got)
	require.Equal(t, "cancel cancel look kill look kill look count", strings.Join(order, " "))
}

func TestResolutions(t *testing.T) {
	for found, want := range map[string]loader.Applied{"0": loader.No, "3": loader.Yes, "1": loader.Unknown, "6": loader.Unknown} {
		f := newFake(t)
		db, _ := f.open(t, insertNoPresign)
		f.on("SELECT COUNT(*)", say(result([]any{found})))
		got, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
		require.NoError(t, err, "what was found is an answer")
		require.Equal(t, want, got.Applied)
		if want == loader.Unknown {
			require.Contains(t, got.Reason, found+" rows with keys 6 to 8")
			continue
		}
		require.Empty(t, got.Reason)
	}
}

// A streaming load whose connection broke leaves a part, and its label.
func TestAPartOfAStreamingLoadIsRemoved(t *testing.T) {
	f := newFake(t)
	db, s := f.open(t, streamingLoad)
	count := "2"
	f.on("SELECT COUNT(*) FROM `db`.`t` WHERE `id` BETWEEN 6 AND 8", func(seen) string { return result([]any{count}) })
	f.on("DELETE FROM `db`.`t` WHERE `id` BETWEEN 6 AND 8", func(seen) string { count = "0"; return wrote(2) })
	got, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
	require.NoError(t, err)
	require.Equal(t, loader.No, got.Applied)
	require.Len(t, f.asked("DELETE"), 1)
	deletion := f.asked("DELETE")[0].header
	require.Equal(t, "terapush:r-1:db.t:2:removal-1", deletion.Get("X-DATABEND-DEDUPLICATE-LABEL"))
	require.Equal(t, queryID("removal-1", testBatch(1).ID, 1), deletion.Get("X-DATABEND-QUERY-ID"))

	var label string
	f.routes["/v1/streaming_load"] = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		label = r.Header.Get("X-DATABEND-DEDUPLICATE-LABEL")
		_, _ = io.WriteString(w, `{"id":"x","stats":{"rows":3,"bytes":15}}`)
	}
	_, err = s.Load(t.Context(), testBatch(2))
	require.NoError(t, err)
	require.Equal(t, "terapush:r-1:db.t:2:again-1", label)
	_, err = s.Load(t.Context(), testBatch(3))
	require.NoError(t, err)
	require.Equal(t, "terapush:r-1:db.t:2:again-1", label, "a label protects only what has the same")
}

// An insert that was killed, or lost its answer, leaves a file.
func TestResolveRemovesFilesOfEarlierAttempts(t *testing.T) {
	for method, want := range map[string]string{
		insert: "REMOVE @~/terapush/r-1/ PATTERN = '[0-9]+-000000000002[.]csv'", insertNoPresign: "REMOVE @~/terapush/r-1/ PATTERN = '[0-9]+-000000000002[.]csv'",
		streamingLoad: "", stageLoad: "",
	} {
		f := newFake(t)
		f.on("PRESIGN UPLOAD", say(result([]any{"PUT", "{}", f.URL + "/store"})))
		db, _ := f.open(t, method)
		f.on("SELECT COUNT(*)", say(result([]any{"0"})))
		f.on("REMOVE", func(seen) string {
			require.NotEmpty(t, f.asked("SELECT id FROM system.processes"), "a query may still read the file")
			return failure(1063, "not allowed") // no reason to give up
		})
		got, err := db.Resolve(t.Context(), loader.RefOf(testBatch(2)))
		require.NoError(t, err, method)
		require.Equal(t, loader.No, got.Applied, method)
		removed := ""
		for _, s := range f.asked("REMOVE") {
			removed += s.sql
		}
		require.Equal(t, want, removed, method)
	}
}

func TestResolveNeedsTheProcessList(t *testing.T) {
	f := newFake(t)
	db, _ := f.open(t, streamingLoad)
	f.on("SELECT id FROM system.processes", say(failure(1063, "not allowed")))
	got, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
	require.ErrorContains(t, err, "not allowed")
	require.Equal(t, loader.Unknown, got.Applied)
	require.Empty(t, f.asked("SELECT COUNT(*)"))
}

func TestResolveLooksOnEveryHost(t *testing.T) {
	f, other := newFake(t), newFake(t)
	db, _ := f.open(t, streamingLoad, func(t *loader.Target) {
		t.Hosts = append(t.Hosts, strings.TrimPrefix(other.URL, "http://"))
	})
	f.on("SELECT COUNT(*)", say(result([]any{"0"})))
	_, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
	require.NoError(t, err)
	require.Len(t, f.asked("SELECT id FROM system.processes"), 2+1, "attempts and removals, and once before the run")
	require.Len(t, other.asked("SELECT id FROM system.processes"), 2)

	other.on("SELECT id FROM system.processes", say(failure(1063, "not allowed")))
	_, err = db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
	require.ErrorContains(t, err, strings.TrimPrefix(other.URL, "http://"))
}

func TestResolveWaitsNoLongerThanItsContext(t *testing.T) {
	f := newFake(t)
	db, _ := f.open(t, streamingLoad)
	ctx, cancel := context.WithCancel(t.Context())
	f.on("SELECT id FROM system.processes", say(result([]any{"s1"})))
	f.on("KILL QUERY", func(seen) string { cancel(); return result() })
	_, err := db.Resolve(ctx, loader.RefOf(testBatch(1)))
	require.ErrorIs(t, err, context.Canceled)
}

func TestSessionsTakeHostsInTurn(t *testing.T) {
	f, other := newFake(t), newFake(t)
	db, first := f.open(t, streamingLoad, func(t *loader.Target) {
		t.Hosts = append(t.Hosts, strings.TrimPrefix(other.URL, "http://"))
	})
	second, err := db.Session(t.Context(), contractOf(streamingLoad))
	require.NoError(t, err)
	for _, server := range []*fake{f, other} {
		server.routes["/v1/streaming_load"] = func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, `{"id":"x","stats":{"rows":3,"bytes":15}}`)
		}
	}
	for _, s := range []loader.Session{first, second} {
		_, err := s.Load(t.Context(), testBatch(1))
		require.NoError(t, err)
	}
	require.Len(t, other.asked("/v1/streaming_load"), 1)
	require.Equal(t, 16, db.Caps().MaxInFlight)
}
