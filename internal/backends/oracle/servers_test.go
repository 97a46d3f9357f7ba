package oracle

import (
	"context"
	"crypto/rand"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// liveTarget is a table that does not exist yet on the server of TERAPUSH_TEST_ORACLE, which is written
// oracle://user:password@host/service and names a schema that may create tables.
//
// Unlike for every other server its absence is no failure in CI, because no Oracle server can be installed there. What runs
// here runs over the stand-in all the same, so that these tests are no code that nobody has ever run.
func liveTarget(t *testing.T, method string) loader.Target {
	t.Helper()
	text := os.Getenv("TERAPUSH_TEST_ORACLE")
	if text == "" {
		t.Skip("TERAPUSH_TEST_ORACLE is not set: oracle://user:password@host/service")
	}
	to, err := loader.ParseTarget(text)
	require.NoError(t, err)
	to.Method, to.Table = method, "t_"+strings.ToLower(rand.Text()[:12])
	return to
}

// What a run does with a back-end, from the first connection to the balance, by every method and for every kind of column.
func TestRunOnAServer(t *testing.T) {
	for _, method := range []string{methodSingle, methodBatch, methodArray, methodFast, methodDirect} {
		for name, kind := range map[string]dataset.Kind{"journal": "", "people": "", "documents": dataset.Bytes} {
			t.Run(method+", "+name, func(t *testing.T) {
				d := datasetOf(t, name, kind)
				t.Run("stand-in", func(t *testing.T) {
					t.Parallel()
					s := startStandIn(t, method == methodDirect, fake.Options{DrainRows: 1000})
					runThrough(t, s.backend, s.table(method), d)
				})
				t.Run("live", func(t *testing.T) {
					to := liveTarget(t, method)
					if _, err := New().Check(to); err != nil {
						require.ErrorContains(t, err, "make build-godror")
						t.Skipf("not with this driver: %v", err)
					}
					t.Cleanup(func() { dropLive(t, to) })
					runThrough(t, New().(backend), to, d)
				})
			})
		}
	}
}

// runThrough loads 4 batches by two sessions and looks at everything that the back-end can tell of them.
func runThrough(t *testing.T, b backend, to loader.Target, d dataset.Dataset) {
	const size, batches = 250, 4
	ctx := t.Context()
	l, err := b.Open(ctx, to, testDeps())
	require.NoError(t, err)
	defer l.Close()
	t.Logf("%+v", l.Server())
	o := l.(*opened)
	c := contractOf(to.Method, size)
	table, err := l.Prepare(ctx, loader.Preparation{
		Run: "r" + rand.Text()[:8], Schema: d.Schema(), Contract: c, Create: loader.CreateIfMissing, PrimaryKey: to.Method != methodFast,
	})
	require.NoError(t, err)
	require.NotEmpty(t, table.Identity)
	run := settled(t, o).Want.Run

	if c.Dedup == loader.DedupTx {
		proof, err := o.Probe(ctx, c, held(encoded(t, d, c.Format, batch.ID{Run: run}, 0, 1)))
		require.NoError(t, err)
		require.True(t, proof.Transactional, proof.Reason)
	}
	sessions := make([]loader.Session, 2)
	for i := range sessions {
		if to.Method == methodDirect && i > 0 {
			sessions[i] = sessions[0] // the table is locked by one
			continue
		}
		sessions[i], err = l.Session(ctx, c)
		require.NoError(t, err)
	}
	of := func(n int64) *batch.Batch {
		return held(encoded(t, d, c.Format, batch.ID{Run: run, Number: n}, n*size, size))
	}
	for n := range int64(batches) {
		ack, err := sessions[n%2].Load(ctx, of(n))
		require.NoError(t, err)
		require.EqualValues(t, size, ack.Rows)
	}
	if c.Dedup == loader.DedupTx {
		again := of(1)
		again.Attempt = 2
		ack, err := sessions[0].Load(ctx, again)
		require.NoError(t, err)
		require.True(t, ack.AlreadyApplied)
	}
	require.NoError(t, sessions[0].Close())
	if sessions[1] != sessions[0] {
		require.NoError(t, sessions[1].Close())
	}
	all := loader.KeyRange{First: 0, Last: size*batches - 1}
	notes, err := o.Finish(ctx, all, size*batches)
	require.NoError(t, err)
	cost, more := o.Measured(ctx)
	t.Logf("cost %v, notes %q", cost, append(notes, more...))

	found(ctx, t, o, all, size)
	looksAs(ctx, t, o, d, []int64{0, 1, size - 1, size*batches - 1})
	if c.Dedup != loader.DedupNone {
		for number, want := range map[int64]loader.Applied{0: loader.Yes, batches: loader.No} {
			r, err := o.Resolve(ctx, loader.Ref{ID: batch.ID{Run: run, Number: number}, First: number * size, Rows: size, Attempt: 1})
			require.NoError(t, err)
			assert.Equal(t, want, r.Applied, "batch %d: %s", number, r.Reason)
		}
	}
	stored, err := o.Stored(ctx)
	require.NoError(t, err)
	assert.Positive(t, stored)
	if c.Dedup == loader.DedupTx {
		_, err = o.Forget(ctx, run)
		require.NoError(t, err)
		require.NoError(t, o.Claimed(ctx, run, func(number, _ int64) error {
			t.Errorf("batch %d is still claimed", number)
			return nil
		}))
	}
}

// found counts the rows, batch by batch.
func found(ctx context.Context, t *testing.T, o *opened, all loader.KeyRange, size int64) {
	t.Helper()
	buckets := map[int64]int64{}
	require.NoError(t, o.Count(ctx, loader.Grouping{KeyRange: all, Size: size}, func(b loader.Bucket) error {
		buckets[b.Number] = b.Rows
		assert.Equal(t, [2]int64{0, size - 1}, [2]int64{b.Min, b.Max})
		assert.Equal(t, big.NewInt(size*(size-1)/2), b.Sum)
		assert.Equal(t, big.NewInt((size-1)*size*(2*size-1)/6), b.Squares)
		return nil
	}))
	for n := range (all.Last + 1) / size {
		assert.Equal(t, size, buckets[n], "batch %d", n)
	}
	distinct, err := o.Distinct(ctx, all)
	require.NoError(t, err)
	assert.Equal(t, all.Last+1, distinct)
}

// looksAs compares rows with what was sent, value by value: drivers round and shift what they believe to understand.
func looksAs(ctx context.Context, t *testing.T, o *opened, d dataset.Dataset, numbers []int64) {
	t.Helper()
	seen := 0
	require.NoError(t, o.Fetch(ctx, numbers, func(number int64, values []any) error {
		seen++
		assert.Equal(t, rowOf(d, number), values, "row %d", number)
		return nil
	}))
	assert.Equal(t, len(numbers), seen)
}

// dropLive removes what a test has made on a real server.
func dropLive(t *testing.T, to loader.Target) {
	l, err := New().Open(context.WithoutCancel(t.Context()), to, testDeps())
	require.NoError(t, err, "%s stays", to.Table)
	defer l.Close()
	ctx := context.WithoutCancel(t.Context())
	require.NoError(t, l.(*opened).withLink(ctx, func(k *link) error {
		_, err := k.exec(ctx, "DROP TABLE "+dialect().Identifier(to.Table)+" PURGE")
		return err
	}), "%s stays", to.Table)
}

func held(b *batch.Batch) *batch.Batch {
	b.Hold()
	return b
}
