package feed

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// config is 1000 rows in batches of 32, the last one short; Distinct and Buffers are up to the test. The formats that
// carry no raw bytes get people.
func config(t testing.TB, f batch.Format, distinct int64, buffers int) Config {
	t.Helper()
	d, err := dataset.New("documents", dataset.Options{Seed: 5, PayloadBytes: 30})
	require.NoError(t, err)
	if encode.Carries(f, d.Schema()) != nil {
		d, err = dataset.New("people", dataset.Options{Seed: 5})
		require.NoError(t, err)
	}
	c := Config{
		Dataset: d, Run: "r1", FirstKey: 90, Rows: 1000, BatchRows: 32, Distinct: distinct, Buffers: buffers,
	}
	c.Encoder, err = NewEncoder(f, d, c.FirstKey, c.Rows)
	require.NoError(t, err)
	return c
}

func newFeed(t testing.TB, c Config) *Feed {
	t.Helper()
	f, err := New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

// naive makes a batch's bytes row by row, with nothing of the feed's.
func naive(c Config, number int64) (encoded []byte, at encode.Offsets) {
	first, end := number*c.BatchRows, min((number+1)*c.BatchRows, c.Rows)
	e := c.Encoder
	if p, ok := e.(encode.PerBatch); ok {
		e = p.ForBatch(int(end - first))
	}
	encoded = e.AppendHead(nil)
	b := rows.NewBlock(c.Dataset.Schema())
	for row := first; row < end; row++ {
		dataset.Row(b, c.Dataset, c.FirstKey, row, c.Distinct)
		encoded = e.AppendRows(encoded, b, &at)
	}
	return e.AppendTail(encoded), at
}

func requireNaive(t testing.TB, c Config, b *batch.Batch) {
	t.Helper()
	encoded, at := naive(c, b.ID.Number)
	require.Equal(t, string(encoded), string(b.Encoded), "batch %d", b.ID.Number)
	require.True(t, slices.Equal(at.Starts, b.Starts))
	require.Equal(t, batch.ID{Run: c.Run, Number: b.ID.Number}, b.ID)
	require.Equal(t, c.Encoder.Format(), b.Format)
	require.Equal(t, c.FirstKey+b.ID.Number*c.BatchRows, b.First)
	require.Equal(t, min(c.BatchRows, c.Rows-b.ID.Number*c.BatchRows), b.Rows)
	require.Equal(t, b.Rows*c.Dataset.Schema().MaxRowBytes(), b.Payload)
	require.Equal(t, len(c.Encoder.AppendHead(nil)), b.Head)
	require.Zero(t, b.Skip)
	if b.Format == batch.ColumnArrays {
		columns, err := b.Columns(c.Dataset.Schema())
		require.NoError(t, err, "a driver reads them in place")
		require.NoError(t, columns.Close())
	}
}

// unstampable hides an encoder's Stamp.
type unstampable struct{ encode.Encoder }

func TestBatchesEqualNaiveEncoding(t *testing.T) {
	for _, f := range []batch.Format{batch.TSV, batch.PGBinary, batch.Values, batch.CSV, batch.Parquet, batch.ColumnArrays} {
		for _, distinct := range []int64{0, 32, 320, 1024, 3200} {
			for _, buffers := range []int{1, 3, 11, 40} {
				t.Run(fmt.Sprintf("%s/D=%d/buffers=%d", f, distinct, buffers), func(t *testing.T) {
					c := config(t, f, distinct, buffers)
					if f == batch.TSV {
						c.Encoder = unstampable{c.Encoder}
					}
					feed := newFeed(t, c)
					if buffers != 3 {
						require.NoError(t, feed.Fill(t.Context(), 3, nil))
					}
					random := rand.New(rand.NewPCG(uint64(distinct), uint64(buffers)))
					var held []*batch.Batch
					for range 20 {
						for len(held) > 0 && (len(held) == buffers || random.IntN(2) == 0) {
							i := random.IntN(len(held))
							requireNaive(t, c, held[i]) // still, after other batches were made
							held[i].Release()
							held = slices.Delete(held, i, i+1)
						}
						b, err := feed.Batch(t.Context(), []int64{random.Int64N(32), 31, random.Int64N(32)}[random.IntN(3)])
						require.NoError(t, err)
						requireNaive(t, c, b)
						held = append(held, b)
					}
					for _, b := range held {
						b.Release()
					}
					require.Equal(t, buffers, feed.Free())
				})
			}
		}
	}
}

// Batches of more rows than are made or stamped at a time.
func TestBatchesOfManyPieces(t *testing.T) {
	d, err := dataset.New("pairs", dataset.Options{})
	require.NoError(t, err)
	c := Config{Dataset: d, Run: "r", FirstKey: 7, Rows: 4 * 5000, BatchRows: 5000, Distinct: 10_000, Buffers: 2}
	c.Encoder, err = NewEncoder(batch.TSV, d, c.FirstKey, c.Rows)
	require.NoError(t, err)
	f := newFeed(t, c)
	require.NoError(t, f.Fill(t.Context(), 1, nil))
	for number := range int64(4) {
		b, err := f.Batch(t.Context(), number)
		require.NoError(t, err)
		requireNaive(t, c, b)
		b.Release()
	}
	require.Zero(t, f.Refills())
}

func TestConcurrentWorkers(t *testing.T) {
	for _, distinct := range []int64{0, 64, 320} {
		c := config(t, batch.PGBinary, distinct, 5)
		c.Rows = 32 * 500
		f := newFeed(t, c)
		require.NoError(t, f.Fill(t.Context(), 2, nil))
		var next atomic.Int64
		var workers sync.WaitGroup
		for range 8 { // more than buffers
			workers.Go(func() {
				for number := next.Add(1) - 1; number < 500; number = next.Add(1) - 1 {
					b, err := f.Batch(t.Context(), number)
					if !assert.NoError(t, err) {
						return
					}
					want, _ := naive(c, number)
					body := b.Open()
					b.Release()
					got, err := io.ReadAll(body)
					assert.NoError(t, err)
					assert.True(t, bytes.Equal(want, got), "batch %d", number)
					assert.NoError(t, body.Close())
				}
			})
		}
		workers.Wait()
		assert.Equal(t, 5, f.Free())
		if distinct == 0 {
			assert.Zero(t, f.Refills())
		}
	}
}

func TestFill(t *testing.T) {
	for _, c := range []struct {
		distinct int64
		buffers  int
		want     int // batches
	}{{320, 4, 4}, {320, 10, 10}, {320, 12, 12}, {0, 7, 7}, {32000, 50, 32}} {
		cfg := config(t, batch.PGText, c.distinct, c.buffers)
		f := newFeed(t, cfg)
		var calls, filled atomic.Int64
		require.NoError(t, f.Fill(t.Context(), 4, func(bytes int64) { calls.Add(1); filled.Add(bytes) }))
		assert.EqualValues(t, c.want, calls.Load())
		var bytes int
		for k := range c.want {
			encoded, _ := naive(cfg, int64(k))
			bytes += len(encoded)
		}
		assert.EqualValues(t, bytes, filled.Load())
		assert.Equal(t, c.buffers, f.Free())
		assert.Equal(t, c.buffers, f.Buffers())
		assert.Zero(t, f.Refills())
	}

	c := config(t, batch.TSV, 1024, 3) // of a resumed run, what is still to be sent
	c.Done = func(number int64) bool { return number < 6 }
	f := newFeed(t, c)
	require.NoError(t, f.Fill(t.Context(), 2, nil))
	for number := int64(6); number < 9; number++ {
		b, err := f.Batch(t.Context(), number)
		require.NoError(t, err)
		b.Release()
	}
	require.Zero(t, f.Refills())

	f = newFeed(t, config(t, batch.PGText, 0, 4))
	ctx, cancel := context.WithCancel(t.Context())
	err := f.Fill(ctx, 1, func(int64) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 4, f.Free())
}

func TestBatchWaits(t *testing.T) {
	c := config(t, batch.PGBinary, 320, 1)
	f := newFeed(t, c)
	first, err := f.Batch(t.Context(), 0)
	require.NoError(t, err)
	assert.Zero(t, f.Free())

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = f.Batch(ctx, 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	body := first.Open()
	late := first.Open()
	first.Release()
	require.NoError(t, body.Close())
	got := make(chan *batch.Batch)
	go func() {
		b, err := f.Batch(t.Context(), 1)
		assert.NoError(t, err)
		got <- b
	}()
	select {
	case <-got:
		t.Fatal("the buffer was given out while a body was open")
	case <-time.After(10 * time.Millisecond):
	}
	read, err := io.ReadAll(late)
	require.NoError(t, err)
	want, _ := naive(c, 0)
	assert.Equal(t, want, read)
	require.NoError(t, late.Close())
	second := <-got
	requireNaive(t, c, second)
	second.Release()

	ended, end := context.WithCancel(t.Context())
	end()
	for range 20 {
		_, err = f.Batch(ended, 2)
		require.ErrorIs(t, err, context.Canceled, "although a buffer is free")
	}
}

func TestClose(t *testing.T) {
	f, err := New(config(t, batch.PGBinary, 320, 2))
	require.NoError(t, err)
	b, err := f.Batch(t.Context(), 0)
	require.NoError(t, err)
	require.EqualError(t, f.Close(), "feed: closed with 1 batches in use")
	assert.EqualValues(t, 0xFF, b.Encoded[len(b.Encoded)-1], "still mapped")
	b.Release()
	require.NoError(t, f.Close())
	require.NoError(t, f.Close())
	for range 2 + 1 {
		_, err = f.Batch(t.Context(), 0)
		require.ErrorIs(t, err, ErrClosed)
	}
	require.ErrorIs(t, f.Fill(t.Context(), 1, nil), ErrClosed)
}

func TestBatchNumbers(t *testing.T) {
	f := newFeed(t, config(t, batch.PGBinary, 320, 2))
	for _, number := range []int64{-1, 32, math.MaxInt64} {
		_, err := f.Batch(t.Context(), number)
		require.EqualError(t, err, fmt.Sprintf("feed: batch %d does not exist: the run has 32", number))
	}
	assert.Equal(t, 2, f.Free())
}

// Columns are made per batch as files are, and stamped as rows are: what is encoded again although its template repeats
// is a refill, and its buffers note no offsets.
func TestColumnsAreStamped(t *testing.T) {
	c := config(t, batch.ColumnArrays, 64, 3)
	c.Encoder = &counting{Encoder: c.Encoder}
	f := newFeed(t, c)
	require.NoError(t, f.Fill(t.Context(), 1, nil)) // templates 0 and 1, and 0 once more
	made := func() [2]int64 {
		e := c.Encoder.(*counting)
		return [2]int64{e.encoded.Load(), e.stamped.Load()}
	}
	require.Equal(t, [2]int64{3, 0}, made())
	for number := int64(3); number < 31; number++ {
		b, err := f.Batch(t.Context(), number)
		require.NoError(t, err)
		requireNaive(t, config(t, batch.ColumnArrays, 64, 3), b)
		require.Empty(t, b.Starts)
		b.Release()
	}
	require.Equal(t, [2]int64{3, 28}, made())
	require.Zero(t, f.Refills())

	// The last batch is shorter than its template, so no buffer holds it.
	b, err := f.Batch(t.Context(), 31)
	require.NoError(t, err)
	requireNaive(t, config(t, batch.ColumnArrays, 64, 3), b)
	b.Release()
	require.Equal(t, [2]int64{4, 28}, made())
	assert.EqualValues(t, 1, f.Refills())
}

// counting counts what is made how.
type counting struct {
	encode.Encoder
	encoded, stamped atomic.Int64
}

func (e *counting) MaxBytes(n int64) int64 { return e.Encoder.(encode.PerBatch).MaxBytes(n) }

func (e *counting) ForBatch(n int) encode.Encoder {
	e.encoded.Add(1)
	return e.Encoder.(encode.PerBatch).ForBatch(n)
}

func (e *counting) Stamp(buf []byte, at *encode.Offsets, from int, b *rows.Block) {
	e.stamped.Add(1)
	e.Encoder.(encode.Stamper).Stamp(buf, at, from, b)
}

// lying is an encoder whose rows are longer than it says.
type lying struct{ encode.Encoder }

func (e lying) MaxRow() int { return e.Encoder.MaxRow() / 2 }

func TestBufferTooSmallIsAnError(t *testing.T) {
	c := config(t, batch.PGBinary, 320, 2)
	c.Rows, c.BatchRows, c.Distinct = 32000, 3200, 0
	c.Encoder = lying{c.Encoder}
	f := newFeed(t, c)
	_, err := f.Batch(t.Context(), 0)
	require.ErrorContains(t, err, "more than MaxRow allows")
	assert.Equal(t, 2, f.Free())
}
