package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/quick"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/loader"
)

// documents completes an expectation with the smallest rows there are.
func documents(t *testing.T, e Expect) Expect {
	t.Helper()
	d, err := dataset.New("documents", dataset.Options{Seed: 7, PayloadBytes: 9})
	require.NoError(t, err)
	e.Dataset = d
	return e
}

// Batches of 10 rows, the last of 5, keys from 1000.
func TestCountNamesEveryBadBatch(t *testing.T) {
	bad := func(number, first, last, rows, found int64, reason Reason) report.BadBatch {
		keys := fmt.Sprintf("document_id %d to %d", first, last)
		return report.BadBatch{Number: number, FirstKey: first, LastKey: last, Keys: keys, Rows: rows, Found: found, Reason: string(reason)}
	}
	for _, c := range []struct {
		name   string
		damage func(e Expect, t *table)
		found  int64
		want   []report.BadBatch
	}{
		{"nothing wrong", func(Expect, *table) {}, 45, nil},
		{"rows of others do not count", func(_ Expect, t *table) {
			t.rows = append(t.rows, row{number: 999}, row{number: 1045})
		}, 45, nil},
		{"one row short", func(_ Expect, t *table) { t.remove(1013) },
			44, []report.BadBatch{bad(1, 1010, 1019, 10, 9, Short)}},
		{"a batch loaded twice", func(e Expect, t *table) {
			for n := range int64(10) {
				t.insert(e, 20+n)
			}
		}, 55, []report.BadBatch{bad(2, 1020, 1029, 10, 20, Doubled)}},
		{"one row missing, its neighbour there twice", func(e Expect, t *table) { t.remove(1013); t.insert(e, 14) },
			45, []report.BadBatch{bad(1, 1010, 1019, 10, 10, Wrong)}},
		{"two rows missing and two doubled: the sum is right, the squares are not", func(e Expect, t *table) {
			t.remove(1013)
			t.remove(1015)
			t.insert(e, 14)
			t.insert(e, 14)
		}, 45, []report.BadBatch{bad(1, 1010, 1019, 10, 10, Wrong)}},
		{"a row of one batch in place of another's", func(e Expect, t *table) { t.remove(1003); t.insert(e, 33) },
			45, []report.BadBatch{bad(0, 1000, 1009, 10, 9, Short), bad(3, 1030, 1039, 10, 11, Doubled)}},
		{"missing batches", func(_ Expect, t *table) {
			t.rows = slices.DeleteFunc(t.rows, func(r row) bool { return r.number < 1010 || r.number >= 1040 })
		}, 30, []report.BadBatch{bad(0, 1000, 1009, 10, 0, Missing), bad(4, 1040, 1044, 5, 0, Missing)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := documents(t, Expect{Spans: source.Spans{FirstKey: 1000, Rows: 45, BatchRows: 10}})
			table := load(e)
			c.damage(e, table)
			r, err := run(t.Context(), table, Count, e, 0)
			require.NoError(t, err)
			require.Equal(t, c.want, r.BadBatches)
			require.EqualValues(t, len(c.want), r.BadCount)
			require.Equal(t, c.found, r.FoundRows)
			require.Equal(t, len(c.want) == 0, r.OK)
		})
	}
}

// Any single accident, anywhere, in runs of any shape, is found and pinned to its batch.
func TestCountFindsAnyAccident(t *testing.T) {
	property := func(seed uint64) bool {
		random := rand.New(rand.NewPCG(seed, 1))
		e := documents(t, Expect{Spans: source.Spans{FirstKey: random.Int64N(1000), Rows: 2 + random.Int64N(200), BatchRows: 1 + random.Int64N(40)}})
		table := load(e)
		lost, doubled := random.Int64N(e.Rows), random.Int64N(e.Rows)
		bad := map[int64]bool{}
		accident := random.IntN(4)
		if accident == 1 || accident == 3 && lost != doubled {
			table.remove(e.FirstKey + lost)
			bad[lost/e.BatchRows] = true
		}
		if accident == 2 || accident == 3 && lost != doubled {
			table.insert(e, doubled)
			bad[doubled/e.BatchRows] = true
		}
		r, err := run(t.Context(), table, Count, e, 0)
		named := map[int64]bool{}
		for _, b := range r.BadBatches {
			named[b.Number] = true
		}
		return err == nil && r.OK == (len(bad) == 0) && len(named) == len(bad) &&
			!slices.ContainsFunc(r.BadBatches, func(b report.BadBatch) bool { return !bad[b.Number] })
	}
	require.NoError(t, quick.Check(property, &quick.Config{MaxCount: 300}))
}

