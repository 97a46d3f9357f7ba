package databend

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/faultproxy"
	standin "github.com/terapush/terapush/internal/standin/databend"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func startStandIn(t *testing.T, o standin.Options) *standin.Server {
	t.Helper()
	o.Schemas = []rows.Schema{testSchema()}
	f := standin.Start(o)
	t.Cleanup(f.Close)
	return f
}

// openHosts prepares table t and opens a session. Killed queries are waited for no time at all.
func openHosts(t *testing.T, method string, hosts ...string) (*opened, loader.Session) {
	t.Helper()
	target := loader.Target{Hosts: hosts, Database: "default", Table: "t", Method: method, TLS: loader.TLSOff}
	l, err := Driver{grace: time.Nanosecond}.Open(t.Context(), target, backendtest.Deps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, err = l.Prepare(t.Context(), preparation(method))
	require.NoError(t, err)
	return l.(*opened), newSession(t, l, method)
}

// openStandIn starts a stand-in that has faults for the first request of some kinds.
func openStandIn(t *testing.T, method string, faults map[standin.Kind]standin.Fault) (*standin.Server, *opened, loader.Session) {
	t.Helper()
	f := startStandIn(t, standin.Options{Script: func(r standin.Request) standin.Fault {
		if r.Attempt > 1 {
			return standin.Fault{}
		}
		return faults[r.Kind]
	}})
	db, s := openHosts(t, method, f.Addr())
	return f, db, s
}

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

// A page that is refused says nothing about the statement, which goes on.
func TestARefusedPage(t *testing.T) {
	for _, status := range []int{400, 401, 404, 429, 503} {
		gate := make(chan struct{})
		f, db, s := openStandIn(t, insertNoPresign, map[standin.Kind]standin.Fault{
			standin.Insert: {Starting: true, Hold: gate}, standin.Page: {Refuse: status},
		})
		_, err := s.Load(t.Context(), testBatch(1))
		v := New().Classify(err)
		require.Equal(t, []any{loader.Unknown, true, true}, []any{v.Applied, v.Retry, v.SessionDead}, "%d: %v", status, err)
		require.Len(t, f.Running(), 1)
		require.Len(t, f.Files(), 1, "the statement may not have read it yet")

		resolves(t, db, 1, loader.No)
		require.Empty(t, f.Running())
		require.Empty(t, f.Files())
		_, err = newSession(t, db, insertNoPresign).Load(t.Context(), testBatch(2))
		require.NoError(t, err)
		close(gate)
		require.Len(t, f.Rows("t"), 3)
	}
}

// A load whose connection broke before the server began with it is not listed, so it cannot be ended. It must have brought no
// rows: they would be there beside those of the next attempt.
func TestALoadThatTheServerBeginsLate(t *testing.T) {
	gate := make(chan struct{})
	f, _, _ := openStandIn(t, streamingLoad, map[standin.Kind]standin.Fault{standin.Stream: {Late: gate}})
	proxy, err := faultproxy.New(f.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	db, s := openHosts(t, streamingLoad, proxy.Addr())
	failed := make(chan error, 1)
	b := testBatch(1)
	go func() {
		_, err := s.Load(t.Context(), b)
		failed <- err
	}()
	require.Eventually(t, func() bool { return f.Count(standin.Stream) > 0 }, 20*time.Second, time.Millisecond)
	proxy.Reset()
	require.Error(t, <-failed)
	require.Zero(t, b.Sent(), "no row is sent to a query that is not listed")

	resolves(t, db, 1, loader.No)
	close(gate)
	ack, err := newSession(t, db, streamingLoad).Load(t.Context(), testBatch(2))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Rows: 3}, ack, "the late one has not taken the label")
	f.Close() // waits for the late one
	require.Len(t, f.Rows("t"), 3)
}

// A deletion whose answer is lost must not run after the batch is in.
func TestALateDeletion(t *testing.T) {
	gate := make(chan struct{})
	f, db, s := openStandIn(t, streamingLoad, map[standin.Kind]standin.Fault{standin.Delete: {Cut: true, Hold: gate}})
	require.NoError(t, f.Insert("t", part()...))
	ref := loader.RefOf(testBatch(1))
	_, err := db.Resolve(t.Context(), ref)
	require.Error(t, err, "ask again")
	require.Len(t, f.Running(), 1)
	resolves(t, db, 1, loader.No)
	require.Empty(t, f.Running(), "the first deletion is ended")
	_, err = s.Load(t.Context(), testBatch(2))
	require.NoError(t, err)
	close(gate)
	require.Len(t, f.Rows("t"), 3)

	// One that was held up on its way even longer finds its label taken.
	state, err := db.State()
	require.NoError(t, err)
	tags := tags{label: removalLabel(db.plan.name, ref.ID, 1), queryID: "late"}
	_, err = db.run(t.Context(), statement{sql: statements{state.Statements}.deleteRows(keysOf(ref)), tags: tags}, nil)
	require.NoError(t, err)
	require.Len(t, f.Rows("t"), 3)
}

