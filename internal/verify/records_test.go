package verify

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

// What is not known to be the same value is compared by the server's own reading, or not at all.
func TestDifferField(t *testing.T) {
	decimal := rows.Column{Type: rows.Decimal, Digits: 10, Scale: 2}
	millis := rows.Column{Type: rows.Timestamp, Scale: 3}
	at := int64(1_769_828_645_123_000) // 2026-01-31 03:04:05.123
	for _, c := range []struct {
		column   rows.Column
		field    string
		found    any
		compared bool
		differs  bool
	}{
		{rows.Column{Type: rows.Int64}, "7", int64(7), true, false},
		{rows.Column{Type: rows.Int64}, "+07", int64(7), true, false},
		{rows.Column{Type: rows.Int64}, "8", int64(7), true, true},
		{rows.Column{Type: rows.Int64}, "1e3", int64(1000), false, false},
		{rows.Column{Type: rows.Int64}, "18446744073709551615", "18446744073709551615", true, false},
		{rows.Column{Type: rows.Int64}, "18446744073709551614", "18446744073709551615", false, false},
		{rows.Column{Type: rows.Int64}, "7", nil, true, true},
		{decimal, "1.5", int64(150), true, false},
		{decimal, "1.500", int64(150), true, false},
		{decimal, "1.505", int64(151), false, false}, // which it cannot keep
		{decimal, "-.5", int64(-50), true, false},
		{decimal, "1.51", int64(150), true, true},
		{decimal, "100000000000000000000.10", "100000000000000000000.1", true, false},
		{rows.Column{Type: rows.Float32s}, "[1, 5e-1]", []byte("\x00\x00\x80\x3F\x00\x00\x00\x3F"), true, false},
		{rows.Column{Type: rows.Float32s}, "[1,0.500001]", []byte("\x00\x00\x80\x3F\x00\x00\x00\x3F"), true, true},
		{rows.Column{Type: rows.Float32s}, "[1]", []byte("\x00\x00\x80\x3F\x00\x00\x00\x3F"), true, true},
		{rows.Column{Type: rows.Bool}, "yes", int64(1), true, false},
		{rows.Column{Type: rows.Bool}, "0", int64(1), true, true},
		{rows.Column{Type: rows.Bool}, "2", "2", true, false},
		{rows.Column{Type: rows.Float64}, "0.1", int64(0x3fb999999999999a), true, false},
		{rows.Column{Type: rows.Float64}, "0.10000000000000002", int64(0x3fb999999999999a), true, true},
		{rows.Column{Type: rows.Float64}, "-0", int64(0), true, false},
		{rows.Column{Type: rows.Float64}, "nan", int64(0x7ff8000000000000), true, false},
		{rows.Column{Type: rows.Float64}, "NaN", int64(0), true, true},
		{rows.Column{Type: rows.Float32}, "NaN", int64(0xffc00000), true, false},
		{rows.Column{Type: rows.Date}, "-Infinity", nil, false, false},
		{rows.Column{Type: rows.Date}, "1970-01-02", nil, true, true},
		{rows.Column{Type: rows.Date}, "1970-01-02", int64(1), true, false},
		{rows.Column{Type: rows.Date}, "Jan 2 1970", int64(1), false, false},
		{millis, "2026-01-31T03:04:05.123", at, true, false},
		{millis, "2026-01-31 03:04:05.1234", at, false, false},
		{millis, "2026-01-31 03:04:06.123", at, true, true},
		{millis, "2026-01-31 03:04:05.123+02", at, false, false},
		{rows.Column{Type: rows.TimestampTZ}, "2026-01-31 05:04:05.123+02:00", at, true, false},
		{rows.Column{Type: rows.Text}, "a ", []byte("a "), true, false},
		{rows.Column{Type: rows.Text}, "a ", []byte("a"), true, true},
		{rows.Column{Type: rows.Text}, "", nil, true, true},
		{rows.Column{Type: rows.Char}, "a ", []byte("a"), true, false},
		{rows.Column{Type: rows.Enum}, "RED", []byte("red"), true, false},
		{rows.Column{Type: rows.Enum}, "2", []byte("red"), false, false},
		{rows.Column{Type: rows.Enum}, "blue", []byte("red"), true, true},
		{rows.Column{Type: rows.JSON}, `{"b":1, "a":2}`, []byte(`{"a": 2, "b": 1}`), true, false},
		{rows.Column{Type: rows.JSON}, `{"b":1}`, []byte(`{"b": 2}`), true, true},
		{rows.Column{Type: rows.Bytes}, `\x00ff`, []byte("\x00\xff"), true, false},
		{rows.Column{Type: rows.Bytes}, "00FF", []byte("\x00\xff"), true, false},
		{rows.Column{Type: rows.Bytes}, "raw", []byte("raw"), true, false},
		{rows.Column{Type: rows.Bytes}, `\000`, []byte("\x00"), false, false},
		{rows.Column{Type: rows.Bytes}, `\x00ff`, []byte("\x00\xfe"), true, true},
		{rows.Column{Type: rows.UUID}, "0123456789ABCDEF-0123456789abcdef", []byte("\x01\x23\x45\x67\x89\xab\xcd\xef\x01\x23\x45\x67\x89\xab\xcd\xef"), true, false},
	} {
		detail, _, compared, err := differField(c.column, []byte(c.field), c.found)
		require.NoError(t, err)
		require.Equal(t, []any{c.compared, c.differs}, []any{compared, detail != ""}, "%s %q: %s", c.column.Type, c.field, detail)
	}
	detail, _, compared, err := differField(decimal, nil, int64(1))
	require.NoError(t, err)
	require.Equal(t, []any{true, "it is not NULL"}, []any{compared, detail})
}

