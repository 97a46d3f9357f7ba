package oracle

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// patience is how long anything may take that must not hang.
const patience = 30 * time.Second

// worker sends batches as the engine does: after every failure it asks what became of the batch, and sends only what is
// not in.
type worker struct {
	backend  backend
	loader   loader.Loader
	contract loader.Contract
	session  loader.Session
	asked    int // how often it had to ask
}

func (w *worker) hangUp() {
	if w.session != nil {
		_ = w.session.Close()
		w.session = nil
	}
}

// send returns how many rows the server has acknowledged of the batch, in whatever number of attempts.
func (w *worker) send(ctx context.Context, b *batch.Batch) (rows int64, err error) {
	for range 100 { // of single, one attempt in four gets through
		if w.session == nil {
			if w.session, err = w.loader.Session(ctx, w.contract); err != nil {
				if !w.backend.Classify(err).Retry {
					return 0, err
				}
				w.session = nil
				continue
			}
		}
		var ack loader.Ack
		if ack, err = load(ctx, w.session, b); err == nil {
			return ack.Rows + b.Skip, nil
		}
		b.Attempt++
		v := w.backend.Classify(err)
		if v.SessionDead {
			w.hangUp()
		}
		if w.contract.Dedup != loader.DedupNone && (v.Applied != loader.No || v.SessionDead) {
			w.asked++
			w.hangUp() // its transaction may be open, and hold the claim
			found, err := w.loader.(loader.Resolver).Resolve(ctx, loader.RefOf(b))
			switch {
			case err != nil && w.backend.Classify(err).Retry:
				continue
			case err != nil:
				return 0, err
			case found.Applied == loader.Yes:
				return b.Rows, nil
			case found.Applied == loader.Unknown:
				return 0, fmt.Errorf("nobody can tell: %s", found.Reason)
			}
			b.Skip = found.Rows
		}
		if !v.Retry {
			return 0, err
		}
	}
	return 0, err
}

// way is one method under one contract.
type way struct {
	label    string
	native   bool
	contract loader.Contract
}

// ways are all methods that send rows themselves, under the best contract they can have and under the least.
func ways(batchRows int64) (all []way) {
	for _, method := range []string{methodSingle, methodBatch, methodArray, methodFast, methodDirect} {
		best := contractOf(method, batchRows)
		for _, native := range []bool{false, true} {
			if !native && method == methodDirect {
				continue
			}
			label := method + map[bool]string{true: ", native"}[native]
			all = append(all, way{label, native, best})
			if best.Dedup != loader.DedupNone {
				all = append(all, way{label + ", at least once", native, atLeastOnce(best)})
			}
		}
	}
	return all
}

// holds checks what the contract promises: every row once, or at least once.
func (s *standIn) holds(t *testing.T, c loader.Contract, l loader.Loader, target loader.Target, n int64) {
	t.Helper()
	if c.Method == methodFast {
		_, err := l.(loader.Finisher).Finish(t.Context(), loader.KeyRange{Last: n - 1}, n)
		require.NoError(t, err)
	}
	if c.Delivery == loader.ExactlyOnce {
		s.exact(t, target, n)
		return
	}
	assert.Len(t, s.Keys(name(target)), int(n), "no row may be missing")
}

// transacted checks that nothing was changed outside of a transaction that the client has begun, and that nobody ended a
// session with one open but by a fault.
func (s *standIn) transacted(t *testing.T) {
	t.Helper()
	for _, st := range s.Log() {
		if st.Is("INSERT") || st.Is("DELETE") || st.Is("LOCK TABLE") {
			require.True(t, st.Explicit, "outside of a transaction: %s", st.Text)
		}
	}
}

// everyFault is how a request can fail: before the server has done it and after, with an error and with the end of the
// session.
func everyFault() map[string]fake.Fault {
	return map[string]fake.Fault{
		"refused":   {Fail: &fake.Error{Code: 60, Text: "deadlock detected while waiting for resource"}},
		"killed":    {Fail: &fake.Error{Code: 28, Text: "your session has been killed"}},
		"dropped":   {Drop: true},
		"lost":      {DropAfter: true},
		"ends late": {FailAfter: &fake.Error{Code: 3113, Text: "end-of-file on communication channel"}},
	}
}

