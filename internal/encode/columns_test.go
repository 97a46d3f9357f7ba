package encode_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// readColumns opens the bytes as a driver does.
func readColumns(t testing.TB, s rows.Schema, n int, encoded []byte) *batch.Columns {
	t.Helper()
	c, err := (&batch.Batch{Format: batch.ColumnArrays, Rows: int64(n), Encoded: encoded}).Columns(s)
	require.NoError(t, err)
	require.Equal(t, n, c.Rows)
	require.Zero(t, c.From)
	return c
}

// naiveColumns follows the words that batch.Columns has for the layout, a value at a time and with nothing of its code:
// what it returns is int64 or string, row by row.
func naiveColumns(t testing.TB, s rows.Schema, n int, encoded []byte) [][]any {
	t.Helper()
	at := 0
	read := func(width int) (v int64) {
		require.LessOrEqual(t, at+width, len(encoded))
		if width == 8 {
			v = int64(binary.NativeEndian.Uint64(encoded[at:]))
		} else {
			v = int64(binary.NativeEndian.Uint32(encoded[at:]))
		}
		at += width
		return v
	}
	fixed := make([][]int64, len(s.Columns))
	for c, column := range s.Columns {
		width := 8
		if column.Type == rows.Text || column.Type == rows.Bytes {
			width = 4
		}
		for range n {
			fixed[c] = append(fixed[c], read(width))
		}
		for at%8 != 0 {
			require.Zero(t, encoded[at], "what is left free is cleared")
			at++
		}
	}
	values := make([][]any, n)
	for c, column := range s.Columns {
		start := int64(0)
		for i, v := range fixed[c] {
			if column.Type != rows.Text && column.Type != rows.Bytes {
				values[i] = append(values[i], v)
				continue
			}
			values[i] = append(values[i], string(encoded[at:][start:v]))
			start = v
		}
		at += int(start)
	}
	require.Len(t, encoded, at)
	return values
}

// rowsOf returns the same of vectors, from the schema's blocks or a batch's columns.
func rowsOf(n int, columns []rows.Vector) [][]any {
	values := make([][]any, n)
	for i := range values {
		for c := range columns {
			if v := &columns[c]; v.Type.Variable() {
				values[i] = append(values[i], string(v.Value(i)))
			} else {
				values[i] = append(values[i], v.Ints[i])
			}
		}
	}
	return values
}

func FuzzColumns(f *testing.F) {
	seed(f)
	s := recordsSchema(batch.ColumnArrays, 1<<20)
	f.Fuzz(func(t *testing.T, n int64, words string, raw []byte) {
		records := fuzzed(n, words, raw)
		records = append(records, records[0]) // an odd number leaves 4 bytes free
		want := rowsOf(len(records), blockOf(s, records...).Columns)
		got := encoded(t, batch.ColumnArrays, records)
		require.Equal(t, want, naiveColumns(t, s, len(records), got))
		require.Equal(t, want, rowsOf(len(records), readColumns(t, s, len(records), got).Vectors))
	})
}

func TestColumnsBytes(t *testing.T) {
	s := recordsSchema(batch.ColumnArrays, 10)
	buf, at := whole(newEncoder(t, batch.ColumnArrays, s), blockOf(s,
		record{7, -1, "words", []byte("\x00raw"), 18262, 1577836800_000001, -5}, record{id: 8}, record{9, 1, "x", []byte("y"), -1, -1, 6}))
	var want []byte
	for _, column := range [][]int64{{7, 8, 9}, {-1, 0, 1}, nil, {18262, 0, -1}, {1577836800_000001, 0, -1}, {-5, 0, 6}, nil} {
		for _, v := range column {
			want = binary.NativeEndian.AppendUint64(want, uint64(v))
		}
		if column == nil {
			first := map[int]uint32{48: 5, 136: 4}[len(want)]
			for _, end := range []uint32{first, first, first + 1, 0} {
				want = binary.NativeEndian.AppendUint32(want, end)
			}
		}
	}
	assert.Equal(t, string(want)+"wordsx"+"\x00rawy", string(buf))
	assert.Equal(t, &encode.Offsets{Rows: 3}, at)
	at.Reset()
	assert.Equal(t, &encode.Offsets{}, at)
}

// TestColumnsOfEveryDataset makes batches of all sizes, from pieces of all sizes, in memory that holds something else.
func TestColumnsOfEveryDataset(t *testing.T) {
	for _, name := range dataset.Names() {
		for _, kind := range []dataset.Kind{dataset.Bytes, dataset.Text} {
			d, err := dataset.New(name, dataset.Options{Seed: 3, PayloadKind: kind})
			if err != nil {
				continue // the dataset has no such payload
			}
			for _, n := range []int{1, 2, 3, 4, 5, 255, 1000} {
				t.Run(fmt.Sprintf("%s/%v/%d", name, kind, n), func(t *testing.T) {
					s := d.Schema()
					e := newEncoder(t, batch.ColumnArrays, s).(encode.PerBatch)
					buf := make([]byte, e.MaxBytes(int64(n)))
					for i := range buf {
						buf[i] = 0xA5
					}
					random := rand.New(rand.NewPCG(1, uint64(n)))
					w, b := e.ForBatch(n), rows.NewBlock(s)
					var at encode.Offsets
					got := w.AppendHead(buf[:0])
					for from := 0; from < n; {
						piece := min(n-from, random.IntN(300))
						d.Fill(b, int64(from), piece)
						d.Derive(b, 1000+int64(from))
						got = w.AppendRows(got, b, &at)
						from += piece
					}
					got = w.AppendTail(got)
					require.Same(t, &buf[0], &got[0], "no other buffer was taken")

					var want [][]any
					for i := range n {
						d.Fill(b, int64(i), 1)
						d.Derive(b, 1000+int64(i))
						want = append(want, rowsOf(1, b.Columns)...)
					}
					require.Equal(t, want, naiveColumns(t, s, n, got))
					require.Equal(t, want, rowsOf(n, readColumns(t, s, n, got).Vectors))
				})
			}
		}
	}
}

