package encode_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// naiveColumns reads the layout that batch.Columns documents, a value at a time and with nothing of its code. The values
// are int64 or string, row by row.
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
			require.Zero(t, encoded[at], "padding is cleared")
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

// rowsOf returns the same of vectors, of a block or a batch.
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
	s := recordsSchema(batch.ColumnArrays, 0) // neither reader looks at lengths
	f.Fuzz(func(t *testing.T, n int64, words string, raw []byte) {
		records := fuzzed(n, words, raw)
		records = append(records, records[0]) // an odd number has padding
		want := rowsOf(len(records), blockOf(s, records...).Columns)
		got := encoded(t, batch.ColumnArrays, records)
		require.Equal(t, want, naiveColumns(t, s, len(records), got))
		c, err := (&batch.Batch{Format: batch.ColumnArrays, Rows: int64(len(records)), Encoded: got}).Columns(s)
		require.NoError(t, err)
		require.Equal(t, want, rowsOf(len(records), c.Vectors))
	})
}
