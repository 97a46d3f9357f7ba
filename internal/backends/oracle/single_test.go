package oracle

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// The suite wants a batch to be in as a whole or not at all, which single cannot do: a row is a transaction. So what the
// suite does to connections is done here, and the next attempt sends the rows after those that are there.
func TestSingleThroughBrokenConnections(t *testing.T) {
	const size = 40
	for label, c := range map[string]struct {
		strike  func(f *loadertest.Faults, half int64) <-chan struct{}
		cancels bool // the client, once it is struck
		another bool // process resumes
	}{
		"cut":           {(*loadertest.Faults).CutAfter, false, true},
		"answer lost":   {func(f *loadertest.Faults, _ int64) <-chan struct{} { return f.CutAnswer(fake.CommitSent) }, false, false},
		"stalled":       {(*loadertest.Faults).StallAfter, true, false},
		"vanished":      {(*loadertest.Faults).VanishAfter, true, false},
		"other process": {(*loadertest.Faults).VanishAfter, true, true},
	} {
		for _, native := range []bool{false, true} {
			t.Run(label+map[bool]string{true: ", native"}[native], func(t *testing.T) {
				t.Parallel()
				d, contract := documents(t), contractOf(methodSingle, size)
				s := startStandIn(t, fake.Options{Native: native, IdleBlocker: idleBlocker})
				target, deps := s.table(methodSingle), testDeps()
				faults := loadertest.NewFaults(deps.Dial)
				t.Cleanup(faults.Close)
				deps.Dial = faults.Dial
				open := func() loader.Loader {
					l, err := s.backend.Open(t.Context(), target, deps)
					require.NoError(t, err)
					t.Cleanup(func() { _ = l.Close() })
					_, err = l.Prepare(t.Context(), loader.Preparation{
						Run: "r", Schema: d.Schema(), Contract: contract, Create: loader.CreateIfMissing, PrimaryKey: true,
					})
					require.NoError(t, err)
					return l
				}
				l := open()
				session, err := l.Session(t.Context(), contract)
				require.NoError(t, err)
				b := numbered(t, d, contract, 0)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				hit := c.strike(faults, int64(len(b.Encoded))/2)
				if c.cancels {
					go func() {
						<-hit
						cancel()
					}()
				}
				_, err = load(ctx, session, b)
				require.Error(t, err)
				v := s.backend.Classify(err)
				assert.True(t, v.SessionDead, "%v", err)
				assert.NotEqual(t, loader.Yes, v.Applied)
				_ = session.Close()
				if c.another {
					l = open()
				}
				found, err := l.(loader.Resolver).Resolve(t.Context(), loader.RefOf(b))
				require.NoError(t, err)
				require.Equal(t, loader.No, found.Applied, found.Reason)
				require.EqualValues(t, found.Rows, s.Rows(name(target)), "no transaction is open any more")
				b.Skip = found.Rows
				again, err := l.Session(t.Context(), contract)
				require.NoError(t, err)
				defer again.Close()
				ack, err := load(t.Context(), again, b)
				require.NoError(t, err)
				assert.Equal(t, size-found.Rows, ack.Rows)
				s.exact(t, target, size)
			})
		}
	}
}

// What is there after a lost answer is the front of the batch, whatever its rows are numbered by, and the next attempt
// sends the rest only.
func TestSingleGoesOn(t *testing.T) {
	for label, c := range map[string]struct {
		dataset string
		native  bool
		fault   fake.Fault
		there   int64
	}{
		"answer cut":         {"pairs", false, fake.Fault{CutAnswer: true}, 4},
		"answer cut, native": {"journal", true, fake.Fault{CutAnswer: true}, 4},
		"cut":                {"httplogs", false, fake.Fault{Cut: true}, 3},
		"cut, native":        {"lineitem", true, fake.Fault{Cut: true}, 3},
	} {
		t.Run(label, func(t *testing.T) {
			contract := contractOf(methodSingle, 11) // which ends within an order
			o := oneBatchOf(t, datasetOf(t, c.dataset, ""), way{native: c.native, contract: contract}, 11, fake.Options{})
			o.SetScript(fake.At(fake.Commit, 4, c.fault))
			_, err := o.attempt(t.Context(), t)
			require.Error(t, err)
			assert.Equal(t, loader.Unknown, o.backend.Classify(err).Applied)
			assert.ErrorContains(t, err, "3 rows of the batch were committed before")
			found, err := o.loader.Resolve(t.Context(), loader.RefOf(o.batch))
			require.NoError(t, err)
			assert.Equal(t, loader.Resolution{Applied: loader.No, Rows: c.there}, found)

			o.batch.Skip = found.Rows
			before := o.requests(`INTO "TERA"."T_`)
			ack, err := o.attempt(t.Context(), t)
			require.NoError(t, err)
			assert.Equal(t, 11-c.there, ack.Rows)
			assert.EqualValues(t, 11-c.there, o.requests(`INTO "TERA"."T_`)-before)
			o.exact(t, o.target, 11)
			found, err = o.loader.Resolve(t.Context(), loader.RefOf(o.batch))
			require.NoError(t, err)
			assert.Equal(t, loader.Resolution{Applied: loader.Yes, Rows: 11}, found)

			// A hole is no front: something else has written here.
			require.NoError(t, o.Delete(name(o.target), 5))
			found, err = o.loader.Resolve(t.Context(), loader.RefOf(o.batch))
			require.NoError(t, err)
			assert.Equal(t, loader.Unknown, found.Applied)
			assert.Contains(t, found.Reason, "the table has 10 rows from 0 to 10")
		})
	}
}

// A row whose key is taken is the end of its batch, and not a success.
func TestSingleMeetsTakenKeys(t *testing.T) {
	o := oneBatch(t, way{contract: contractOf(methodSingle, 10)}, 10)
	loads(t, o.loader, o.contract, o.batch)
	o.batch = backendtest.Batch(t, o.dataset, o.contract.Format, batch.ID{Run: "r", Number: 1}, 5, 10)
	_, err := o.attempt(t.Context(), t)
	require.Error(t, err)
	v := o.backend.Classify(err)
	assert.Equal(t, loader.ClassConstraint, v.Class, "%v", err)
	assert.False(t, v.Retry)
	assert.NotEqual(t, loader.Yes, v.Applied)
	o.exact(t, o.target, 10)
}