// kept is what a server has.
type kept [][]any

func (k kept) Reread(_ context.Context, _ []rows.Column, _ int, _ []string, f func([]any) error) error {
	for _, row := range k {
		if err := f(row); err != nil {
			return err
		}
	}
	return nil
}

// Each record has one row, with its fields. Rows of other keys, which a server may take for equal, are none of it.
func TestCompareRecords(t *testing.T) {
	columns := []rows.Column{{Name: "n", Type: rows.Int64}, {Name: "id", Type: rows.Text}}
	record := func(line int64, n, id string) Record {
		return Record{Place: "a.csv", Line: line, Fields: [][]byte{[]byte(n), []byte(id)}}
	}
	all := []Record{record(1, "1", "a"), record(2, "2", "b"), record(3, "3", "c"), record(4, "4e0", "d"), record(5, "5", "a"), {Fields: [][]byte{nil, nil}}}
	ask := func(ctx context.Context, _ string, f func(context.Context) error) error {
		_ = f(ctx) // an answer that was lost counts nothing
		return f(ctx)
	}
	r := Result{OK: true}
	id := func(text string) any { return []byte(text) }
	right := kept{{int64(1), id("a")}, {int64(9), id("A")}, {int64(2), id("b")}, {int64(3), id("c")}, {int64(4), id("d")}}
	require.NoError(t, r.Compare(t.Context(), right, columns, 1, all, ask))
	require.True(t, r.OK)
	require.EqualValues(t, 4, r.SampledRows)
	require.Equal(t, []string{"1 fields of n"}, r.NotCompared)

	r = Result{OK: true}
	wrong := kept{{int64(1), id("a")}, {int64(1), id("a")}, {int64(7), id("b")}, {int64(4), id("d")}}
	require.NoError(t, r.Compare(t.Context(), wrong, columns, 1, all, ask))
	require.False(t, r.OK)
	var said []string
	for _, bad := range r.BadRows {
		said = append(said, bad.String())
	}
	require.Equal(t, []string{
		`the record of a.csv (key "a") is doubled`, `the record of a.csv (key "b") differs in column n: 7 instead of 2`,
		`the record of a.csv (key "c") is missing`,
	}, said)
}