// Every request of a batch's life fails in every way, once: before the server has done it and after, with an error, with
// the end of the connection and with the end of the session.
func TestEveryRequestFails(t *testing.T) {
	const size = 4
	d := documents(t)
	for _, w := range ways(size) {
		t.Run(w.label, func(t *testing.T) {
			t.Parallel()
			// once runs a batch with the n-th request faulty, and reports whether there were so many.
			once := func(n int, fault fake.Fault, label string) bool {
				s := startStandIn(t, w.native, fake.Options{})
				defer s.Close()
				target := s.table(w.contract.Method)
				l := s.open(t, target, d, w.contract)
				before := len(s.Log())
				struck := fake.Statement{}
				var mu sync.Mutex
				s.SetScript(nth(n, fault, &mu, &struck))
				worker := &worker{backend: s.backend, loader: l, contract: w.contract}
				rows, err := worker.send(t.Context(), encoded(t, d, w.contract.Format, batch.ID{Run: "r"}, 0, size))
				worker.hangUp()
				mu.Lock()
				at := struck
				mu.Unlock()
				require.NoError(t, err, "%s: %s %s", label, at.Kind, at.Text)
				require.EqualValues(t, size, rows)
				s.SetScript(func(fake.Statement) fake.Fault { return fake.Fault{} })
				s.holds(t, w.contract, l, target, size)
				s.transacted(t)
				require.Greater(t, len(s.Log()), before)
				return at.Kind != ""
			}
			for label, fault := range everyFault() {
				n := 1
				for ; once(n, fault, label); n++ {
				}
				assert.Greater(t, n, 3, "a batch takes a connection, its rows and a commit")
			}
		})
	}
}

// nth strikes the n-th request from now on, but for those of the session's end, whose failures nobody hears of.
func nth(n int, f fake.Fault, mu *sync.Mutex, struck *fake.Statement) func(fake.Statement) fake.Fault {
	seen := 0
	return func(s fake.Statement) fake.Fault {
		mu.Lock()
		defer mu.Unlock()
		if s.Is("v$mystat") || s.Is("DBMS_MEMOPTIMIZE.") || s.Kind == fake.LogOff {
			return fake.Fault{}
		}
		if seen++; seen != n {
			return fake.Fault{}
		}
		*struck = s
		return f
	}
}

// lossy loses one answer in five, in every way there is, and is the same at every run.
func lossy(s fake.Statement) fake.Fault {
	loads := s.Kind == fake.Commit || s.Is("INSERT") || s.Is("COMMIT")
	if !loads || strings.Contains(s.Text, "DBMS_") {
		return fake.Fault{}
	}
	h := fnv.New32a()
	fmt.Fprint(h, s.Number)
	switch h.Sum32() % 20 {
	case 0, 1:
		return fake.Fault{DropAfter: true}
	case 2:
		return fake.Fault{Drop: true}
	case 3:
		return fake.Fault{FailAfter: &fake.Error{Code: 3113, Text: "end-of-file on communication channel"}}
	}
	return fake.Fault{}
}

// A thousand small batches, of which one request in five loses its answer: claims and keys make them go in once. It is a
// thousand for the method that most use.
func TestLostAnswersEndExact(t *testing.T) {
	const size = 3
	d := documents(t)
	for _, w := range ways(size) {
		if w.contract.Method == methodSingle && w.native {
			continue // a row is a transaction: three times as many
		}
		batches := int64(150)
		if exact := w.contract.Dedup == loader.DedupTx; exact && !w.native && w.contract.Method == methodArray {
			batches = 1000
		}
		t.Run(w.label, func(t *testing.T) {
			t.Parallel()
			s := startStandIn(t, w.native, fake.Options{})
			target := s.table(w.contract.Method)
			l := s.open(t, target, d, w.contract)
			s.SetScript(lossy)
			workers := 4
			if w.contract.Method == methodDirect {
				workers = 1 // one holds the table
			}
			asked := inParallel(t, workers, batches, func() (func(int64), func() int) {
				k := &worker{backend: s.backend, loader: l, contract: w.contract}
				return func(n int64) {
					rows, err := k.send(t.Context(), encoded(t, d, w.contract.Format, batch.ID{Run: "r", Number: n}, n*size, size))
					require.NoError(t, err)
					assert.EqualValues(t, size, rows)
				}, func() int { k.hangUp(); return k.asked }
			})
			if w.contract.Dedup != loader.DedupNone {
				assert.Greater(t, int64(asked), batches/10, "the script was to lose answers")
			}
			s.SetScript(func(fake.Statement) fake.Fault { return fake.Fault{} })
			s.holds(t, w.contract, l, target, batches*size)
			s.transacted(t)
		})
	}
}

