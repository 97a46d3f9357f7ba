package encode_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
)

// The formats whose rows are not contiguous. The bound of their bytes is what the longest values take; of a file there
// are numbers in the metadata that are shorter.
func TestPerBatchSize(t *testing.T) {
	for f, slack := range map[batch.Format]int{batch.ColumnArrays: 0, batch.Parquet: 300} {
		s := recordsSchema(f, 7)
		e := newEncoder(t, f, s)
		for _, n := range []int{1, 2, 3, 64, 1001, 95_325, 95_326, 190_651} { // pages of a file end at 95,325
			records := make([]record, n)
			for i := range records {
				records[i] = record{words: "abcdefg", raw: []byte("abcdefg")}
			}
			buf, _ := whole(e, blockOf(s, records...))
			assert.GreaterOrEqual(t, len(buf)+slack, int(maxBytes(e, n)), "%d rows as %s", n, f)
			assert.GreaterOrEqual(t, len(buf), n*e.MaxRow(), "%d rows as %s", n, f)
		}
	}
}

func TestPerBatchWrongUse(t *testing.T) {
	for _, f := range []batch.Format{batch.ColumnArrays, batch.Parquet} {
		s := recordsSchema(f, 3)
		e := newEncoder(t, f, s)
		b, at := blockOf(s, record{id: 1}, record{id: 2}), new(encode.Offsets)
		require.Panics(t, func() { e.AppendRows(nil, b, at) }, "without ForBatch, %s", f)
		require.Panics(t, func() { e.AppendTail(nil) }, "without ForBatch, %s", f)
		few, many := e.(encode.PerBatch).ForBatch(1), e.(encode.PerBatch).ForBatch(3)
		require.Panics(t, func() { few.AppendRows(few.AppendHead(nil), b, at) }, "2 rows for 1, %s", f)
		given := many.AppendRows(many.AppendHead(nil), b, at)
		require.Panics(t, func() { many.AppendTail(given) }, "2 rows for 3, %s", f)
		// A value that is too long must not use the room of another.
		values := []record{{words: "a"}, {words: "abcd"}}
		if f == batch.Parquet {
			values = values[1:] // the page has room
		}
		require.PanicsWithValue(t, "encode: a value of column words is longer than 3 bytes", func() { whole(e, blockOf(s, values...)) }, f)
	}
	s := recordsSchema(batch.ColumnArrays, 3)
	e := newEncoder(t, batch.ColumnArrays, s)
	buf, at := whole(e, blockOf(s, record{}, record{}))
	require.PanicsWithValue(t, "encode: rows to 3 of columns of 2", func() {
		e.(encode.Stamper).Stamp(buf, at, 1, blockOf(s, record{}, record{}))
	})
	whole(e, blockOf(s, record{day: 2_932_896, at: 2_932_897*86_400_000_000 - 1}, record{day: -719_162, at: -719_162 * 86_400_000_000}))
}
