package oracle

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// one is a stand-in with a prepared table and a batch for it.
type one struct {
	*standIn
	dataset  dataset.Dataset
	target   loader.Target
	loader   *opened
	contract loader.Contract
	session  loader.Session // of send
	batch    *batch.Batch
}

func (o *one) disconnect() {
	if o.session != nil {
		_ = o.session.Close()
		o.session = nil
	}
}

// send sends the batch as the engine does: after every failure it asks what became of it, where the server can tell.
// It returns how many rows the server has acknowledged, in whatever number of attempts.
func (o *one) send(ctx context.Context) (rows int64, err error) {
	for range 100 { // of single, one attempt in four gets through
		if o.session == nil {
			if o.session, err = o.loader.Session(ctx, o.contract); err != nil {
				if !o.backend.Classify(err).Retry {
					return 0, err
				}
				continue
			}
		}
		var ack loader.Ack
		if ack, err = load(ctx, o.session, o.batch); err == nil {
			return ack.Rows, nil
		}
		o.batch.Attempt++
		v := o.backend.Classify(err)
		if v.SessionDead {
			o.disconnect()
		}
		if o.contract.Dedup != loader.DedupNone && (v.Applied != loader.No || v.SessionDead) {
			o.disconnect() // its transaction may be open, and hold the claim
			found, err := o.loader.Resolve(ctx, loader.RefOf(o.batch))
			switch {
			case err != nil && o.backend.Classify(err).Retry:
				continue
			case err != nil:
				return 0, err
			case found.Applied == loader.Yes:
				return o.batch.Rows, nil
			case found.Applied == loader.Unknown:
				return 0, fmt.Errorf("unknown: %s", found.Reason)
			}
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

func oneBatch(t *testing.T, w way, rows int64) *one {
	t.Helper()
	return oneBatchOf(t, documents(t), w, rows, fake.Options{})
}

func oneBatchOf(t *testing.T, d dataset.Dataset, w way, rows int64, options fake.Options) *one {
	t.Helper()
	options.Native, w.contract.BatchRows = w.native, rows
	s := startStandIn(t, options)
	target := s.table(w.contract.Method)
	l := s.open(t, target, d, w.contract)
	return &one{
		standIn: s, dataset: d, target: target, loader: l, contract: w.contract, batch: numbered(t, d, w.contract, 0),
	}
}

// attempt is one attempt on a session of its own.
func (o *one) attempt(ctx context.Context, t *testing.T) (loader.Ack, error) {
	t.Helper()
	return load(ctx, backendtest.Session(t, o.loader, o.contract), o.batch)
}

// goesOn resolves the batch after a failure and sends it again: then every row is there once.
func (o *one) goesOn(t *testing.T) {
	t.Helper()
	_, err := o.loader.Resolve(t.Context(), loader.RefOf(o.batch))
	require.NoError(t, err)
	rows, err := o.send(t.Context())
	require.NoError(t, err)
	assert.Equal(t, o.batch.Rows, rows)
	o.disconnect()
	o.exact(t, o.target, o.batch.Rows)
}

// holds checks what the contract promises, every row once or at least once, and that every change was in a transaction
// that the client had begun.
func (o *one) holds(t *testing.T, rows int64) {
	t.Helper()
	_, err := o.loader.Finish(t.Context(), loader.KeyRange{Last: rows - 1}, rows)
	require.NoError(t, err)
	if o.contract.Delivery == loader.ExactlyOnce {
		o.exact(t, o.target, rows)
	} else {
		assert.Len(t, o.Counts(name(o.target)), int(rows), "a row is missing")
	}
	o.transacted(t)
}

func (s *standIn) transacted(t *testing.T) {
	t.Helper()
	for _, r := range s.Requests() {
		if !strings.HasPrefix(r.SQL, "SELECT ") && (r.Is("INSERT") || r.Is("UPDATE") || r.Is("DELETE") || r.Is("LOCK TABLE")) {
			require.True(t, r.Explicit, "outside of a transaction: %s", r.SQL)
		}
	}
}

// everyFault is how a request can fail: before the server has done it and after, with an error and with the end of the
// session.
var everyFault = map[string]fake.Fault{
	"refused": {Fail: fake.Ora(60)}, "killed": {Fail: fake.Ora(28)}, "cut": {Cut: true}, "answer cut": {CutAnswer: true},
	"ends late": {FailAnswer: fake.Ora(3113)},
}

// nth returns a script with the fault for the n-th request from now on, without those at the end of a session, whose
// failures are ignored. struck returns the request, if there were so many.
func nth(n int, f fake.Fault) (script func(fake.Request) fake.Fault, struck func() string) {
	var mu sync.Mutex
	at := ""
	return func(r fake.Request) fake.Fault {
			mu.Lock()
			defer mu.Unlock()
			if r.Is("v$mystat") || r.Is("DBMS_MEMOPTIMIZE.") || r.Is(fake.LogOff) {
				return fake.Fault{}
			}
			if n--; n != 0 {
				return fake.Fault{}
			}
			at = r.SQL
			return f
		}, func() string {
			mu.Lock()
			defer mu.Unlock()
			return at
		}
}

// Every request of a batch's life fails in every way, once. It takes a connection, its rows and a commit.
func TestEveryRequestFails(t *testing.T) {
	const size = 4
	for _, w := range ways(size) {
		t.Run(w.label, func(t *testing.T) {
			t.Parallel()
			everyRequest(t, 3, func(t *testing.T) (*standIn, chore) {
				o := oneBatch(t, w, size)
				return o.standIn, chore{func(ctx context.Context) error {
					defer o.disconnect()
					rows, err := o.send(ctx)
					assert.EqualValues(t, size, rows)
					return err
				}, func(t *testing.T, err error) {
					require.NoError(t, err)
					o.holds(t, size)
				}}
			})
		})
	}
}

// The error of a commit leaves open what came of it, unless it says that the transaction was rolled back.
func TestCommitErrors(t *testing.T) {
	for code, want := range map[int]loader.Applied{3113: loader.Unknown, 60: loader.Unknown, 2091: loader.No, 1: loader.No} {
		for _, native := range []bool{false, true} {
			o := oneBatch(t, way{native: native, contract: contractOf(methodArray, 3)}, 3)
			o.SetScript(fake.At(fake.Commit, 1, fake.Fault{Fail: fake.Ora(code)}))
			_, err := o.attempt(t.Context(), t)
			require.ErrorContains(t, err, "ORA-")
			assert.Equal(t, want, o.backend.Classify(err).Applied, "%v", err)
			o.goesOn(t)
		}
	}
}

// An order to commit that is on its way when the client gives up: Resolve waits for it, and its end is the answer.
func TestOverlappingAttempts(t *testing.T) {
	for _, w := range ways(10) {
		if w.contract.Dedup == loader.DedupNone {
			continue
		}
		t.Run(w.label, func(t *testing.T) {
			t.Parallel()
			o := oneBatch(t, w, 10)
			const waits = `terapush_claims" (`
			begun := o.requests(fake.Commit) // those of Prepare
			until := make(chan struct{})
			o.SetScript(fake.At(fake.Commit, 1, fake.Fault{Hold: until}))
			session := backendtest.Session(t, o.loader, o.contract)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			failed := make(chan error, 1)
			go func() {
				_, err := load(ctx, session, o.batch)
				failed <- err
			}()
			o.reached(t, fake.Commit, begun+1)
			cancel()
			err := <-failed
			require.Error(t, err)
			v := o.backend.Classify(err)
			assert.Equal(t, loader.Unknown, v.Applied, "%v", err)
			assert.True(t, v.SessionDead, "%v", err)

			before := o.requests(waits)
			found := make(chan loader.Resolution, 1)
			go func() {
				r, err := o.loader.Resolve(context.WithoutCancel(t.Context()), loader.RefOf(o.batch))
				assert.NoError(t, err)
				found <- r
			}()
			o.reached(t, waits, before+1)
			select {
			case r := <-found:
				t.Fatalf("it did not wait: %+v", r)
			default:
			}
			close(until)
			assert.Equal(t, loader.Resolution{Applied: loader.Yes}, <-found)
			o.goesOn(t)
		})
	}
}

// A Resolve that gives up waiting says what makes a server notice that a client is gone.
func TestResolveGivesUp(t *testing.T) {
	hinted := func(t *testing.T, err error) {
		t.Helper()
		require.Contains(t, loader.Explain(err), "SQLNET.EXPIRE_TIME")
		require.Contains(t, loader.Explain(err), "MAX_IDLE_BLOCKER_TIME")
	}
	for _, native := range []bool{false, true} {
		o := oneBatch(t, way{native: native, contract: contractOf(methodArray, 3)}, 3)
		o.SetScript(fake.At(`TERAPUSH_CLAIMS" (`, 1, fake.Fault{Fail: fake.Ora(30006)}))
		_, err := o.loader.Resolve(t.Context(), loader.RefOf(o.batch))
		hinted(t, err)
		assert.ErrorContains(t, err, "ORA-30006")
		assert.Equal(t, loader.Verdict{Class: loader.ClassLock, Retry: true}, o.backend.Classify(err))
	}
	hinted(t, waitError("wait", fmt.Errorf("%w: ORA-01013", context.DeadlineExceeded)))
	refused := waitError("wait", reading().serverError(oraError(942)))
	require.ErrorContains(t, refused, "ORA-00942")
	assert.NotContains(t, refused.Error(), "EXPIRE_TIME", "nothing was waited for")
}
