package encode_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// rowsOf returns the values of vectors, of a block or a batch, row by row: int64 or string.
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
	s := recordsSchema(batch.ColumnArrays, 0) // the reader does not look at lengths
	f.Fuzz(func(t *testing.T, n int64, words string, raw []byte) {
		records := fuzzed(n, words, raw)
		records = append(records, records[0]) // an odd number has padding
		want := rowsOf(len(records), blockOf(s, records...).Columns)
		got := encoded(t, batch.ColumnArrays, records)
		c, err := (&batch.Batch{Format: batch.ColumnArrays, Rows: int64(len(records)), Encoded: got}).Columns(s)
		require.NoError(t, err)
		require.Equal(t, want, rowsOf(len(records), c.Vectors))
	})
}
