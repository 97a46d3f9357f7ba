package source

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
		Dataset: d, Run: "r1", Spans: Spans{FirstKey: 90, Rows: 1000, BatchRows: 32}, Distinct: distinct, Buffers: buffers,
	}
	c.Encoder, err = NewEncoder(f, d, c.FirstKey, c.Rows)
	require.NoError(t, err)
	return c
}

func newRing(t testing.TB, c Config) *Ring {
	t.Helper()
	r, err := New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// naive makes a batch's bytes row by row, with nothing of the ring's.
func naive(c Config, number int64) (encoded []byte, payload int64) {
	first, end := number*c.BatchRows, min((number+1)*c.BatchRows, c.Rows)
	e := c.Encoder
	if p, ok := e.(encode.PerBatch); ok {
		e = p.ForBatch(int(end - first))
	}
	encoded = e.AppendHead(nil)
	var at encode.Offsets
	b := rows.NewBlock(c.Dataset.Schema())
	for row := first; row < end; row++ {
		dataset.Row(b, c.Dataset, c.FirstKey, row, c.Distinct)
		encoded = e.AppendRows(encoded, b, &at)
		payload += b.PayloadBytes()
	}
	return e.AppendTail(encoded), payload
}

func requireNaive(t testing.TB, c Config, b *batch.Batch) {
	t.Helper()
	encoded, payload := naive(c, b.ID.Number)
	require.Equal(t, encoded, b.Encoded, "batch %d", b.ID.Number)
	require.Equal(t, batch.ID{Run: c.Run, Number: b.ID.Number}, b.ID)
	require.Equal(t, c.Encoder.Format(), b.Format)
	require.Equal(t, c.FirstKey+b.ID.Number*c.BatchRows, b.First)
	require.Equal(t, min(c.BatchRows, c.Rows-b.ID.Number*c.BatchRows), b.Rows)
	require.Equal(t, payload, b.Payload)
	if b.Format == batch.ColumnArrays {
		columns, err := b.Columns(c.Dataset.Schema())
		require.NoError(t, err, "a driver reads them in place")
		require.NoError(t, columns.Close())
	}
}

// send makes a batch, which must be as it should, and gives it back.
func send(t testing.TB, r *Ring, c Config, number int64) {
	t.Helper()
	b, err := r.Batch(t.Context(), number)
	require.NoError(t, err)
	requireNaive(t, c, b)
	b.Release()
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
					r := newRing(t, c)
					if buffers != 3 {
						require.NoError(t, r.Fill(t.Context(), 3, nil))
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
						b, err := r.Batch(t.Context(), []int64{random.Int64N(32), 31, random.Int64N(32)}[random.IntN(3)])
						require.NoError(t, err)
						requireNaive(t, c, b)
						held = append(held, b)
					}
					for _, b := range held {
						b.Release()
					}
					require.Equal(t, buffers, r.Free())
				})
			}
		}
	}
}

// Batches of more rows than are made or stamped at a time.
func TestBatchesOfManyPieces(t *testing.T) {
	d, err := dataset.New("pairs", dataset.Options{})
	require.NoError(t, err)
	c := Config{Dataset: d, Run: "r", Spans: Spans{FirstKey: 7, Rows: 4 * 5000, BatchRows: 5000}, Distinct: 10_000, Buffers: 2}
	c.Encoder, err = NewEncoder(batch.TSV, d, c.FirstKey, c.Rows)
	require.NoError(t, err)
	r := newRing(t, c)
	require.NoError(t, r.Fill(t.Context(), 1, nil))
	for number := range int64(4) {
		send(t, r, c, number)
	}
	require.Zero(t, r.Refills())
}

