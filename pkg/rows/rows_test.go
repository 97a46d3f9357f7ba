package rows_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

func fill(b *rows.Block, values ...string) {
	b.Reset(len(values))
	for i, v := range values {
		for c := range b.Columns {
			if col := &b.Columns[c]; col.Type.Variable() {
				col.Data = append(col.Data, v...)
				col.Ends = append(col.Ends, uint32(len(col.Data)))
			} else {
				col.Ints[i] = int64(i)
			}
		}
	}
}

func TestBlock(t *testing.T) {
	s := rows.Schema{Columns: []rows.Column{
		{Name: "payload", Type: rows.Bytes, MaxBytes: 10}, {Name: "key", Type: rows.Int64}, {Name: "note", Type: rows.Text, MaxBytes: 5},
	}}
	require.EqualValues(t, 10+8+5, s.MaxRowBytes())
	b := rows.NewBlock(s)
	for _, values := range [][]string{{"", "a", "", "bcd"}, {"xy"}, {}, {"", ""}} {
		fill(b, values...)
		want := 8 * int64(len(values))
		for i, v := range values {
			require.Equal(t, v, string(b.Columns[0].Value(i)))
			want += 2 * int64(len(v))
		}
		require.Equal(t, len(values), b.Rows)
		require.Equal(t, want, b.PayloadBytes())
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { fill(b, "a", "bcd") }), "the block was as large before")
}

// A NULL has no bytes, and a block forgets which rows were NULL.
func TestNullsOfABlock(t *testing.T) {
	b := rows.NewBlock(rows.Schema{Columns: []rows.Column{{Name: "id", Type: rows.UUID}, {Name: "n", Type: rows.Int16, Nullable: true}}})
	b.Reset(130)
	v := &b.Columns[1]
	v.SetNulls(130)
	for _, i := range []int{0, 63, 64, 129} {
		v.Nulls[i/64] |= 1 << (i % 64)
		require.True(t, v.IsNull(i))
	}
	require.False(t, v.IsNull(128))
	require.False(t, b.Columns[0].IsNull(0))
	require.EqualValues(t, 4, v.CountNulls())
	require.EqualValues(t, 130*16+126*2, b.PayloadBytes())
	require.Len(t, b.Columns[0].UUID(129), 16)

	b.Reset(130)
	require.Zero(t, v.CountNulls())
	require.False(t, v.IsNull(0))
	require.Zero(t, testing.AllocsPerRun(10, func() { b.Reset(130); v.SetNulls(130) }), "the block was as large before")
}

// The largest row number is bounded by the range of the first term's column, and by 64 bits.
func TestMaxNumber(t *testing.T) {
	integer, timestamp := rows.Column{Type: rows.Int64}, rows.Column{Type: rows.Timestamp}
	text := func(bytes int) rows.Column { return rows.Column{Type: rows.Text, MaxBytes: bytes} }
	for _, c := range []struct {
		column rows.Column
		term   rows.Term
		want   int64
	}{
		{integer, rows.Term{Times: 1}, 1<<63 - 1},
		{integer, rows.Term{Minus: 1, Times: 1}, 1<<63 - 2},
		{integer, rows.Term{Minus: 1, Times: 4}, 1<<63 - 1},
		{integer, rows.Term{Minus: -5, Times: 1}, 1<<63 - 1},
		{timestamp, rows.Term{Times: 1}, 253_402_300_799_999_999},
		{timestamp, rows.Term{Minus: 1_767_225_600_000_000, Times: 1}, 251_635_075_199_999_999},
		{timestamp, rows.Term{Minus: -1, Times: 2}, 506_804_601_600_000_001},
		{timestamp, rows.Term{Times: 1000}, 1<<63 - 1},
		{text(3), rows.Term{Times: 1}, 999},
		{text(18), rows.Term{Times: 1}, 999_999_999_999_999_999},
		{text(19), rows.Term{Times: 1}, 1<<63 - 1},
	} {
		s := rows.Schema{Columns: []rows.Column{c.column, integer}, Number: []rows.Term{c.term, {Column: 1, Times: 1}}}
		require.Equal(t, c.want, s.MaxNumber(), "%s %+v", c.column.Type, c.term)
		s.Limit = 1000
		require.Equal(t, min(c.want, 1000), s.MaxNumber(), "%s %+v with a limit", c.column.Type, c.term)
	}
}

func TestTextOfDecimals(t *testing.T) {
	c := rows.Column{Type: rows.Decimal, Digits: 5, Scale: 2}
	for v, want := range map[int64]string{
		0: "0.00", 5: "0.05", -5: "-0.05", 12345: "123.45", -100: "-1.00", math.MinInt64: "-92233720368547758.08",
	} {
		require.Equal(t, want, c.Text(v))
	}
}

// Digits to base stride change places, and back.
func TestScatter(t *testing.T) {
	for v, want := range map[int64]int64{0: 0, 1: 10, 9: 90, 10: 1, 11: 11, 99: 99, 100: 100, 123: 132} {
		require.Equal(t, want, rows.Scatter(v, 10))
		require.Equal(t, v, rows.Scatter(want, 10))
	}
	require.False(t, rows.Term{Times: 1, Stride: 10}.Ordered())
	require.False(t, rows.Term{Times: 1, Hex: true}.Ordered())
}
