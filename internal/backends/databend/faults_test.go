package databend

import (
	"crypto/rand"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/faultproxy"
	"github.com/terapush/terapush/pkg/loader"
)

func newSession(t *testing.T, l loader.Loader, method string) loader.Session {
	t.Helper()
	s, err := l.Session(t.Context(), contractOf(method))
	require.NoError(t, err)
	return s
}

// resolves asks what became of an attempt at testBatch.
func resolves(t *testing.T, db *opened, attempt int, want loader.Applied) {
	t.Helper()
	backendtest.Resolves(t, db, loader.RefOf(testBatch(attempt)), want)
}

// runs makes the server list a query until it is killed often enough; left says how many kills that takes, and is never
// below 0.
func (f *fake) runs(ids []string, kills int64) (left *atomic.Int64) {
	left = new(atomic.Int64)
	left.Store(kills)
	f.call(selectProcesses(ids), func(seen) string {
		if left.Load() == 0 {
			return result()
		}
		return result([]any{"session-1"})
	})
	f.call("KILL QUERY 'session-1'", func(seen) string {
		left.Store(max(left.Load()-1, 0))
		return result()
	})
	return left
}

// counts makes the server count rows, which nobody may ask for while a query still runs.
func (f *fake) counts(t *testing.T, rows string, running *atomic.Int64) {
	f.call("SELECT COUNT(*) FROM `db`.`t` WHERE `id` BETWEEN 6 AND 8", func(seen) string {
		if running != nil && running.Load() > 0 {
			t.Error("the rows are counted while the query runs")
		}
		return result([]any{rows})
	})
}

