package oracle

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// allTypes has a column of each type.
func allTypes() rows.Schema {
	return rows.Schema{
		Dataset: "all",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int64, Derived: true}, {Name: "name", Type: rows.Text, MaxBytes: 100},
			{Name: "body", Type: rows.Bytes, MaxBytes: 100}, {Name: "day", Type: rows.Date}, {Name: "at", Type: rows.Timestamp},
			{Name: "price", Type: rows.Decimal, Digits: 18, Scale: 2},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
}

// batchOf makes a batch of columns: row i has the number i, texts and bytes that end with it, the i-th day and
// microsecond after 2000-01-01, and a price of 18 digits, which no float holds. Every third text and every third RAW is empty.
func batchOf(tb testing.TB, n int) *batch.Batch {
	tb.Helper()
	s := allTypes()
	places, data := batch.ColumnPlaces(s, n)
	words := make([]int64, (data+n*48)/8+1) // begins at a multiple of 8
	encoded := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	number := func(column, row int, value int64) {
		binary.NativeEndian.PutUint64(encoded[places[column]+8*row:], uint64(value))
	}
	for i := range n {
		number(0, i, int64(i))
		number(3, i, 10957+int64(i%1000))
		number(4, i, 946684800_000_000+int64(i))
		number(5, i, priceOf(i))
	}
	for column, value := range map[int]func(int) string{1: nameOf, 2: bodyOf} {
		for i := range n {
			binary.NativeEndian.PutUint32(encoded[places[column]+4*i:], uint32(len(value(i))))
		}
	}
	end := data
	for _, column := range []int{1, 2} {
		value := map[int]func(int) string{1: nameOf, 2: bodyOf}[column]
		from := end
		for i := range n {
			end += copy(encoded[end:], value(i))
			binary.NativeEndian.PutUint32(encoded[places[column]+4*i:], uint32(end-from))
		}
	}
	return &batch.Batch{ID: batch.ID{Run: "r-1", Number: 1}, Format: batch.ColumnArrays, Rows: int64(n), Encoded: encoded[:end]}
}

func priceOf(i int) int64 { return -999_999_999_999_999_999 + int64(i) }

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

