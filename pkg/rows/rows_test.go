package rows_test

import (
	"slices"
	"testing"

	"github.com/terapush/terapush/pkg/rows"
)

func schema() rows.Schema {
	return rows.Schema{
		Dataset: "d",
		Columns: []rows.Column{
			{Name: "payload", Type: rows.Bytes, MaxBytes: 10},
			{Name: "key", Type: rows.Int64, Derived: true},
			{Name: "note", Type: rows.Text, MaxBytes: 5},
		},
		Number: []rows.Term{{Column: 1, Times: 1}},
	}
}

func TestSchema(t *testing.T) {
	s := schema()
	if s.Key().Name != "key" {
		t.Errorf("the key is %q", s.Key().Name)
	}
	if names := s.Names(); !slices.Equal(names, []string{"payload", "key", "note"}) {
		t.Errorf("names %v", names)
	}
	if n := s.MaxRowBytes(); n != 10+8+5 {
		t.Errorf("a row has up to %d bytes", n)
	}
}

func TestTypes(t *testing.T) {
	for typ, want := range map[rows.Type]struct {
		name     string
		variable bool
	}{
		rows.Int64: {"int64", false}, rows.Bytes: {"bytes", true}, rows.Text: {"text", true}, 9: {"rows.Type(9)", false},
		rows.Date: {"date", false}, rows.Timestamp: {"timestamp", false}, rows.Decimal: {"decimal", false},
	} {
		if typ.String() != want.name || typ.Variable() != want.variable {
			t.Errorf("%d: %s, variable %v", typ, typ, typ.Variable())
		}
	}
}

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
	b := rows.NewBlock(schema())
	for _, values := range [][]string{{"", "a", "", "bcd"}, {"xy"}, {}, {"", ""}} {
		fill(b, values...)
		want := 8 * int64(len(values))
		for i, v := range values {
			if got := b.Columns[0].Value(i); string(got) != v {
				t.Errorf("value %d is %q, want %q", i, got, v)
			}
			want += 2 * int64(len(v))
		}
		if b.Rows != len(values) || b.PayloadBytes() != want {
			t.Errorf("%v: %d rows of %d bytes, want %d", values, b.Rows, b.PayloadBytes(), want)
		}
	}
	if n := testing.AllocsPerRun(10, func() { fill(b, "a", "bcd") }); n != 0 {
		t.Errorf("a block that was as large before allocates %v times", n)
	}
}

// TestMaxNumber: the range of the first column of the sum, and nothing beyond 64 bits.
func TestMaxNumber(t *testing.T) {
	column := func(typ rows.Type, bytes int) rows.Column {
		return rows.Column{Type: typ, MaxBytes: bytes}
	}
	for _, c := range []struct {
		column rows.Column
		term   rows.Term
		want   int64
	}{
		{column(rows.Int64, 0), rows.Term{Times: 1}, 1<<63 - 1},
		{column(rows.Int64, 0), rows.Term{Minus: 1, Times: 1}, 1<<63 - 2},
		{column(rows.Int64, 0), rows.Term{Minus: 1, Times: 4}, 1<<63 - 1},
		{column(rows.Int64, 0), rows.Term{Minus: -5, Times: 1}, 1<<63 - 1},
		{column(rows.Timestamp, 0), rows.Term{Times: 1}, 253_402_300_799_999_999},
		{column(rows.Timestamp, 0), rows.Term{Minus: 1_767_225_600_000_000, Times: 1}, 251_635_075_199_999_999},
		{column(rows.Timestamp, 0), rows.Term{Minus: -1, Times: 2}, 506_804_601_600_000_001},
		{column(rows.Timestamp, 0), rows.Term{Times: 1000}, 1<<63 - 1},
		{column(rows.Text, 3), rows.Term{Times: 1}, 999},
		{column(rows.Text, 18), rows.Term{Times: 1}, 999_999_999_999_999_999},
		{column(rows.Text, 19), rows.Term{Times: 1}, 1<<63 - 1},
	} {
		s := rows.Schema{Columns: []rows.Column{c.column, {Type: rows.Int64}}, Number: []rows.Term{c.term, {Column: 1, Times: 1}}}
		if got := s.MaxNumber(); got != c.want {
			t.Errorf("%s %+v: %d, want %d", c.column.Type, c.term, got, c.want)
		}
	}
}