// A page that is refused says nothing about the statement, which goes on.
func TestARefusedPage(t *testing.T) {
	for _, status := range []int{400, 401, 404, 429, 503} {
		f := newFake(t)
		f.uploads(t, "")
		db, s := f.open(t, methodInsertNoPresign)
		f.on("INSERT INTO", `{"id":"q","state":"Starting","data":[],"next_uri":"/v1/query/q/page/1"}`)
		f.routes["/v1/query/q/page/1"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
		running := f.runs(queryIDs(batchKind, testBatch(1).ID, 1), 1)
		f.counts(t, "0", running)
		_, err := s.Load(t.Context(), testBatch(1))
		v := New().Classify(err)
		require.Equal(t, []any{loader.Unknown, true, true}, []any{v.Applied, v.Retry, v.SessionDead}, "%d: %v", status, err)
		require.Empty(t, f.asked("REMOVE"), "the statement may not have read its file yet")

		resolves(t, db, 1, loader.No)
		require.Zero(t, running.Load())
		require.Len(t, f.asked("REMOVE"), 1)
		f.on("INSERT INTO", wrote(3))
		_, err = newSession(t, db, methodInsertNoPresign).Load(t.Context(), testBatch(2))
		require.NoError(t, err)
	}
}

// A load whose connection broke before the server began with it is not listed, so it cannot be ended. It must have
// brought no rows: they would be there beside those of the next attempt.
func TestALoadThatTheServerBeginsLate(t *testing.T) {
	f := newFake(t)
	proxy, err := faultproxy.New(f.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	_, s := f.open(t, methodStreamingLoad, func(t *loader.Target) { t.Hosts = []string{proxy.Addr()} })
	head, late := make(chan struct{}), make(chan struct{})
	f.routes["/v1/streaming_load"] = func(_ http.ResponseWriter, r *http.Request) {
		close(head)
		<-late
		body, _ := io.ReadAll(r.Body) // which asks for it
		if len(body) > 0 {
			t.Errorf("the late load has %d bytes", len(body))
		}
	}
	failed := make(chan error, 1)
	b := testBatch(1)
	go func() {
		_, err := s.Load(t.Context(), b)
		failed <- err
	}()
	<-head
	proxy.Reset()
	err = <-failed
	close(late)
	require.Error(t, err)
	require.Zero(t, b.Sent(), "no row is sent to a query that is not listed")
}

// A deletion whose answer is lost must not run after the batch is in.
func TestALateDeletion(t *testing.T) {
	f := newFake(t)
	db, _ := f.open(t, methodStreamingLoad)
	ref := loader.RefOf(testBatch(1))
	var removals []string
	for n := range maxRemovals {
		removals = append(removals, queryIDs(removalKind(n+1), ref.ID, 1)...)
	}
	f.counts(t, "2", nil)
	f.on("DELETE", `{"id":"q","state":"Run`)
	_, err := db.Resolve(t.Context(), ref)
	require.Error(t, err, "ask again")
	running := f.runs(removals, 1)
	f.counts(t, "2", running)
	f.call("DELETE", func(seen) string {
		f.counts(t, "0", running)
		return wrote(2)
	})
	resolves(t, db, 1, loader.No)
	require.Zero(t, running.Load(), "the first deletion is ended")

	sent := f.asked("DELETE")
	require.Len(t, sent, 2)
	for i, d := range sent {
		// One that was held up on its way even longer finds its label taken.
		require.Equal(t, removalLabel(db.plan.name, ref.ID, 1), d.header.Get(labelName))
		require.Equal(t, removals[i], d.header.Get(idName))
	}
}

// The engine runs a deletion once, whose label is taken: also the one whose answer was lost, and which comes late.
func TestADeletionRunsOnce(t *testing.T) {
	target := realServer(t)
	lost := &faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Match: []byte(`"sql":"DELETE`), Times: 1}
	proxy, err := faultproxy.New(target.Hosts[0], lost)
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	target.Hosts, target.Method, target.Table = []string{proxy.Addr()}, methodStreamingLoad, "t_"+strings.ToLower(rand.Text())
	db, p := openTarget(t, target), preparation(methodStreamingLoad)
	p.Run = target.Table
	_, err = db.Prepare(t.Context(), p)
	require.NoError(t, err)
	t.Cleanup(func() { statementOn(t, target, "DROP TABLE "+target.Table) })
	state, err := db.State()
	require.NoError(t, err)
	b := testBatch(1)
	b.ID.Run = p.Run
	statementOn(t, target, "INSERT INTO "+target.Table+" VALUES (6, 'a'), (7, 'b')") // a part of it
	_, err = db.Resolve(t.Context(), loader.RefOf(b))
	require.Error(t, err, "ask again")
	require.EqualValues(t, 1, lost.Injected())
	resolvesTo := func(want int64) {
		backendtest.Resolves(t, db, loader.RefOf(b), map[int64]loader.Applied{0: loader.No, 3: loader.Yes}[want])
		found, err := db.CountRows(t.Context(), keysOf(loader.RefOf(b)))
		require.NoError(t, err)
		require.Equal(t, want, found)
	}
	resolvesTo(0)
	b.Attempt = 2
	_, err = newSession(t, db, methodStreamingLoad).Load(t.Context(), b)
	require.NoError(t, err)
	late := statement{
		sql:  statements{state.Statements}.deleteRows(keysOf(loader.RefOf(b))),
		tags: tags{label: removalLabel(db.plan.name, b.ID, 1), queryID: queryID("late", b.ID, 1)},
	}
	_, err = db.run(t.Context(), late, nil)
	require.NoError(t, err)
	resolvesTo(3)
}

// A deletion that fails again and again ends with its statement in the user's hands.
func TestADeletionThatFails(t *testing.T) {
	f := newFake(t)
	db, _ := f.open(t, methodStreamingLoad)
	f.counts(t, "2", nil)
	f.on("DELETE", failure(2001, "meta service: timeout"))
	for range maxRemovals {
		_, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
		require.Error(t, err)
	}
	r, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
	require.NoError(t, err)
	require.Equal(t, loader.Unknown, r.Applied)
	require.Contains(t, r.Reason, "DELETE FROM `db`.`t` WHERE `id` BETWEEN 6 AND 8")
	require.Len(t, f.asked("DELETE"), maxRemovals)
}

// An INSERT that is still listed after its kill may be committing, however long that takes.
func TestACommitThatIsRunning(t *testing.T) {
	f := newFake(t)
	db, _ := f.open(t, methodInsertNoPresign)
	db.grace = time.Nanosecond
	running := f.runs(queryIDs(batchKind, testBatch(1).ID, 1), 4)
	f.counts(t, "3", running)
	resolves(t, db, 1, loader.Yes)
	require.Len(t, f.asked("KILL QUERY"), 4)
}

// A streaming load that waits for a client which is gone would be listed until the kernel gives up the connection.
func TestAStreamingLoadWithoutItsClient(t *testing.T) {
	f := newFake(t)
	db, _ := f.open(t, methodStreamingLoad)
	db.grace = time.Nanosecond
	f.runs(queryIDs(batchKind, testBatch(1).ID, 1), math.MaxInt64)
	f.counts(t, "0", nil)
	resolves(t, db, 1, loader.No)
}

// Where a host is down, the others are used.
func TestAHostThatIsDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	down := listener.Addr().String()
	require.NoError(t, listener.Close())
	f := newFake(t)
	f.uploads(t, "")
	first := func(t *loader.Target) { t.Hosts = append([]string{down}, t.Hosts...) }
	for method, found := range map[string]string{methodStageLoad: "0", methodStreamingLoad: "3"} {
		db, s := f.open(t, method, first)
		f.streams(http.StatusOK, streamed(3))
		f.on("LIST", result([]any{"terapush/r-1/000000000002.csv", strconv.Itoa(len(threeRows))}))
		_, err = s.Load(t.Context(), testBatch(1))
		want := loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true}
		require.Equal(t, want, New().Classify(err), method)
		_, err = s.Load(t.Context(), testBatch(2))
		require.NoError(t, err, "the same session goes to the next host")
		f.counts(t, found, nil)
		resolves(t, db, 2, map[string]loader.Applied{methodStageLoad: loader.No, methodStreamingLoad: loader.Yes}[method])
		f.streams(http.StatusBadRequest, missingSQL)
	}
	db, _ := f.open(t, methodStreamingLoad, first)
	f.Close()
	_, err = db.Resolve(t.Context(), loader.RefOf(testBatch(2)))
	require.ErrorContains(t, err, "end earlier attempts: "+down, "one host has to show its list")
}

