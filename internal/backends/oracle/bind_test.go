package oracle

import (
	"fmt"
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// columnsOf opens a batch of n rows of every: row i has the number i, texts and bytes that end with it, the i-th day and
// microsecond after 2000-01-01, and a price. Every third text and every third RAW is empty.
func columnsOf(tb testing.TB, n int) *batch.Columns {
	tb.Helper()
	s := every()
	block := rows.NewBlock(s)
	block.Reset(n)
	for i := range n {
		for column, v := range map[int]int64{
			0: int64(i), 3: 10957 + int64(i), 4: 946684800_000_000 + int64(i), 5: priceOf(i),
		} {
			block.Columns[column].Ints[i] = v
		}
		for column, v := range map[int]string{1: bodyOf(i), 2: nameOf(i)} {
			c := &block.Columns[column]
			c.Data = append(c.Data, v...)
			c.Ends = append(c.Ends, uint32(len(c.Data)))
		}
	}
	e, err := encode.New(batch.ColumnArrays, s, encode.Options{})
	require.NoError(tb, err)
	e = e.(encode.PerBatch).ForBatch(n)
	var at encode.Offsets
	b := &batch.Batch{ID: batch.ID{Run: "r"}, Format: batch.ColumnArrays, Rows: int64(n)}
	b.Encoded = e.AppendTail(e.AppendRows(e.AppendHead(nil), block, &at))
	c, err := b.Columns(s)
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func priceOf(i int) int64 { return -999_999_999_999_999 + int64(i) }

func nameOf(i int) string {
	if i%3 == 2 {
		return ""
	}
	return fmt.Sprintf("größe-%d", i)
}

func bodyOf(i int) string {
	if i%3 == 1 {
		return ""
	}
	return fmt.Sprintf("\x00\xff%d", i)
}

// The client's options stand behind the values.
func TestBinds(t *testing.T) {
	const n = 7
	client := reading()
	client.options = []any{"no retry"}
	c := columnsOf(t, n)
	a := newBinds(client, every())
	var (
		ids   []int64
		raws  [][]byte
		names []string
		days  []time.Time
		ats   []time.Time
		money []int64
	)
	for i := range n {
		day, at := time.Date(2000, 1, 1+i, 0, 0, 0, 0, time.UTC), time.Date(2000, 1, 1, 0, 0, 0, 1000*i, time.UTC)
		ids, raws, names = append(ids, int64(i)), append(raws, []byte(bodyOf(i))), append(names, nameOf(i))
		days, ats, money = append(days, day), append(ats, at), append(money, priceOf(i))
		assert.Equal(t, []any{int64(i), []byte(bodyOf(i)), nameOf(i), day, at, priceOf(i), "no retry"}, a.row(c, i))
	}
	args := a.arrays(c)
	assert.Equal(t, []any{ids, raws, names, days, ats, money, "no retry"}, args)

	// Views, not copies.
	assert.Same(t, &c.Vectors[0].Ints[0], &args[0].([]int64)[0])
	assert.Same(t, &c.Vectors[5].Ints[0], &args[5].([]int64)[0])
	assert.Same(t, unsafe.SliceData(c.Vectors[1].Value(3)), unsafe.SliceData(args[1].([][]byte)[3]))
	assert.Same(t, unsafe.SliceData(c.Vectors[2].Value(3)), unsafe.StringData(args[2].([]string)[3]))

	// The batch's buffer is reused: nothing refers to it afterwards.
	texts, raw := a.columns[2].texts, a.columns[1].raws
	a.release()
	assert.Equal(t, make([]any, 7), args)
	assert.Equal(t, make([]string, n), texts)
	assert.Equal(t, make([][]byte, n), raw)
}

// An array of texts takes four times the longest one's bytes in the library, which refuses one of more than 2 GiB.
func TestDirectArraysFitTheLibrary(t *testing.T) {
	assert.LessOrEqual(t, 4*capsOf(methodDirect).MaxBytes, int64(math.MaxInt32))
}

// What would go wrong in a driver is refused before it is called.
func TestUnbindable(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *batch.Columns)
		says   string
	}{
		"minus zero": {
			func(c *batch.Columns) { c.Vectors[0].Type, c.Vectors[0].Ints[1] = rows.Float64, minusZero }, "column id: −0 cannot be bound",
		},
		"minus zero of 32 bits": {
			func(c *batch.Columns) { c.Vectors[0].Type, c.Vectors[0].Ints[1] = rows.Float32, minusZero32 }, "column id: −0 cannot be bound",
		},
		"a short array":   {func(c *batch.Columns) { c.Vectors[0].Ints = c.Vectors[0].Ints[:2] }, "column id has 2 values in a batch of 3"},
		"a short text":    {func(c *batch.Columns) { c.Vectors[2].Ends = c.Vectors[2].Ends[:1] }, "column name has 1 values in a batch of 3"},
		"the first day":   {func(c *batch.Columns) { c.Vectors[3].Ints[1] = -719162 }, "column day: midnight of 0001-01-01"},
		"the first clock": {func(c *batch.Columns) { c.Vectors[4].Ints[1] = yearOne }, "column at: midnight of 0001-01-01"},
	} {
		t.Run(name, func(t *testing.T) {
			columns := columnsOf(t, 3)
			c.change(columns)
			var unbound *bindError
			err := newBinds(reading(), every()).check(columns)
			require.ErrorContains(t, err, c.says)
			require.ErrorAs(t, err, &unbound)
		})
	}
	require.True(t, time.UnixMicro(yearOne).UTC().IsZero())
}

// An empty text is stored as NULL, so both in one column could not be told apart.
func TestEmptyBesideNull(t *testing.T) {
	s, columns := every(), columnsOf(t, 3)
	require.NoError(t, newBinds(reading(), s).check(columns), "no NULL: an empty text is one when it is read")
	s.Columns[2].Nullable = true
	require.ErrorContains(t, newBinds(reading(), s).check(columns), "column name: some values are NULL and others are empty")
	columns.Vectors[2].Nulls = []uint64{1 << 2} // the empty one
	require.NoError(t, newBinds(reading(), s).check(columns))
}

// No row allocates: a batch a hundred times as long costs as many allocations.
func TestArraysAllocateNothingARow(t *testing.T) {
	for name, c := range map[string]client{"plain": reading(), builtIn().name: builtIn()} {
		t.Run(name, func(t *testing.T) {
			count := func(n int) float64 {
				columns, a := columnsOf(t, n), newBinds(c, every())
				return testing.AllocsPerRun(20, func() {
					require.NoError(t, a.check(columns))
					a.arrays(columns)
				})
			}
			few, many := count(10), count(1000)
			assert.Equal(t, few, many)
			assert.LessOrEqual(t, many, 8.0, "the slices' headers, a box for each")
		})
	}
}
