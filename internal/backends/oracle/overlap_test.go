package oracle

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// one is a stand-in with a prepared table, a batch and a worker for it.
type one struct {
	*standIn
	*worker
	target loader.Target
	loader loader.Loader
	batch  *batch.Batch
}

func oneBatch(t *testing.T, w way, rows int64) *one {
	t.Helper()
	d := documents(t)
	s := startStandIn(t, w.native, fake.Options{})
	target := s.table(w.contract.Method)
	l := s.open(t, target, d, w.contract)
	return &one{
		standIn: s, worker: &worker{backend: s.backend, loader: l, contract: w.contract}, target: target, loader: l,
		batch: encoded(t, d, w.contract.Format, batch.ID{Run: "r"}, 0, rows),
	}
}

// attempt is one attempt on a session of its own.
func (o *one) attempt(ctx context.Context, t *testing.T) (loader.Ack, error) {
	t.Helper()
	session, err := o.loader.Session(t.Context(), o.contract)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return load(ctx, session, o.batch)
}

// reached waits until the server has taken so many requests that contain the text.
func (s *standIn) reached(t *testing.T, text string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		seen := 0
		for _, st := range s.Log() {
			if st.Is(text) {
				seen++
			}
		}
		return seen >= n
	}, patience, time.Millisecond)
}

// An attempt whose client is gone is still open when the next one asks: the look waits for it, and whatever it comes to
// is the answer.
func TestOverlappingAttempts(t *testing.T) {
	for _, w := range ways(10) {
		if w.contract.Dedup == loader.DedupNone || w.contract.Dedup == loader.DedupRange {
			continue // what single leaves behind is TestSingleGoesOn's
		}
		for _, commits := range []bool{true, false} {
			t.Run(w.label+map[bool]string{true: ", commits", false: ", ends"}[commits], func(t *testing.T) {
				t.Parallel()
				o := oneBatch(t, w, 10)
				until := make(chan struct{})
				var looks string
				if commits { // the order to commit is on its way when the client gives up
					o.SetScript(fake.At(fake.Commit, 1, fake.Fault{Hold: until}))
					looks = fake.Commit
				} else {
					o.SetScript(fake.At(`INTO "TERA"."T_`, 1, fake.Fault{DropAfter: true, Linger: until}))
					looks = `INTO "TERA"."T_`
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				failed := make(chan error, 1)
				session, err := o.loader.Session(t.Context(), o.contract)
				require.NoError(t, err)
				t.Cleanup(func() { _ = session.Close() })
				go func() {
					_, err := load(ctx, session, o.batch)
					failed <- err
				}()
				o.reached(t, looks, 1)
				if commits {
					cancel()
				}
				err = <-failed
				require.Error(t, err)
				want := loader.No
				if commits {
					assert.Equal(t, loader.Unknown, o.standIn.backend.Classify(err).Applied, "%v", err)
					want = loader.Yes
				}

				type outcome struct {
					loader.Resolution
					err error
				}
				found := make(chan outcome, 1)
				ref := loader.RefOf(o.batch)
				go func() {
					r, err := o.loader.(loader.Resolver).Resolve(context.Background(), ref)
					found <- outcome{r, err}
				}()
				o.reached(t, "terapush_claims\" (", 2)
				select {
				case got := <-found:
					t.Fatalf("it did not wait: %+v", got)
				default:
				}
				close(until)
				got := <-found
				require.NoError(t, got.err)
				assert.Equal(t, want, got.Applied)
				rows, err := o.send(t.Context(), o.batch)
				require.NoError(t, err)
				assert.EqualValues(t, 10, rows)
				o.hangUp()
				o.exact(t, o.target, 10)
			})
		}
	}
}

// Rows of single are transactions of their own: what is there after a lost answer is a front part of the batch, and the
// next attempt goes on behind it.
func TestSingleGoesOn(t *testing.T) {
	for _, native := range []bool{false, true} {
		for label, c := range map[string]struct {
			fault fake.Fault
			there int64
		}{
			"lost":    {fake.Fault{DropAfter: true}, 4},
			"dropped": {fake.Fault{Drop: true}, 3},
		} {
			t.Run(label, func(t *testing.T) {
				o := oneBatch(t, way{native: native, contract: contractOf(methodSingle, 10)}, 10)
				o.SetScript(fake.At(fake.Commit, 4, c.fault))
				_, err := o.attempt(t.Context(), t)
				require.Error(t, err)
				assert.Equal(t, loader.Unknown, o.standIn.backend.Classify(err).Applied)
				found, err := o.loader.(loader.Resolver).Resolve(t.Context(), loader.RefOf(o.batch))
				require.NoError(t, err)
				assert.Equal(t, loader.Resolution{Applied: loader.No, Rows: c.there}, found)
				o.batch.Skip = found.Rows
				before := len(o.Log())
				ack, err := o.attempt(t.Context(), t)
				require.NoError(t, err)
				assert.Equal(t, 10-c.there, ack.Rows)
				var sent []int64
				for _, st := range o.Log()[before:] {
					if st.Is("INSERT") {
						sent = append(sent, st.Binds[0].Ints...)
					}
				}
				want := []int64{3, 4, 5, 6, 7, 8, 9}
				assert.Equal(t, want[c.there-3:], sent)
				o.exact(t, o.target, 10)
			})
		}
	}
}

// A hole is no front part: something else has written here, and nobody can tell what.
func TestSingleWithAHole(t *testing.T) {
	o := oneBatch(t, way{contract: contractOf(methodSingle, 10)}, 10)
	_, err := o.attempt(t.Context(), t)
	require.NoError(t, err)
	err = o.loader.(*opened).withLink(t.Context(), func(k *link) error {
		_, err := k.exec(t.Context(), "DELETE FROM "+settled(t, o.loader.(*opened)).Table+" WHERE document_id = 5")
		return err
	})
	require.NoError(t, err)
	found, err := o.loader.(loader.Resolver).Resolve(t.Context(), loader.RefOf(o.batch))
	require.NoError(t, err)
	assert.Equal(t, loader.Unknown, found.Applied)
	assert.Contains(t, found.Reason, "the table has 9 rows from 0 to 9")
}
