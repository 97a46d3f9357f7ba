package source

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
)

// run sends all batches in order, `flying` of them at a time, and returns the refills.
func run(t *testing.T, c Config, flying int) int64 {
	t.Helper()
	r := newRing(t, c)
	require.NoError(t, r.Fill(t.Context(), 1, nil))
	var held []*batch.Batch
	for number := range r.layout.Batches() {
		if len(held) == flying {
			held[0].Release()
			held = held[1:]
		}
		b, err := r.Batch(t.Context(), number)
		require.NoError(t, err)
		held = append(held, b)
	}
	for _, b := range held {
		b.Release()
	}
	return r.Refills()
}

func TestRefills(t *testing.T) {
	with := func(f batch.Format, distinct int64, buffers int, rows int64) Config {
		c := config(t, f, distinct, buffers)
		c.Rows = rows
		return c
	}
	assert.EqualValues(t, 0, run(t, with(batch.PGBinary, 320, 10, 3200), 3), "every template has its buffer")
	assert.EqualValues(t, 1, run(t, with(batch.PGBinary, 320, 10, 3210), 3), "the short last batch has not")
	assert.EqualValues(t, 0, run(t, with(batch.PGBinary, 320, 10, 250), 3), "a short last batch that was filled")
	assert.EqualValues(t, 0, run(t, with(batch.PGBinary, 64, 8, 3200), 4), "more in flight than templates, buffers for them")
	assert.EqualValues(t, 0, run(t, with(batch.PGBinary, 0, 4, 3200), 3), "nothing repeats")
	for _, f := range []batch.Format{batch.Parquet, batch.ColumnArrays} {
		assert.EqualValues(t, 1, run(t, with(f, 64, 3, 3210), 2), "columns are stamped, too, all but the short last batch")
	}

	// Two of ten templates have no buffer; the best order there is finds 7 of 10 (one buffer is in flight).
	assert.LessOrEqual(t, run(t, with(batch.PGBinary, 320, 8, 32*10*100), 1), int64(300))
}

// The template that gave way comes back, instead of one being missing for ever.
func TestStragglerCostsOneRefillEach(t *testing.T) {
	c := config(t, batch.PGBinary, 320, 10)
	c.Rows = 32 * 10 * 20
	r := newRing(t, c)
	require.NoError(t, r.Fill(t.Context(), 1, nil))
	straggler, err := r.Batch(t.Context(), 3)
	require.NoError(t, err)
	for number := range int64(15) {
		if number != 3 {
			send(t, r, c, number)
		}
	}
	straggler.Release()
	for number := int64(15); number < 200; number++ {
		send(t, r, c, number)
	}
	assert.EqualValues(t, 2, r.Refills(), "the straggler's template, and the one that gave way for it")
}

// Of small batches a ring has hundreds of thousands of buffers, and the garbage collector doubles what each has on the
// heap.
func TestHeapOfABuffer(t *testing.T) {
	heap := func() int64 {
		runtime.GC() // empties pools into where the second one finds them
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	c := config(t, batch.PGBinary, 0, 4000)
	c.Rows = 32 * int64(c.Buffers)
	before := heap()
	r := newRing(t, c)
	require.NoError(t, r.Fill(t.Context(), 1, nil))
	assert.LessOrEqual(t, (heap()-before)/int64(c.Buffers), int64(128))
	assert.Equal(t, c.Buffers, r.Free())
}