// The sums over 0 … n−1 are binomials: Σi = C(n,2), Σi² = C(n,2) + 2·C(n,3).
func TestBatchesBeyond32Bits(t *testing.T) {
	const rows = 3_000_000_000
	e := Expect{Spans: source.Spans{FirstKey: 1 << 40, Rows: rows + 2_500_000_000, BatchRows: rows}}
	bucket := func(number, n int64) loader.Bucket {
		pairs := new(big.Int).Binomial(n, 2)
		triples := new(big.Int).Binomial(n, 3)
		squares := new(big.Int).Add(pairs, triples.Lsh(triples, 1))
		return loader.Bucket{Number: number, Rows: n, Max: n - 1, Sum: pairs, Squares: squares}
	}
	first, last := bucket(0, rows), bucket(1, 2_500_000_000)
	l := counter{count: func(g loader.Grouping, f func(loader.Bucket) error) error {
		require.Equal(t, loader.KeyRange{First: 1 << 40, Last: 1<<40 + 5_500_000_000 - 1}, g.KeyRange)
		require.EqualValues(t, rows, g.Size)
		require.NoError(t, f(last))
		return f(first)
	}}
	r, err := run(t.Context(), l, Count, e, 0)
	require.NoError(t, err)
	require.True(t, r.OK, r.BadBatches)
	require.False(t, first.Squares.IsUint64())

	last.Squares.Add(last.Squares, big.NewInt(1))
	r, err = run(t.Context(), l, Count, e, 0)
	require.NoError(t, err)
	require.Equal(t, []report.BadBatch{{Number: 1, FirstKey: 1<<40 + rows, LastKey: 1<<40 + 5_500_000_000 - 1, Rows: 2_500_000_000,
		Found: 2_500_000_000, Reason: string(Wrong)}}, r.BadBatches)
}

// The lists of a ruined run stay short, and are the same whatever order the server answers in.
func TestOnlyTheFirstBadBatchesAreKept(t *testing.T) {
	const batches = 1000
	random := rand.New(rand.NewPCG(1, 1)).Perm(batches)
	for _, order := range [][]int{random, slices.Sorted(slices.Values(random))} {
		l := counter{count: func(_ loader.Grouping, f func(loader.Bucket) error) error {
			for _, n := range order {
				if err := f(loader.Bucket{Number: int64(n), Rows: 1}); err != nil {
					return err
				}
			}
			return nil
		}}
		r, err := run(t.Context(), l, Count, Expect{Spans: source.Spans{Rows: 2 * batches, BatchRows: 2}}, 0)
		require.NoError(t, err)
		require.EqualValues(t, batches, r.BadCount)
		require.Len(t, r.BadBatches, maxKept)
		for i, b := range r.BadBatches {
			require.EqualValues(t, i, b.Number)
		}
		require.Equal(t, "verify failed: 1000 rows found, 2000 expected; wrong batches: 1000: batch 0 (rows 0 to 1) short: 1 of 2 rows", r.Failure())
	}
}

func TestWrongAnswersToCount(t *testing.T) {
	for _, c := range []struct {
		numbers []int64
		message string
	}{
		{[]int64{-1}, "counted bucket -1 of 2"},
		{[]int64{2}, "counted bucket 2 of 2"},
		{[]int64{1, 1}, "counted bucket 1 twice"},
		{nil, "counting rows: server closed the connection"},
	} {
		l := counter{count: func(_ loader.Grouping, f func(loader.Bucket) error) error {
			for _, n := range c.numbers {
				if err := f(loader.Bucket{Number: n}); err != nil {
					return err
				}
			}
			return errors.New("server closed the connection")
		}}
		_, err := run(t.Context(), l, Count, Expect{Spans: source.Spans{Rows: 20, BatchRows: 10}}, 0)
		require.ErrorContains(t, err, c.message)
	}
}

// Two workers count five parts that share every batch, and name the same as one scan does.
func TestPartsAddUp(t *testing.T) {
	for _, mode := range []Mode{Count, Full} {
		e := documents(t, Expect{Spans: source.Spans{FirstKey: 1000, Rows: 45, BatchRows: 10}, Workers: 2})
		var shares []float64
		e.Progress = func(share float64, rows int64) { shares = append(shares, share) }
		table := load(e)
		table.parts = 5
		r, err := run(t.Context(), table, mode, e, 0)
		require.NoError(t, err)
		require.True(t, r.OK, r)
		require.Equal(t, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}, shares)
		table.remove(1013)
		table.insert(e, 14)
		r, err = run(t.Context(), table, mode, e, 0)
		require.NoError(t, err)
		require.Equal(t, []report.BadBatch{{
			Number: 1, FirstKey: 1010, LastKey: 1019, Keys: "document_id 1010 to 1019", Rows: 10, Found: 10, Reason: string(Wrong),
		}}, r.BadBatches)
	}
}