// Every host lists the whole warehouse, so a query is waited for once and not once a host.
func TestGraceDoesNotAddUp(t *testing.T) {
	f, other := newFake(t), newFake(t)
	db, _ := f.open(t, methodStreamingLoad, other.alsoHost)
	db.grace = 100 * time.Millisecond
	for _, server := range []*fake{f, other} {
		server.on(selectProcesses(queryIDs(batchKind, testBatch(1).ID, 1)), result([]any{"s1"}))
		server.on("KILL QUERY", result())
		server.on("SELECT COUNT(*)", result([]any{"0"}))
	}
	resolves(t, db, 1, loader.No)
	require.GreaterOrEqual(t, len(f.asked("KILL QUERY")), 2)
	require.Empty(t, other.asked("KILL QUERY"), "the first server has agreed, and the grace is over")
}

// Rows that may be someone else's are not deleted.
func TestRowsOfOthersStay(t *testing.T) {
	for name, change := range map[string]func(*fake, *loader.Preparation){
		"a table of theirs": func(f *fake, _ *loader.Preparation) {
			f.on("SELECT table_id", result([]any{"7", "FUSE", "orders of the shop"}))
		},
		"no labels": func(_ *fake, p *loader.Preparation) {
			p.Contract.Delivery, p.Contract.Dedup = loader.AtLeastOnce, loader.DedupNone
		},
		"a table that was not looked at": func(_ *fake, p *loader.Preparation) { p.Silent = true },
	} {
		f := newFake(t)
		f.on("SELECT COUNT(*)", result([]any{"1"}))
		db, p := openTarget(t, f.target(methodStreamingLoad)), preparation(methodStreamingLoad)
		change(f, &p)
		_, err := db.Prepare(t.Context(), p)
		require.NoError(t, err)
		r, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
		require.NoError(t, err)
		require.Equal(t, loader.Unknown, r.Applied, name)
		require.Contains(t, r.Reason, "1 rows with keys 6 to 8")
		require.Contains(t, r.Reason, "DELETE FROM `db`.`t` WHERE `id` BETWEEN 6 AND 8")
		require.Empty(t, f.asked("DELETE"), name)
	}
}

func (f *fake) alsoHost(t *loader.Target) {
	t.Hosts = append(t.Hosts, strings.TrimPrefix(f.URL, "http://"))
}
