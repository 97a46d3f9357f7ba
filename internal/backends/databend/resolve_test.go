package databend

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

func TestResolveEndsEveryAttemptAndThenLooks(t *testing.T) {
	f := newFake(t)
	db, _ := f.open(t, methodStreamingLoad)
	ids := queryIDs(batchKind, testBatch(2).ID, 2)
	var order []string
	note := func(what, answer string) func(seen) string {
		return func(seen) string {
			order = append(order, what)
			return answer
		}
	}
	for _, id := range ids {
		f.routes["/v1/query/"+id+"/kill"] = func(http.ResponseWriter, *http.Request) { order = append(order, "cancel") }
	}
	left := 2
	f.call(selectProcesses(ids), func(s seen) string {
		if left--; left < 0 {
			return note("look", result())(s)
		}
		return note("look", result([]any{"s1"}))(s)
	})
	f.call("KILL QUERY 's1'", note("kill", failure(1063, "not allowed"))) // then the query is awaited
	f.call("SELECT COUNT(*)", note("count", result([]any{"3"})))
	resolves(t, db, 2, loader.Yes)
	require.Equal(t, "cancel cancel look kill look kill look count", strings.Join(order, " "))
}

// An insert that was killed, or lost its answer, leaves a file.
func TestResolveRemovesFilesOfEarlierAttempts(t *testing.T) {
	const remove = "REMOVE @~/terapush/r-1/ PATTERN = '[0-9]+-000000000002[.]csv'"
	for method, want := range map[string]string{methodInsert: remove, methodInsertNoPresign: remove, methodStreamingLoad: "", methodStageLoad: ""} {
		f := newFake(t)
		f.on("PRESIGN UPLOAD", result([]any{"PUT", "{}", f.URL + "/store"}))
		db, _ := f.open(t, method)
		f.on("SELECT COUNT(*)", result([]any{"0"}))
		removed := ""
		f.call("REMOVE", func(s seen) string {
			require.NotEmpty(t, f.asked("SELECT id FROM system.processes"), "a query may still read the file")
			removed += s.query.SQL
			return failure(1063, "not allowed") // no reason to fail
		})
		resolves(t, db, 2, loader.No)
		require.Equal(t, want, removed, method)
	}
}

// Without the list, or the count, nothing is known.
func TestResolveNeedsItsAnswers(t *testing.T) {
	for _, refused := range []string{"SELECT id FROM system.processes", "SELECT COUNT(*)"} {
		f := newFake(t)
		db, _ := f.open(t, methodStreamingLoad)
		f.on("SELECT COUNT(*)", result([]any{"0"}))
		f.on(refused, failure(1063, "not allowed"))
		got, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
		require.ErrorContains(t, err, "not allowed")
		require.Equal(t, loader.Unknown, got.Applied)
		if refused == "SELECT COUNT(*)" {
			require.Equal(t, loader.Unknown, New().Classify(err).Applied, "the batch may be in")
		}
	}
}

func TestResolveLooksOnEveryHost(t *testing.T) {
	f, other := newFake(t), newFake(t)
	db, _ := f.open(t, methodStreamingLoad, other.alsoHost)
	other.on("SELECT id FROM system.processes", failure(1063, "not allowed"))
	_, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
	require.ErrorContains(t, err, strings.TrimPrefix(other.URL, "http://"))
}

func TestSessionsTakeHostsInTurn(t *testing.T) {
	f, other := newFake(t), newFake(t)
	db, s := f.open(t, methodStreamingLoad, other.alsoHost)
	for _, session := range []loader.Session{s, newSession(t, db, methodStreamingLoad)} {
		f.streams(http.StatusOK, streamed(3))
		other.streams(http.StatusOK, streamed(3))
		_, err := session.Load(t.Context(), testBatch(1))
		require.NoError(t, err)
	}
	require.Len(t, other.asked("/v1/streaming_load"), 1)
	require.Equal(t, 16, db.Caps().MaxInFlight)
}
