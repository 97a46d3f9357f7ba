package oracle

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// The suite wants a batch to be in as a whole or not at all, which single cannot do: a row is a transaction. So what the
// suite does to connections is done here, and the next attempt goes on behind what is there.
func TestSingleThroughBrokenConnections(t *testing.T) {
	const size = 40
	for label, c := range map[string]struct {
		strike  func(f *loadertest.Faults, half int64) <-chan struct{}
		cancels bool // the client, once it is struck
		another bool // process goes on
	}{
		"cut":                          {func(f *loadertest.Faults, half int64) <-chan struct{} { return f.CutAfter(half) }, false, false},
		"an answer is lost":            {func(f *loadertest.Faults, _ int64) <-chan struct{} { return f.CutAnswer(fake.CommitSent) }, false, false},
		"stalled":                      {func(f *loadertest.Faults, half int64) <-chan struct{} { return f.StallAfter(half) }, true, false},
		"vanished":                     {func(f *loadertest.Faults, half int64) <-chan struct{} { return f.VanishAfter(half) }, true, false},
		"cut, another process":         {func(f *loadertest.Faults, half int64) <-chan struct{} { return f.CutAfter(half) }, false, true},
		"vanished and another process": {func(f *loadertest.Faults, half int64) <-chan struct{} { return f.VanishAfter(half) }, true, true},
	} {
		for _, native := range []bool{false, true} {
			t.Run(label+map[bool]string{true: ", native"}[native], func(t *testing.T) {
				t.Parallel()
				d, contract := documents(t), contractOf(methodSingle, size)
				s := startStandIn(t, native, fake.Options{IdleBlocker: idleBlocker})
				target := s.table(methodSingle)
				deps := testDeps()
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
				b := encoded(t, d, contract.Format, batch.ID{Run: "r"}, 0, size)
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
				require.EqualValues(t, found.Rows, s.Rows(name(target)), "nothing is open any more")
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

// A row that the server has not let go of yet is waited for by the lock on the table, and counted or not as it ends.
func TestSingleIsWaitedFor(t *testing.T) {
	for _, native := range []bool{false, true} {
		for label, there := range map[string]int64{"commits": 4, "ends": 3} {
			t.Run(label, func(t *testing.T) {
				t.Parallel()
				o := oneBatch(t, way{native: native, contract: contractOf(methodSingle, 10)}, 10)
				until := make(chan struct{})
				at, fault := `INTO "TERA"."T_`, fake.Fault{DropAfter: true, Linger: until}
				if label == "commits" {
					at, fault = fake.Commit, fake.Fault{Hold: until}
				}
				o.SetScript(fake.At(at, 4, fault))
				session, err := o.loader.Session(t.Context(), o.contract)
				require.NoError(t, err)
				t.Cleanup(func() { _ = session.Close() })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				failed := make(chan error, 1)
				go func() {
					_, err := load(ctx, session, o.batch)
					failed <- err
				}()
				o.reached(t, at, 4)
				if label == "commits" {
					cancel()
				}
				require.Error(t, <-failed)
				found := make(chan loader.Resolution, 1)
				go func() {
					r, err := o.loader.(loader.Resolver).Resolve(context.Background(), loader.RefOf(o.batch))
					assert.NoError(t, err)
					found <- r
				}()
				o.reached(t, "IN SHARE MODE", 1)
				select {
				case r := <-found:
					t.Fatalf("it did not wait: %+v", r)
				default:
				}
				close(until)
				assert.Equal(t, loader.Resolution{Applied: loader.No, Rows: there}, <-found)
				o.batch.Skip = there
				rows, err := o.send(t.Context(), o.batch)
				require.NoError(t, err)
				assert.EqualValues(t, 10, rows)
				o.hangUp()
				o.exact(t, o.target, 10)
			})
		}
	}
}

// A row whose key is taken is the end of its batch, and nothing calls that a success.
func TestSingleMeetsTakenKeys(t *testing.T) {
	o := oneBatch(t, way{contract: contractOf(methodSingle, 10)}, 10)
	_, err := o.attempt(t.Context(), t)
	require.NoError(t, err)
	session, err := o.loader.Session(t.Context(), o.contract)
	require.NoError(t, err)
	defer session.Close()
	_, err = load(t.Context(), session, encoded(t, documents(t), o.contract.Format, batch.ID{Run: "r", Number: 1}, 5, 10))
	require.Error(t, err)
	v := o.standIn.backend.Classify(err)
	assert.Equal(t, loader.ClassConstraint, v.Class, "%v", err)
	assert.False(t, v.Retry)
	assert.NotEqual(t, loader.Yes, v.Applied)
	o.exact(t, o.target, 10)
}

// A batch that broke goes on behind its front part whatever its rows are numbered by: a column, two of them, or a time.
func TestSingleGoesOnInEveryDataset(t *testing.T) {
	const size, there = 11, 6 // which ends within an order
	for _, native := range []bool{false, true} {
		for _, label := range []string{"pairs", "lineitem", "httplogs", "journal"} {
			t.Run(label+map[bool]string{true: ", native"}[native], func(t *testing.T) {
				d, contract := datasetOf(t, label, ""), contractOf(methodSingle, size)
				s := startStandIn(t, native, fake.Options{})
				target := s.table(methodSingle)
				l := s.open(t, target, d, contract)
				session, err := l.Session(t.Context(), contract)
				require.NoError(t, err)
				_, err = load(t.Context(), session, encoded(t, d, contract.Format, batch.ID{Run: "r"}, 0, size))
				require.NoError(t, err)

				// The next one loses the answer to a row that is in, and none behind it.
				s.SetScript(fake.At(fake.Commit, there, fake.Fault{DropAfter: true}))
				b := encoded(t, d, contract.Format, batch.ID{Run: "r", Number: 1}, size, size)
				_, err = load(t.Context(), session, b)
				require.Error(t, err)
				_ = session.Close()
				found, err := l.(loader.Resolver).Resolve(t.Context(), loader.RefOf(b))
				require.NoError(t, err)
				require.Equal(t, loader.Resolution{Applied: loader.No, Rows: there}, found)

				b.Skip, b.Attempt = found.Rows, 2
				again, err := l.Session(t.Context(), contract)
				require.NoError(t, err)
				defer again.Close()
				_, err = load(t.Context(), again, b)
				require.NoError(t, err)
				found, err = l.(loader.Resolver).Resolve(t.Context(), loader.RefOf(b))
				require.NoError(t, err)
				require.Equal(t, loader.Resolution{Applied: loader.Yes, Rows: size}, found)

				all := loader.KeyRange{Last: 2*size - 1}
				n, err := l.(loader.Counter).Distinct(t.Context(), all)
				require.NoError(t, err)
				assert.EqualValues(t, 2*size, n)
				assert.Equal(t, 2*size, s.Rows(name(target)))
			})
		}
	}
}

// A hole in a batch's rows is no front part, and nobody calls it one.
func TestSingleFindsHoles(t *testing.T) {
	for dataset, hole := range map[string]string{
		"lineitem": `"L_ORDERKEY" = 2 AND "L_LINENUMBER" = 1`, "httplogs": `"TS" = TIMESTAMP '2026-01-01 00:00:00.000004'`, "pairs": `"K" = 4`,
	} {
		d, contract := datasetOf(t, dataset, ""), contractOf(methodSingle, 10)
		s := startStandIn(t, false, fake.Options{})
		target := s.table(methodSingle)
		l := s.open(t, target, d, contract)
		session, err := l.Session(t.Context(), contract)
		require.NoError(t, err)
		b := encoded(t, d, contract.Format, batch.ID{Run: "r"}, 0, 10)
		_, err = load(t.Context(), session, b)
		require.NoError(t, err)
		require.NoError(t, session.Close())
		s.say(t, "DELETE FROM "+qualified("", name(target))+" WHERE "+hole)
		require.Equal(t, 9, s.Rows(name(target)))
		found, err := l.(loader.Resolver).Resolve(t.Context(), loader.RefOf(b))
		require.NoError(t, err)
		assert.Equal(t, loader.Unknown, found.Applied, dataset)
		assert.NotEmpty(t, found.Reason)
	}
}