// columnsOf opens a batch.
func columnsOf(tb testing.TB, b *batch.Batch) *batch.Columns {
	tb.Helper()
	c, err := b.Columns(allTypes())
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func TestArrays(t *testing.T) {
	for _, skip := range []int64{0, 4, 6} {
		b := batchOf(t, 7)
		b.Skip = skip
		c := columnsOf(t, b)
		args, err := newBinds(reading(), allTypes()).arrays(c)
		require.NoError(t, err)
		require.Len(t, args, 6)
		var (
			ids   []int64
			names []string
			raws  [][]byte
			days  []time.Time
			ats   []time.Time
			money []int64
		)
		for i := int(skip); i < 7; i++ {
			ids, names, raws = append(ids, int64(i)), append(names, nameOf(i)), append(raws, []byte(bodyOf(i)))
			days = append(days, time.Date(2000, 1, 1+i, 0, 0, 0, 0, time.UTC))
			ats = append(ats, time.Date(2000, 1, 1, 0, 0, 0, 1000*i, time.UTC))
			money = append(money, priceOf(i))
		}
		assert.Equal(t, []any{ids, names, raws, days, ats, money}, args, "from row %d", skip)
		// Views, not copies.
		assert.Same(t, &c.Vectors[0].Ints[skip], &args[0].([]int64)[0])
		assert.Same(t, &c.Vectors[5].Ints[skip], &args[5].([]int64)[0])
		if at := 3 - int(skip); at >= 0 {
			assert.Same(t, unsafe.SliceData(c.Vectors[1].Value(3)), unsafe.StringData(args[1].([]string)[at]))
			assert.Same(t, unsafe.SliceData(c.Vectors[2].Value(3)), unsafe.SliceData(args[2].([][]byte)[at]))
		}
	}
}

func TestRow(t *testing.T) {
	b := batchOf(t, 7)
	a := newBinds(reading(), allTypes())
	for i := range 7 {
		args, err := a.row(columnsOf(t, b), i)
		require.NoError(t, err)
		assert.Equal(t, []any{
			int64(i), nameOf(i), []byte(bodyOf(i)), time.Date(2000, 1, 1+i, 0, 0, 0, 0, time.UTC),
			time.Date(2000, 1, 1, 0, 0, 0, 1000*i, time.UTC), priceOf(i),
		}, args)
	}
}

// What lives longer than a batch holds nothing of it: its buffer is filled anew, and may be given back.
func TestReleaseLetsGo(t *testing.T) {
	a := newBinds(reading(), allTypes())
	_, err := a.arrays(columnsOf(t, batchOf(t, 4)))
	require.NoError(t, err)
	args := a.args
	require.Len(t, a.texts[1], 4)
	a.release()
	assert.Equal(t, make([]any, 6), args)
	assert.Equal(t, make([]string, 4), a.texts[1])
	assert.Equal(t, make([][]byte, 4), a.raws[2])
}

// An array of texts takes four times the longest one's bytes in the library, which refuses one of more than 2 GiB.
func TestDirectArraysFitTheLibrary(t *testing.T) {
	assert.LessOrEqual(t, 4*capsOf(methodDirect).MaxBytes, int64(math.MaxInt32))
}

// Options go behind the values, of which the driver takes them away again.
func TestBindOptions(t *testing.T) {
	c := reading()
	c.options = []any{"no retry"}
	columns := columnsOf(t, batchOf(t, 2))
	args, err := newBinds(c, allTypes()).arrays(columns)
	require.NoError(t, err)
	assert.Equal(t, []any{"no retry"}, args[6:])
	args, err = newBinds(c, allTypes()).row(columns, 1)
	require.NoError(t, err)
	assert.Equal(t, []any{"no retry"}, args[6:])
}

// What would go wrong in a driver is refused before it is called.
func TestUnbindable(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*batch.Columns)
		says   string
	}{
		"no rows":         {func(c *batch.Columns) { c.From = c.Rows }, "no rows are wanted"},
		"a short array":   {func(c *batch.Columns) { c.Vectors[0].Ints = c.Vectors[0].Ints[:2] }, "column id has 2 values in a batch of 3 rows"},
		"a short text":    {func(c *batch.Columns) { c.Vectors[1].Ends = c.Vectors[1].Ends[:1] }, "column name has 1 values in a batch of 3 rows"},
		"the first day":   {func(c *batch.Columns) { c.Vectors[3].Ints[1] = -719162 }, "column day: midnight of 0001-01-01"},
		"the first clock": {func(c *batch.Columns) { c.Vectors[4].Ints[2] = yearOne }, "column at: midnight of 0001-01-01"},
	} {
		t.Run(name, func(t *testing.T) {
			columns := columnsOf(t, batchOf(t, 3))
			c.change(columns)
			_, err := newBinds(reading(), allTypes()).arrays(columns)
			require.ErrorContains(t, err, c.says)
			var unbound *bindError
			require.ErrorAs(t, err, &unbound)
		})
	}
	columns := columnsOf(t, batchOf(t, 3))
	columns.Vectors[4].Ints[2] = yearOne
	_, err := newBinds(reading(), allTypes()).row(columns, 2)
	require.ErrorContains(t, err, "midnight")
	require.True(t, time.UnixMicro(yearOne).UTC().IsZero())
}

// No row allocates: a batch a hundred times as long costs as many allocations.
func TestArraysAllocateNothingARow(t *testing.T) {
	for name, c := range map[string]client{"plain": reading(), builtIn().name: builtIn()} {
		t.Run(name, func(t *testing.T) {
			count := func(n int) float64 {
				b := batchOf(t, n)
				columns := columnsOf(t, b)
				a := newBinds(c, allTypes())
				return testing.AllocsPerRun(20, func() {
					_, err := a.arrays(columns)
					require.NoError(t, err)
				})
			}
			few, many := count(10), count(1000)
			assert.Equal(t, few, many)
			assert.LessOrEqual(t, many, 8.0, "the slices' headers, a box for each")
		})
	}
}

// BenchmarkArray binds 1000 rows in arrays, and beside it a slice of values a row, as drivers' examples do.
func BenchmarkArray(b *testing.B) {
	const n = 1000
	columns := columnsOf(b, batchOf(b, n))
	kept := make([]any, 0, 5) // so that the compiler keeps the rows
	defer func() { runtime.KeepAlive(kept) }()
	b.Run("arrays", func(b *testing.B) {
		a := newBinds(builtIn(), allTypes())
		b.ReportAllocs()
		for b.Loop() {
			if _, err := a.arrays(columns); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("rows", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for i := range n {
				row := make([]any, 5)
				v := columns.Vectors
				row[0], row[1], row[2] = v[0].Ints[i], string(v[1].Value(i)), append([]byte(nil), v[2].Value(i)...)
				row[3], row[4] = builtIn().one(v[3].Ints[i]*microsPerDay), builtIn().one(v[4].Ints[i])
				kept = row
			}
		}
	})
}