func TestConcurrentWorkers(t *testing.T) {
	for _, distinct := range []int64{0, 64, 320} {
		c := config(t, batch.PGBinary, distinct, 5)
		c.Rows = 32 * 500
		r := newRing(t, c)
		require.NoError(t, r.Fill(t.Context(), 2, nil))
		var next atomic.Int64
		var workers sync.WaitGroup
		for range 8 { // more than buffers
			workers.Go(func() {
				for number := next.Add(1) - 1; number < 500; number = next.Add(1) - 1 {
					b, err := r.Batch(t.Context(), number)
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
		assert.Equal(t, 5, r.Free())
		if distinct == 0 {
			assert.Zero(t, r.Refills())
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
		r := newRing(t, cfg)
		var calls, filled atomic.Int64
		require.NoError(t, r.Fill(t.Context(), 4, func(bytes int64) { calls.Add(1); filled.Add(bytes) }))
		assert.EqualValues(t, c.want, calls.Load())
		var bytes int
		for k := range c.want {
			encoded, _ := naive(cfg, int64(k))
			bytes += len(encoded)
		}
		assert.EqualValues(t, bytes, filled.Load())
		assert.Equal(t, c.buffers, r.Free())
		assert.Equal(t, c.buffers, r.Buffers())
		assert.Zero(t, r.Refills())
	}

	c := config(t, batch.TSV, 1024, 3) // of a resumed run, what is still to be sent
	c.Done = func(number int64) bool { return number < 6 }
	r := newRing(t, c)
	require.NoError(t, r.Fill(t.Context(), 2, nil))
	for number := int64(6); number < 9; number++ {
		send(t, r, c, number)
	}
	require.Zero(t, r.Refills())

	r = newRing(t, config(t, batch.PGText, 0, 4))
	ctx, cancel := context.WithCancel(t.Context())
	err := r.Fill(ctx, 1, func(int64) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 4, r.Free())
}

func TestBatchWaits(t *testing.T) {
	c := config(t, batch.PGBinary, 320, 1)
	r := newRing(t, c)
	first, err := r.Batch(t.Context(), 0)
	require.NoError(t, err)
	assert.Zero(t, r.Free())

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = r.Batch(ctx, 1)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	body := first.Open()
	late := first.Open()
	first.Release()
	require.NoError(t, body.Close())
	got := make(chan *batch.Batch)
	go func() {
		b, err := r.Batch(t.Context(), 1)
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
		_, err = r.Batch(ended, 2)
		require.ErrorIs(t, err, context.Canceled, "although a buffer is free")
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	r, err := New(config(t, batch.PGBinary, 320, 2))
	require.NoError(t, err)
	b, err := r.Batch(t.Context(), 0)
	require.NoError(t, err)
	require.EqualError(t, r.Close(), "source: closed with 1 batches in use")
	assert.EqualValues(t, 0xFF, b.Encoded[len(b.Encoded)-1], "still mapped")
	time.AfterFunc(10*time.Millisecond, b.Release) // as an http.Transport closes a body after the answer
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	for range 2 + 1 {
		_, err = r.Batch(t.Context(), 0)
		require.ErrorIs(t, err, ErrClosed)
	}
	require.ErrorIs(t, r.Fill(t.Context(), 1, nil), ErrClosed)
}

func TestCloseWithoutABatch(t *testing.T) {
	r, err := New(config(t, batch.PGBinary, 320, 2))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = r.Batch(t.Context(), 0)
	require.ErrorIs(t, err, ErrClosed)
	assert.Nil(t, r.memory)
}

func TestBatchNumbers(t *testing.T) {
	r := newRing(t, config(t, batch.PGBinary, 320, 2))
	for _, number := range []int64{-1, 32, math.MaxInt64} {
		_, err := r.Batch(t.Context(), number)
		require.EqualError(t, err, fmt.Sprintf("source: batch %d does not exist: the run has 32", number))
	}
	assert.Equal(t, 2, r.Free())
}

// lying is an encoder whose rows are longer than it says.
type lying struct{ encode.Encoder }

func (e lying) MaxRow() int { return e.Encoder.MaxRow() / 2 }

func TestBufferTooSmallIsAnError(t *testing.T) {
	c := config(t, batch.PGBinary, 320, 2)
	c.Rows, c.BatchRows, c.Distinct = 32000, 3200, 0
	c.Encoder = lying{c.Encoder}
	r := newRing(t, c)
	_, err := r.Batch(t.Context(), 0)
	require.ErrorContains(t, err, "more than MaxRow allows")
	assert.Equal(t, 2, r.Free())
}

// TestEveryDatasetIsStamped compares stamped batches with rows made one by one: at the first rows, over the end of a
// second, a day and an order, and at the last numbers that a key carries.
func TestEveryDatasetIsStamped(t *testing.T) {
	t.Parallel()
	for _, name := range dataset.Names() {
		o := dataset.Options{Seed: 5}
		if name == "documents" {
			o.PayloadKind = dataset.Text
		}
		d, err := dataset.New(name, o)
		require.NoError(t, err)
		most := d.Schema().MaxNumber()
		for _, format := range encode.Formats() {
			if _, how := format.Compression(); how != "" || encode.Carries(format, d.Schema()) != nil {
				continue
			}
			for _, first := range []int64{0, 999_950, 86_399_999_950, 9_999_953, most - 200} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, format, first), func(t *testing.T) {
					c := Config{Dataset: d, Run: "r", Spans: Spans{FirstKey: first, Rows: 201, BatchRows: 10}, Distinct: 30, Buffers: 4}
					c.Encoder, err = NewEncoder(format, d, c.FirstKey, c.Rows)
					require.NoError(t, err)
					r := newRing(t, c)
					require.NoError(t, r.Fill(t.Context(), 1, nil))
					for number := range int64(21) {
						send(t, r, c, number)
					}
				})
			}
		}
	}
}
