package oracle

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// requests counts the requests so far that contain the text.
func (s *standIn) requests(text string) (n int) {
	for _, st := range s.Log() {
		if st.Is(text) {
			n++
		}
	}
	return n
}

// What proves the contract is no part of what the run costs.
func TestProbeIsNotMeasured(t *testing.T) {
	o := oneBatch(t, way{contract: contractOf(methodArray, 1)}, 1)
	o.batch.Hold()
	proof, err := o.loader.(loader.Prober).Probe(t.Context(), o.contract, o.batch)
	require.NoError(t, err)
	require.True(t, proof.Transactional, proof.Reason)
	cost, notes := o.loader.(loader.Measurer).Measured(t.Context())
	assert.Empty(t, cost)
	assert.Empty(t, notes)
	assert.Zero(t, o.requests("v$mystat"))
}

// Where nothing but the rows is welcome, the end of a session asks for nothing either. What Fast Ingest has in memory is
// asked for all the same: nobody could read it.
func TestSilentIsNotMeasured(t *testing.T) {
	d := documents(t)
	for _, method := range []string{methodArray, methodFast} {
		s := startStandIn(t, false, fake.Options{})
		target := s.table(method)
		c := atLeastOnce(contractOf(method, 10))
		s.open(t, target, d, c) // makes the table
		l, err := s.backend.Open(t.Context(), target, testDeps())
		require.NoError(t, err)
		_, err = l.Prepare(t.Context(), loader.Preparation{Schema: d.Schema(), Contract: c, Create: loader.CreateNever, Silent: true})
		require.NoError(t, err)
		session, err := l.Session(t.Context(), c)
		require.NoError(t, err)
		_, err = load(t.Context(), session, encoded(t, d, c.Format, batch.ID{Run: "r"}, 0, 10))
		require.NoError(t, err)
		require.NoError(t, session.Close())
		assert.Zero(t, s.requests("v$mystat"), method)
		assert.Equal(t, map[string]int{methodArray: 0, methodFast: 1}[method], s.requests("GET_WRITE_HWM_SEQID"))
		cost, notes := l.(loader.Measurer).Measured(t.Context())
		assert.Empty(t, cost)
		assert.Empty(t, notes)
	}
}

// A table of another owner is not the user's own one of the same name.
func TestStoredOfAnotherOwner(t *testing.T) {
	o := oneBatch(t, way{contract: contractOf(methodArray, 10)}, 10)
	_, err := o.send(t.Context(), o.batch)
	require.NoError(t, err)
	o.hangUp()
	for owner, theirs := range map[string]bool{"": false, "TERA.": false, "other.": true} {
		target := o.target
		target.Table = owner + target.Table
		l, err := o.standIn.backend.Open(t.Context(), target, testDeps())
		require.NoError(t, err)
		_, err = l.Prepare(t.Context(), loader.Preparation{Schema: documents(t).Schema(), Contract: o.contract, Silent: true})
		require.NoError(t, err)
		bytes, err := l.(loader.Sizer).Stored(t.Context())
		require.NoError(t, err)
		assert.Equal(t, theirs, bytes == 0, "%q: %d bytes", owner, bytes)
	}
}

