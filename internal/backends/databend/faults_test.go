package databend

import (
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	standin "github.com/terapush/terapush/internal/fake/databend"
	"github.com/terapush/terapush/internal/faultproxy"
	"github.com/terapush/terapush/pkg/loader"
)

// openStandIn prepares table t of the stand-in and opens a session. Killed queries are waited for no time at all.
func openStandIn(t *testing.T, f *standin.Fake, method string) (*opened, loader.Session) {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	t.Cleanup(f.Close)
	return openHosts(t, method, strings.TrimPrefix(server.URL, "http://"))
}

func openHosts(t *testing.T, method string, hosts ...string) (*opened, loader.Session) {
	t.Helper()
	target := loader.Target{Hosts: hosts, Database: "default", Table: "t", Method: method, TLS: loader.TLSOff}
	l, err := Driver{grace: time.Nanosecond}.Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, err = l.Prepare(t.Context(), preparation(method))
	require.NoError(t, err)
	s, err := l.Session(t.Context(), contractOf(method))
	require.NoError(t, err)
	return l.(*opened), s
}

// once gives a fault to the first request of a kind.
func once(faults map[standin.Kind]standin.Fault) func(standin.Kind, string, int) standin.Fault {
	return func(k standin.Kind, _ string, n int) standin.Fault {
		if n == 1 {
			return faults[k]
		}
		return standin.Fault{}
	}
}

// asked counts the stand-in's requests of a kind.
func asked(f *standin.Fake, k standin.Kind) (n int) {
	for _, r := range f.Requests() {
		if r.Kind == k {
			n++
		}
	}
	return n
}

// Who is refused the next page knows nothing of the statement, which goes on.
func TestARefusedPage(t *testing.T) {
	for _, status := range []int{400, 401, 404, 429, 503} {
		gate := make(chan struct{})
		f := standin.New(standin.Options{Fault: once(map[standin.Kind]standin.Fault{
			standin.Insert: {Starting: 1, Hold: gate}, standin.Page: {Status: status},
		})})
		db, s := openStandIn(t, f, insertNoPresign)
		_, err := s.Load(t.Context(), testBatch(1))
		v := New().Classify(err)
		require.Equal(t, loader.Verdict{Applied: loader.Unknown, Retry: true, SessionDead: true}, loader.Verdict{
			Applied: v.Applied, Retry: v.Retry, SessionDead: v.SessionDead}, "%d: %v", status, err)
		require.Len(t, f.Running(), 1)
		require.Len(t, f.Files("~"), 1, "the statement may not have read it yet")

		r, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
		require.NoError(t, err)
		require.Equal(t, loader.No, r.Applied)
		require.Empty(t, f.Running())
		require.Empty(t, f.Files("~"))
		s, err = db.Session(t.Context(), contractOf(insertNoPresign))
		require.NoError(t, err)
		_, err = s.Load(t.Context(), testBatch(2))
		require.NoError(t, err)
		close(gate)
		require.Len(t, f.Rows("t"), 3)
	}
}

// A load whose connection broke before the server began with it is on no list, so nobody can end it. It must have brought
// no rows: they would be there beside those of the next attempt.
func TestALoadThatTheServerBeginsLate(t *testing.T) {
	gate := make(chan struct{})
	f := standin.New(standin.Options{Fault: once(map[standin.Kind]standin.Fault{standin.Stream: {Late: gate}})})
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	t.Cleanup(f.Close)
	proxy, err := faultproxy.New(strings.TrimPrefix(server.URL, "http://"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = proxy.Close() })
	db, s := openHosts(t, streamingLoad, proxy.Addr())
	before := asked(f, standin.Stream)
	failed := make(chan error, 1)
	b := testBatch(1)
	go func() {
		_, err := s.Load(t.Context(), b)
		failed <- err
	}()
	require.Eventually(t, func() bool { return asked(f, standin.Stream) > before }, 20*time.Second, time.Millisecond)
	proxy.Reset()
	require.Error(t, <-failed)
	require.Zero(t, b.Sent(), "no row is sent to a query that no list shows")

	r, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
	require.NoError(t, err)
	require.Equal(t, loader.No, r.Applied)
	close(gate)
	s, err = db.Session(t.Context(), contractOf(streamingLoad))
	require.NoError(t, err)
	ack, err := s.Load(t.Context(), testBatch(2))
	require.NoError(t, err)
	require.Equal(t, loader.Ack{Rows: 3}, ack, "the late one has not taken the label")
	server.Close() // waits for the late one
	require.Len(t, f.Rows("t"), 3)
}