// inParallel gives the numbers 0 … n−1 to workers, and sums up what they say at the end.
func inParallel(t *testing.T, workers int, n int64, start func() (work func(int64), end func() int)) (sum int) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := int64(0)
	for range workers {
		wg.Go(func() {
			work, end := start()
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= n || t.Failed() {
					break
				}
				work(i)
			}
			said := end()
			mu.Lock()
			defer mu.Unlock()
			sum += said
		})
	}
	wg.Wait()
	return sum
}

// When a context ends the connection is closed, at whatever request it stands, and the server ends the session.
func TestInterrupted(t *testing.T) {
	for _, w := range ways(10) {
		for _, at := range []string{"INSERT", fake.Commit} {
			for label, reason := range map[string]error{"cancelled": context.Canceled, "hangs": context.DeadlineExceeded} {
				t.Run(w.label+", "+label+" at "+at, func(t *testing.T) {
					t.Parallel()
					o := oneBatch(t, w, 10)
					until := make(chan struct{})
					o.SetScript(fake.At(at, 1, fake.Fault{Hold: until}))
					session, err := o.loader.Session(t.Context(), o.contract)
					require.NoError(t, err)
					defer session.Close()
					ctx := ending{t.Context(), make(chan struct{}), reason}
					failed := make(chan error, 1)
					go func() {
						_, err := load(ctx, session, o.batch)
						failed <- err
					}()
					o.reached(t, at, 1)
					close(ctx.over)
					select {
					case err = <-failed:
					case <-time.After(patience):
						t.Fatal("it hangs")
					}
					require.Error(t, err)
					v := o.standIn.backend.Classify(err)
					assert.True(t, v.SessionDead, "%v", err)
					assert.NotEqual(t, loader.Yes, v.Applied)
					if at == fake.Commit {
						assert.Equal(t, loader.Unknown, v.Applied, "%v", err)
					}
					if label == "hangs" {
						assert.Equal(t, loader.ClassTimeout, v.Class, "%v", err)
					}
					_, err = load(t.Context(), session, o.batch)
					require.Error(t, err, "the session is dead")
					close(until)
					require.Eventually(t, func() bool { return o.Sessions() == 0 && o.Open() == 0 }, patience, time.Millisecond)
				})
			}
		}
	}
}

// ending is a context that ends when the test says so, for a deadline as well: one that the clock sets is over before a
// slow machine has come to the place that the test is about.
type ending struct {
	context.Context
	over   chan struct{}
	reason error
}

func (e ending) Done() <-chan struct{} { return e.over }

func (e ending) Err() error {
	select {
	case <-e.over:
		return e.reason
	default:
		return nil
	}
}

// A listener that accepts and then says nothing is given up with the context.
func TestHungServer(t *testing.T) {
	s := startStandIn(t, false, fake.Options{Script: fake.At(fake.Connect, 1, fake.Fault{Hold: make(chan struct{})})})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.backend.Open(ctx, s.table(methodArray), testDeps())
	require.ErrorContains(t, err, "connect to "+s.Address())
	assert.NotContains(t, err.Error(), secret)
	assert.Equal(t, loader.ClassTimeout, s.backend.Classify(err).Class)
}

// Nothing that is logged holds a secret, whatever happens.
func TestLogsHoldNoSecrets(t *testing.T) {
	var logged bytes.Buffer
	d := documents(t)
	s := startStandIn(t, false, fake.Options{})
	c := contractOf(methodArray, 5)
	l, err := s.backend.Open(t.Context(), s.table(methodArray), loggingTo(&logged))
	require.NoError(t, err)
	defer l.Close()
	_, err = l.Prepare(t.Context(), loader.Preparation{Run: "r", Schema: d.Schema(), Contract: c, Create: loader.CreateIfMissing})
	require.NoError(t, err)
	s.SetScript(lossy)
	w := &worker{backend: s.backend, loader: l, contract: c}
	defer w.hangUp()
	for n := range int64(30) {
		_, err := w.send(t.Context(), encoded(t, d, c.Format, batch.ID{Run: "r", Number: n}, 5*n, 5))
		require.NoError(t, err)
	}
	assert.NotContains(t, logged.String(), secret)
}