// part is two of the three rows of testBatch.
func part() [][]any { return [][]any{{int64(6), []byte("a")}, {int64(7), []byte("b")}} }

// A deletion that fails again and again ends with its statement in the user's hands.
func TestADeletionThatFails(t *testing.T) {
	f := startStandIn(t, standin.Options{Script: func(r standin.Request) (fault standin.Fault) {
		if r.Kind == standin.Delete {
			fault.Fail = 2001
		}
		return fault
	}})
	db, _ := openHosts(t, streamingLoad, f.Addr())
	require.NoError(t, f.Insert("t", part()...))
	for range maxRemovals {
		_, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
		require.Error(t, err)
	}
	r, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
	require.NoError(t, err)
	require.Equal(t, loader.Unknown, r.Applied)
	require.Contains(t, r.Reason, "DELETE FROM `default`.`t` WHERE `id` BETWEEN 6 AND 8")
	require.Len(t, f.Rows("t"), 2)
}

// An INSERT that is still listed after its kill may be committing, however long that takes.
func TestACommitThatIsRunning(t *testing.T) {
	gate := make(chan struct{})
	f, db, s := openStandIn(t, insertNoPresign, map[standin.Kind]standin.Fault{
		standin.Insert: {Starting: true, Hold: gate, Linger: true}, standin.Page: {Refuse: 429},
	})
	_, err := s.Load(t.Context(), testBatch(1))
	require.Error(t, err)
	done := make(chan loader.Resolution, 1)
	go func() {
		r, _ := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
		done <- r
	}()
	require.Eventually(t, func() bool { return f.Count(standin.Kill) > 3 || len(done) > 0 }, 20*time.Second, time.Millisecond)
	require.Empty(t, done, "the statement is committing")
	close(gate)
	require.Equal(t, loader.Yes, (<-done).Applied)
	require.Len(t, f.Rows("t"), 3)
}

// A streaming load that waits for a client which is gone would be listed until the kernel gives up the connection.
func TestAStreamingLoadWithoutItsClient(t *testing.T) {
	f, db, s := openStandIn(t, streamingLoad, map[standin.Kind]standin.Fault{
		standin.Stream: {Cut: true, Hold: make(chan struct{}), Linger: true},
	})
	_, err := s.Load(t.Context(), testBatch(1))
	require.Error(t, err)
	resolves(t, db, 1, loader.No)
	require.Len(t, f.Running(), 1)
}

// Where a host is down, the others are used.
func TestAHostThatIsDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	down := listener.Addr().String()
	require.NoError(t, listener.Close())
	f := startStandIn(t, standin.Options{})
	for _, method := range []string{stageLoad, streamingLoad} {
		db, s := openHosts(t, method, down, f.Addr())
		_, err = s.Load(t.Context(), testBatch(1))
		require.Equal(t, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true}, New().Classify(err), method)
		_, err = s.Load(t.Context(), testBatch(2))
		require.NoError(t, err, "the same session goes to the next host")
		resolves(t, db, 2, map[string]loader.Applied{stageLoad: loader.No, streamingLoad: loader.Yes}[method])
	}
	db, _ := openHosts(t, streamingLoad, down, f.Addr())
	f.Close()
	_, err = db.Resolve(t.Context(), loader.RefOf(testBatch(2)))
	require.ErrorContains(t, err, "end earlier attempts: "+down, "one host has to show its list")
}

// Every host lists the whole warehouse, so a query is waited for once and not once a host.
func TestGraceDoesNotAddUp(t *testing.T) {
	f, other := newFake(t), newFake(t)
	db, _ := f.open(t, streamingLoad, other.alsoHost)
	db.grace = pollInterval / 2
	for _, server := range []*fake{f, other} {
		server.on(selectProcesses(queryIDs(batchKind, testBatch(1).ID, 1)), result([]any{"s1"}))
		server.on("KILL QUERY", result())
		server.on("SELECT COUNT(*)", result([]any{"0"}))
	}
	resolves(t, db, 1, loader.No)
	require.GreaterOrEqual(t, len(f.asked("KILL QUERY")), 2)
	require.Len(t, other.asked("KILL QUERY"), 1)
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
		db, p := openTarget(t, f.target(streamingLoad)), preparation(streamingLoad)
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