// A deletion whose answer is lost must not run after the batch is in.
func TestALateDeletion(t *testing.T) {
	gate := make(chan struct{})
	f := standin.New(standin.Options{Fault: once(map[standin.Kind]standin.Fault{standin.Delete: {Vanish: true, Hold: gate}})})
	db, s := openStandIn(t, f, streamingLoad)
	put(t, db, "(6, 'a'), (7, 'b')")
	ref := loader.RefOf(testBatch(1))
	_, err := db.Resolve(t.Context(), ref)
	require.Error(t, err, "ask again")
	require.Len(t, f.Running(), 1)
	r, err := db.Resolve(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, loader.No, r.Applied)
	require.Empty(t, f.Running(), "the first deletion is ended")
	_, err = s.Load(t.Context(), testBatch(2))
	require.NoError(t, err)
	close(gate)
	require.Len(t, f.Rows("t"), 3)

	// One that was held up on its way even longer finds its label taken.
	state, err := db.State()
	require.NoError(t, err)
	deletion := statements{state.Statements}.deleteRows(keysOf(ref))
	m := tags{label: removalLabel(db.plan.name, ref.ID, 1), queryID: "late"}
	_, err = db.run(t.Context(), statement{sql: deletion, tags: m}, nil)
	require.NoError(t, err)
	require.Len(t, f.Rows("t"), 3)
}

func put(t *testing.T, db *opened, values string) {
	t.Helper()
	require.NoError(t, db.exec(t.Context(), "INSERT INTO t (id, s) VALUES "+values))
}

// A deletion that fails again and again ends with its statement in the user's hands.
func TestADeletionThatFails(t *testing.T) {
	f := standin.New(standin.Options{Fault: func(k standin.Kind, _ string, _ int) standin.Fault {
		if k == standin.Delete {
			return standin.Fault{Code: 2001}
		}
		return standin.Fault{}
	}})
	db, _ := openStandIn(t, f, streamingLoad)
	put(t, db, "(6, 'a'), (7, 'b')")
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
func TestACommitThatIsUnderWay(t *testing.T) {
	gate := make(chan struct{})
	f := standin.New(standin.Options{Fault: once(map[standin.Kind]standin.Fault{
		standin.Insert: {Starting: 1, Hold: gate, Deaf: true}, standin.Page: {Status: 429},
	})})
	db, s := openStandIn(t, f, insertNoPresign)
	_, err := s.Load(t.Context(), testBatch(1))
	require.Error(t, err)
	done := make(chan loader.Resolution)
	go func() {
		r, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	require.Eventually(t, func() bool { return asked(f, standin.Kill) > 3 }, 20*time.Second, time.Millisecond)
	select {
	case r := <-done:
		t.Fatalf("%+v, while the statement is committing", r)
	default:
	}
	close(gate)
	require.Equal(t, loader.Yes, (<-done).Applied)
	require.Len(t, f.Rows("t"), 3)
}

// A streaming load that waits for a client which is gone would be listed until the kernel gives up the connection.
func TestAStreamingLoadWithoutItsClient(t *testing.T) {
	f := standin.New(standin.Options{Fault: once(map[standin.Kind]standin.Fault{
		standin.Stream: {Vanish: true, Hold: make(chan struct{}), Deaf: true},
	})})
	db, s := openStandIn(t, f, streamingLoad)
	_, err := s.Load(t.Context(), testBatch(1))
	require.Error(t, err)
	r, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
	require.NoError(t, err)
	require.Equal(t, loader.No, r.Applied)
	require.Len(t, f.Running(), 1)
}

// Every host lists the whole warehouse, so a query is waited for once and not once a host.
func TestGraceDoesNotAddUp(t *testing.T) {
	f, other := newFake(t), newFake(t)
	db, _ := f.open(t, streamingLoad, func(t *loader.Target) {
		t.Hosts = append(t.Hosts, strings.TrimPrefix(other.URL, "http://"))
	})
	db.grace = pollInterval / 2
	ids := queryIDs(batchKind, testBatch(1).ID, 1)
	for _, server := range []*fake{f, other} {
		server.on(selectProcesses(ids), say(result([]any{"s1"})))
		server.on("KILL QUERY", say(result()))
		server.on("SELECT COUNT(*)", say(result([]any{"0"})))
	}
	_, err := db.Resolve(t.Context(), loader.RefOf(testBatch(1)))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(f.asked("KILL QUERY")), 2)
	require.Len(t, other.asked("KILL QUERY"), 1)
}

// Rows that may be somebody's are not deleted.
func TestRowsOfOthersStay(t *testing.T) {
	for name, change := range map[string]func(*fake, *loader.Preparation){
		"a table of theirs": func(f *fake, _ *loader.Preparation) {
			f.on("SELECT table_id", say(result([]any{"7", "FUSE", "orders of the shop"})))
		},
		"no labels": func(_ *fake, p *loader.Preparation) {
			p.Contract.Delivery, p.Contract.Dedup = loader.AtLeastOnce, loader.DedupNone
		},
		"nobody looked": func(_ *fake, p *loader.Preparation) { p.Silent = true },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.on("SELECT COUNT(*)", say(result([]any{"1"})))
			l, err := New().Open(t.Context(), f.target(streamingLoad), testDeps())
			require.NoError(t, err)
			preparation := preparation(streamingLoad)
			change(f, &preparation)
			_, err = l.Prepare(t.Context(), preparation)
			require.NoError(t, err)
			r, err := l.(*opened).Resolve(t.Context(), loader.RefOf(testBatch(1)))
			require.NoError(t, err)
			require.Equal(t, loader.Unknown, r.Applied)
			require.Contains(t, r.Reason, "1 rows with keys 6 to 8")
			require.Contains(t, r.Reason, "DELETE FROM `db`.`t` WHERE `id` BETWEEN 6 AND 8")
			require.Empty(t, f.asked("DELETE"))
		})
	}
}