// steady is a table whose server takes a microsecond a row.
type steady struct{ *table }

func (s steady) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	rows := len(s.rows)
	if g.Part != "" {
		rows /= s.parts
	}
	time.Sleep(time.Duration(rows) * time.Microsecond)
	return s.table.Count(ctx, g, f)
}

func TestConnectionsShareTheScan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := map[int]time.Duration{}
		for _, workers := range []int{1, 4, 16} {
			e := documents(t, Expect{Spans: source.Spans{Rows: 640, BatchRows: 10}, Workers: workers})
			table := steady{load(e)}
			table.parts = workers * partsAWorker
			start := time.Now()
			r, err := run(t.Context(), table, Count, e, 0)
			require.NoError(t, err)
			require.True(t, r.OK)
			took[workers] = time.Since(start)
		}
		require.Equal(t, map[int]time.Duration{1: 640 * time.Microsecond, 4: 160 * time.Microsecond, 16: 40 * time.Microsecond}, took)
	})
}

// saved keeps a text in memory.
type saved struct{ text []byte }

func (s *saved) Load() []byte     { return s.text }
func (s *saved) Save(text []byte) { s.text = text }

// dying is a table whose server goes away after some scans.
type dying struct {
	*table
	scansLeft atomic.Int64
}

func (d *dying) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	if d.scansLeft.Add(-1) < 0 {
		return errors.New("server closed the connection")
	}
	return d.table.Count(ctx, g, f)
}

// An interrupted proof goes on from the parts that are done, but not with another table's or another question's.
func TestInterruptedProofGoesOn(t *testing.T) {
	e := documents(t, Expect{Spans: source.Spans{Rows: 45, BatchRows: 10}, Workers: 2})
	table := load(e)
	table.parts = 8
	kept := new(saved)
	e.Saved, e.Identity = kept, "1"
	server := &dying{table: table}
	server.scansLeft.Store(5)
	_, err := run(t.Context(), server, Count, e, 0)
	require.ErrorContains(t, err, "server closed the connection")
	for _, c := range []struct {
		identity string
		mode     Mode
		scans    int
	}{{"1", Count, 3}, {"2", Count, 8}, {"1", Full, 8 + 1}} {
		e.Identity, e.Saved = c.identity, &saved{kept.text}
		table.scans = 0
		r, err := run(t.Context(), table, c.mode, e, 0)
		require.NoError(t, err)
		require.True(t, r.OK, r)
		require.Equal(t, c.scans, table.scans, c)
		require.Nil(t, e.Saved.Load())
	}
}

// Very many batches are counted together, and one that is wrong is named all the same.
func TestManyBatches(t *testing.T) {
	e := documents(t, Expect{Spans: source.Spans{FirstKey: 7, Rows: 2*maxBuckets + 1001, BatchRows: 2}, VerifyRows: 10})
	table := load(e)
	r, err := run(t.Context(), table, Full, e, 0)
	require.NoError(t, err)
	require.True(t, r.OK, r)
	require.Equal(t, 2, table.scans)
	table.remove(7 + 1000)
	table.remove(7 + 2*maxBuckets + 1000)
	table.rows[5].values[1] = []byte("short")
	var again []string
	e.Retry = func(ctx context.Context, what string, ask func(context.Context) error) error {
		err := ask(ctx)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			again = append(again, what)
			err = ask(ctx)
		}
		return err
	}
	r, err = run(t.Context(), broken{table, map[string]bool{}}, Full, e, 0)
	require.NoError(t, err)
	require.Equal(t, []string{"rows", "rows of wrong batches", "sample"}, again)
	require.EqualValues(t, e.Rows-2, r.FoundRows, "what an answer held that broke off counts for nothing")
	require.EqualValues(t, 2, r.BadRowCount, "of the batches that are not wholly missing")
	require.EqualValues(t, 3, r.BadCount)
	for i, want := range []struct {
		number int64
		reason Reason
	}{{2, Differs}, {500, Short}, {maxBuckets + 500, Missing}} {
		require.Equal(t, want.number, r.BadBatches[i].Number)
		require.Equal(t, string(want.reason), r.BadBatches[i].Reason)
	}
}