// TestColumnsAreStamped stamps derived texts behind variable columns of other lengths, in batches of all sizes, and
// nothing else.
func TestColumnsAreStamped(t *testing.T) {
	s := derivedSchema(batch.ColumnArrays)
	e := newEncoder(t, batch.ColumnArrays, s)
	for n := 1; n < 40; n++ {
		value := func(c, i int) int64 { return int64(1000*c + i) }
		want, _ := whole(e, wholeRows(s, n, value, "it's"))
		got, at := whole(e, wholeRows(s, n, func(c, i int) int64 { return int64(c-i) + 5000 }, "it's"))
		require.NotEqual(t, want, got)
		for i := range n {
			e.(encode.Stamper).Stamp(got, at, n-1-i, derive(s, n-1-i, 1, value))
		}
		require.Equal(t, want, got, "%d rows", n)
		assert.Panics(t, func() { e.(encode.Stamper).Stamp(got, at, n-1, derive(s, n-1, 2, value)) })
		require.Equal(t, want, got, "%d rows", n)
	}
}

// TestColumnsSize: the bound is what the longest values take.
func TestColumnsSize(t *testing.T) {
	s := recordsSchema(batch.ColumnArrays, 7)
	e := newEncoder(t, batch.ColumnArrays, s)
	assert.Equal(t, 8+8+4+7+8+8+8+4+7, e.MaxRow())
	longest := record{words: "abcdefg", raw: []byte("abcdefg")}
	for _, n := range []int{1, 2, 3, 1000, 1001} {
		records := make([]record, n)
		for i := range records {
			records[i] = longest
		}
		buf, _ := whole(e, blockOf(s, records...))
		assert.Len(t, buf, int(maxBytes(e, n)), "%d rows", n)
		assert.Len(t, buf, n*e.MaxRow()+n%2*8, "%d rows", n)
	}
}

func TestColumnsWrongUse(t *testing.T) {
	s := recordsSchema(batch.ColumnArrays, 3)
	e := newEncoder(t, batch.ColumnArrays, s)
	b := blockOf(s, record{id: 1}, record{id: 2})
	var at encode.Offsets
	const plan = "encode: columns are made by the encoder that ForBatch returns"
	assert.PanicsWithValue(t, plan, func() { e.AppendRows(nil, b, &at) })
	assert.PanicsWithValue(t, plan, func() { e.AppendTail(nil) })
	for n, want := range map[int]string{1: "encode: 2 rows for columns of 1", 3: "encode: columns of 3 rows were given 2"} {
		assert.PanicsWithValue(t, want, func() {
			w := e.(encode.PerBatch).ForBatch(n)
			w.AppendTail(w.AppendRows(w.AppendHead(nil), b, &at))
		}, "%d", n)
	}
	// One value too long is none of another, even where all together have room.
	assert.PanicsWithValue(t, "encode: a value of column words is longer than 3 bytes", func() {
		whole(e, blockOf(s, record{words: "a"}, record{words: "abcd"}))
	})
	for _, bad := range []record{
		{day: 2_932_897}, {day: -719_163}, {at: math.MinInt64}, {at: math.MaxInt64},
		{at: 2_932_897 * 86_400_000_000}, {at: -719_162*86_400_000_000 - 1}, {sum: 1e18}, {sum: -1e18}, {sum: math.MinInt64},
	} {
		assert.Panics(t, func() { whole(e, blockOf(s, bad)) }, "%+v", bad)
	}
	whole(e, blockOf(s, record{day: 2_932_896, at: 2_932_897*86_400_000_000 - 1}, record{day: -719_162, at: -719_162 * 86_400_000_000}))
}

// TestColumnsAllocateLittle: what a batch takes besides its buffer depends on its columns, not on its rows.
func TestColumnsAllocateLittle(t *testing.T) {
	s := recordsSchema(batch.ColumnArrays, 100)
	var records []record
	for i := range 1000 {
		records = append(records, record{int64(i), -5, strings.Repeat("w", i%100), []byte("\x00raw"), int64(i), int64(-i), int64(i)})
	}
	e, b := newEncoder(t, batch.ColumnArrays, s).(encode.PerBatch), blockOf(s, records...)
	buf := make([]byte, 0, e.MaxBytes(16_000))
	var at encode.Offsets
	assert.LessOrEqual(t, testing.AllocsPerRun(10, func() {
		w := e.ForBatch(16_000)
		out := w.AppendHead(buf)
		for range 16 {
			out = w.AppendRows(out, b, &at)
		}
		w.AppendTail(out)
	}), 2.0)
}