// A part that is found under a label that is taken is removed, and the batch goes again.
func TestAPartUnderATakenLabel(t *testing.T) {
	f := standin.New(standin.Options{})
	db, s := openStandIn(t, f, streamingLoad)
	label := label(db.plan.name, batchKind, testBatch(1).ID)
	_, err := db.run(t.Context(), statement{sql: "INSERT INTO t (id, s) VALUES (6, 'a')", tags: tags{label: label}}, nil)
	require.NoError(t, err)
	_, err = s.Load(t.Context(), testBatch(2))
	require.ErrorContains(t, err, "1 rows with keys 6 to 8")
	require.Equal(t, loader.Verdict{Class: loader.ClassRows, Retry: true}, New().Classify(err))
	r, err := db.Resolve(t.Context(), loader.RefOf(testBatch(2)))
	require.NoError(t, err)
	require.Equal(t, loader.No, r.Applied)
	_, err = s.Load(t.Context(), testBatch(3))
	require.NoError(t, err)
	require.Len(t, f.Rows("t"), 3)
}

func TestNoRowsAreNoSuccess(t *testing.T) {
	f := newFake(t)
	db, _ := f.open(t, insertNoPresign)
	c := contractOf(insertNoPresign)
	c.Delivery, c.Dedup = loader.AtLeastOnce, loader.DedupNone
	s, err := db.Session(t.Context(), c)
	require.NoError(t, err)
	f.routes["/v1/upload_to_stage"] = uploaded(t, "")
	f.on("INSERT INTO", say(wrote(0)))
	_, err = s.Load(t.Context(), testBatch(1))
	require.ErrorContains(t, err, "wrote no row")
	require.Equal(t, loader.Verdict{Class: loader.ClassRows, Applied: loader.No, Retry: true}, New().Classify(err))
	require.Empty(t, f.asked("SELECT COUNT(*)"), "at least once sends nothing but the load")
}

// A host that is down is a matter of its own: the others go on.
func TestAHostThatIsDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	down := listener.Addr().String()
	require.NoError(t, listener.Close())
	f := standin.New(standin.Options{})
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	t.Cleanup(f.Close)
	for _, method := range []string{streamingLoad, stageLoad} {
		db, s := openHosts(t, method, down, strings.TrimPrefix(server.URL, "http://"))
		_, err = s.Load(t.Context(), testBatch(1))
		require.Equal(t, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true}, New().Classify(err), method)
		_, err = s.Load(t.Context(), testBatch(2))
		require.NoError(t, err, "the same session goes to the next host")
		_, err := db.Resolve(t.Context(), loader.RefOf(testBatch(2)))
		require.NoError(t, err, method)
	}
	db, _ := openHosts(t, streamingLoad, down, strings.TrimPrefix(server.URL, "http://"))
	server.Close()
	_, err = db.Resolve(t.Context(), loader.RefOf(testBatch(2)))
	require.ErrorContains(t, err, down, "somebody has to show a list")
}