// Whoever watches a batch sees how far it is, and once that all is sent: before the answer, where the driver lets us see.
func TestBatchIsToldHowFarItIs(t *testing.T) {
	const size = 5
	for _, w := range ways(size) {
		if w.contract.Method == methodFast {
			continue // like array
		}
		for _, skip := range []int64{0, 2} {
			t.Run(w.label+map[int64]string{2: ", skipping"}[skip], func(t *testing.T) {
				o := oneBatch(t, w, size)
				o.batch.Skip = skip
				all, told := int64(len(o.batch.Encoded)), 0
				o.batch.AllRead = func() { told++ }
				var mu sync.Mutex
				var far []int64
				o.SetScript(func(s fake.Statement) fake.Fault {
					if s.Is(`INTO "TERA"."T_`) {
						mu.Lock()
						defer mu.Unlock()
						far = append(far, o.batch.Sent())
					}
					return fake.Fault{}
				})
				_, err := o.attempt(t.Context(), t)
				require.NoError(t, err)
				assert.Equal(t, 1, told)
				assert.Equal(t, all, o.batch.Sent())
				if w.contract.Method != methodSingle && w.contract.Method != methodBatch {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				require.Len(t, far, int(size-skip), "requests with rows")
				for i, sent := range far[:len(far)-1] { // the last may count already
					assert.Equal(t, all*int64(i)/(size-skip), sent, "before row %d", i)
				}
			})
		}
	}
}

// A look for a batch that waits in vain says what makes a server notice that a client is gone.
func TestResolveThatWaitsInVain(t *testing.T) {
	hinted := func(t *testing.T, err error) {
		t.Helper()
		require.Error(t, err)
		for _, says := range []string{"SQLNET.EXPIRE_TIME", "MAX_IDLE_BLOCKER_TIME"} {
			assert.Contains(t, err.Error(), says)
		}
	}
	for _, native := range []bool{false, true} {
		single := oneBatch(t, way{native: native, contract: contractOf(methodSingle, 3)}, 3)
		single.SetScript(fake.At("LOCK TABLE", 1, fake.Fault{Fail: &fake.Error{Code: 30006, Text: "resource busy; acquire with WAIT timeout expired"}}))
		_, err := single.loader.(loader.Resolver).Resolve(t.Context(), loader.RefOf(single.batch))
		hinted(t, err)
		assert.Contains(t, err.Error(), "ORA-30006")
		assert.Equal(t, loader.Verdict{Class: loader.ClassLock, Retry: true}, single.standIn.backend.Classify(err))
		found, err := single.loader.(loader.Resolver).Resolve(t.Context(), loader.RefOf(single.batch))
		require.NoError(t, err)
		assert.Equal(t, loader.No, found.Applied)

		claimed := oneBatch(t, way{native: native, contract: contractOf(methodArray, 3)}, 3)
		until := make(chan struct{})
		claimed.SetScript(fake.At(`INTO "TERA"."T_`, 1, fake.Fault{DropAfter: true, Linger: until}))
		_, err = claimed.attempt(t.Context(), t)
		require.Error(t, err)
		before := claimed.requests(`TERAPUSH_CLAIMS" (`)
		ctx, cancel := newDeadline(t)
		failed := make(chan error, 1)
		go func() {
			_, err := claimed.loader.(loader.Resolver).Resolve(ctx, loader.RefOf(claimed.batch))
			failed <- err
		}()
		claimed.reached(t, `TERAPUSH_CLAIMS" (`, before+1)
		cancel()
		err = <-failed
		hinted(t, err)
		v := claimed.standIn.backend.Classify(err)
		assert.Equal(t, loader.ClassTimeout, v.Class)
		assert.Equal(t, loader.Unknown, v.Applied)
		close(until)
	}
}

// newDeadline is a context whose deadline passes when the test says so, and not when a slow machine lets it.
func newDeadline(t *testing.T) (ctx context.Context, pass func()) {
	t.Helper()
	d := &deadline{Context: t.Context(), done: make(chan struct{})}
	return d, func() { close(d.done) }
}

type deadline struct {
	context.Context
	done chan struct{}
}

func (d *deadline) Done() <-chan struct{} { return d.done }

func (d *deadline) Err() error {
	select {
	case <-d.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// An answer that was lost does not make rows in memory anybody else's: the end of the run flushes, and says what it
// cannot know.
func TestFastWhoseFirstAnswerIsLost(t *testing.T) {
	o := oneBatch(t, way{contract: contractOf(methodFast, 10)}, 10)
	o.SetScript(fake.At("MEMOPTIMIZE_WRITE", 1, fake.Fault{DropAfter: true}))
	session, err := o.loader.Session(t.Context(), o.contract)
	require.NoError(t, err)
	_, err = load(t.Context(), session, o.batch)
	require.Error(t, err)
	_ = session.Close()
	notes, err := o.loader.(loader.Finisher).Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
	require.NoError(t, err)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "1 sessions did not say how far they came")
	assert.EqualValues(t, 10, o.counted(t, 10))
}

// The note about waiting is for those who have waited, and one about memory for those whose rows may be there.
func TestFinishThatMayNotFlush(t *testing.T) {
	d := documents(t)
	c := contractOf(methodFast, 10)
	for label, loads := range map[string]bool{"all is on disk": true, "nothing was sent": false} {
		t.Run(label, func(t *testing.T) {
			s := startStandIn(t, false, fake.Options{DrainRows: 1000, Denied: map[string]int{"DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH": 6550}})
			l := s.open(t, s.table(methodFast), d, c)
			if loads {
				session, err := l.Session(t.Context(), c)
				require.NoError(t, err)
				_, err = load(t.Context(), session, encoded(t, d, c.Format, batch.ID{Run: "r"}, 0, 10))
				require.NoError(t, err)
				require.NoError(t, session.Close())
			}
			notes, err := l.(loader.Finisher).Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
			require.NoError(t, err)
			assert.Equal(t, 1, s.requests("WRITES_FLUSH"))
			if loads {
				assert.Empty(t, notes)
				return
			}
			require.Len(t, notes, 1)
			assert.NotContains(t, notes[0], "waited")
			assert.Contains(t, notes[0], "GRANT EXECUTE ON DBMS_MEMOPTIMIZE_ADMIN")
		})
	}
}

// Who asks for no encryption and gets none is told so, unless the rows do not leave the machine.
func TestWarnsOfTCP(t *testing.T) {
	for text, warns := range map[string]bool{
		"oracle://u:hunter2@db.example/s":                  true,
		"oracle://u:hunter2@localhost,db.example/s":        true,
		"oracle://u:hunter2@10.0.0.1:1522/s":               true,
		"oracle://u:hunter2@localhost/s":                   false,
		"oracle://u:hunter2@127.0.0.1:1521,[::1]/s":        false,
		"oracle://u:hunter2@db.example/s?ssl=true":         false,
		"oracle://u:hunter2@db.example/s?ssl=false":        false,
		"oracle://u:hunter2@db.example/s?wallet=/w":        false,
		"oracle://u:hunter2@db.example/s?ssl=not+a+choice": false,
	} {
		target, err := loader.ParseTarget(text)
		require.NoError(t, err, text)
		logged := new(strings.Builder)
		l := &opened{target: target, deps: loggingTo(logged)}
		l.warnUnencrypted()
		assert.Equal(t, warns, strings.Contains(logged.String(), "unencrypted"), "%s: %s", text, logged)
		assert.NotContains(t, logged.String(), secret)
		if warns {
			assert.Contains(t, logged.String(), "?ssl=true")
		}
		for _, mode := range []loader.TLSMode{loader.TLSOff, loader.TLSRequire, loader.TLSVerify} {
			logged.Reset()
			l.target.TLS = mode
			l.warnUnencrypted()
			assert.Empty(t, logged.String(), "%s with --tls %s", text, mode)
		}
	}
}
