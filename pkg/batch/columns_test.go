package batch_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

func columnsSchema() rows.Schema {
	return rows.Schema{Dataset: "d", Columns: []rows.Column{
		{Name: "key", Type: rows.Int64, Derived: true},
		{Name: "words", Type: rows.Text, MaxBytes: 5},
		{Name: "day", Type: rows.Date},
		{Name: "raw", Type: rows.Bytes, MaxBytes: 5},
		{Name: "at", Type: rows.Timestamp},
	}}
}

// newColumns has the rows (7, "a", −1, "xyz", 10), (8, "", −2, "", 20) and (9, "bcd", −3, "z", 30).
func newColumns() (b *batch.Batch, freed *int) {
	var encoded []byte
	ints := func(values ...int64) {
		for _, v := range values {
			encoded = binary.NativeEndian.AppendUint64(encoded, uint64(v))
		}
	}
	ends := func(values ...uint32) {
		for _, v := range values {
			encoded = binary.NativeEndian.AppendUint32(encoded, v)
		}
	}
	ints(7, 8, 9)
	ends(1, 1, 4, 0) // three, and padding
	ints(-1, -2, -3)
	ends(3, 3, 4, 0)
	ints(10, 20, 30)
	encoded = append(encoded, "abcdxyzz"...)
	freed = new(int)
	b = &batch.Batch{
		ID: batch.ID{Run: "r", Number: 4}, Format: batch.ColumnArrays, First: 7, Rows: 3,
		Encoded: encoded, Free: func() { *freed++ },
	}
	b.Hold()
	return b, freed
}

func TestColumnsAreViews(t *testing.T) {
	b, _ := newColumns()
	c, err := b.Columns(columnsSchema())
	require.NoError(t, err)
	require.Equal(t, []int{3, 5}, []int{c.Rows, len(c.Vectors)})
	for i, want := range map[int][]int64{0: {7, 8, 9}, 2: {-1, -2, -3}, 4: {10, 20, 30}} {
		require.Equal(t, want, c.Vectors[i].Ints)
	}
	for i, want := range map[int][]string{1: {"a", "", "bcd"}, 3: {"xyz", "", "z"}} {
		for row, value := range want {
			require.Equal(t, value, string(c.Vectors[i].Value(row)), "column %d, row %d", i, row)
		}
		// An append to a view must not write over the next column.
		require.Len(t, c.Vectors[i].Data, cap(c.Vectors[i].Data), "column %d", i)
	}
	for i, column := range columnsSchema().Columns {
		require.Equal(t, column.Type, c.Vectors[i].Type)
	}
	clear(b.Encoded[:8])
	require.Zero(t, c.Vectors[0].Ints[0], "not a copy")
	b.Encoded[len(b.Encoded)-8] = 'A'
	require.Equal(t, "A", string(c.Vectors[1].Value(0)), "not a copy")
	require.NoError(t, c.Close())
	require.Nil(t, c.Vectors)
}

func TestInvalidColumns(t *testing.T) {
	all, words, key := columnsSchema(), columnsSchema(), columnsSchema()
	words.Columns, key.Columns = words.Columns[:2], key.Columns[:1]
	cut := func(n int) func(*batch.Batch) { return func(b *batch.Batch) { b.Encoded = b.Encoded[:n] } }
	for _, c := range []struct {
		change func(*batch.Batch)
		schema rows.Schema
		want   string
	}{
		{func(b *batch.Batch) { b.Format = batch.TSV }, all, "batch: r/4 is encoded as tsv, not as columns"},
		{func(b *batch.Batch) { b.Rows = 0 }, all, "batch: r/4 is of columns and has no rows"},
		{cut(0), all, "batch: r/4 has 0 bytes, too few for 3 rows of d"},
		{cut(103), all, "batch: r/4 has 103 bytes, too few for 3 rows of d"},
		{cut(107), all, "batch: r/4 ends within the values of column words"},
		{cut(111), all, "batch: r/4 ends within the values of column raw"},
		{func(b *batch.Batch) { b.Encoded = append(b.Encoded, 'x') }, all, "batch: r/4 has 1 bytes after 3 rows of d"},
		{cut(112), words, "batch: r/4 has 68 bytes after 3 rows of d"},
		{cut(112), key, "batch: r/4 has 88 bytes after 3 rows of d"},
		{
			func(b *batch.Batch) { b.Encoded = append(make([]byte, 4), b.Encoded...)[4:] }, all,
			"batch: r/4 begins at no multiple of 8 bytes, so its numbers cannot be read in place",
		},
	} {
		b, freed := newColumns()
		c.change(b)
		_, err := b.Columns(c.schema)
		require.EqualError(t, err, c.want)
		b.Release()
		require.Equal(t, 1, *freed, "%s, and holds the buffer", c.want)
	}
}

func TestColumnsPassed(t *testing.T) {
	b, _ := newColumns()
	calls := 0
	b.AllRead = func() {
		calls++
		require.EqualValues(t, len(b.Encoded), b.Sent())
	}
	for reading := 1; reading <= 2; reading++ {
		c, err := b.Columns(columnsSchema())
		require.NoError(t, err)
		require.Zero(t, b.Sent())
		for _, step := range []struct{ row, sent, calls int }{
			{0, 0, reading - 1}, {1, 37, reading - 1}, {2, 74, reading - 1}, {3, 112, reading}, {3, 112, reading},
		} {
			c.Passed(step.row)
			require.EqualValues(t, step.sent, b.Sent(), "row %d", step.row)
			require.Equal(t, step.calls, calls, "row %d", step.row)
		}
		require.NoError(t, c.Close())
		c.Passed(1)
		require.EqualValues(t, 112, b.Sent(), "a closed reading changes nothing")
	}
}

func TestColumnPlaces(t *testing.T) {
	for n, want := range map[int][]int{1: {0, 8, 16, 24, 32, 40}, 2: {0, 16, 24, 40, 48, 64}, 3: {0, 24, 40, 64, 80, 104}} {
		places, data := batch.ColumnPlaces(columnsSchema(), n)
		require.Equal(t, want, append(places, data), "%d rows", n)
	}
}
