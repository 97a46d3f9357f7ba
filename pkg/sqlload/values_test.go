package sqlload

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func TestValueOf(t *testing.T) {
	for _, c := range []struct {
		kind rows.Type
		text string
		want any
	}{
		{rows.Date, "1970-01-01", int64(0)},
		{rows.Date, "1970-01-03", int64(2)},
		{rows.Date, "1969-12-31", int64(-1)},
		{rows.Date, "1600-02-29", int64(-135081)},
		{rows.Date, "1600-02-29 00:00:00", int64(-135081)},
		{rows.Timestamp, "1970-01-01 00:00:00.000001", int64(1)},
		{rows.Timestamp, "1970-01-01 00:00:01", int64(1_000_000)},
		{rows.Time, "00:00:00.000001", int64(1)},
		{rows.Time, "23:59:59", int64(86_399_000_000)},
		{rows.Uint64, "18446744073709551615", int64(-1)},
		{rows.Text, "x", []byte("x")},
		{rows.Text, "", []byte{}},
	} {
		got, err := Dialect{}.readValue(rows.Column{Type: c.kind}, []byte(c.text))
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.text)
	}
	for _, kind := range []rows.Type{rows.Date, rows.Text} {
		null, err := Dialect{}.readValue(rows.Column{Type: kind}, nil)
		require.NoError(t, err)
		require.Nil(t, null, "a NULL is no empty text")
	}
	digits, err := Dialect{Hex: true}.readValue(rows.Column{Type: rows.Bytes}, []byte("00ff"))
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0xff}, digits)
	empty, err := Dialect{EmptyIsNull: true}.readValue(rows.Column{Type: rows.Text}, nil)
	require.NoError(t, err)
	require.Equal(t, []byte{}, empty)
	for _, bad := range []string{"0000-00-00", "soon", "1970-01-01 00:00:01", "1970-01-01 soon"} {
		_, err := Dialect{}.readValue(rows.Column{Type: rows.Date}, []byte(bad))
		require.Error(t, err)
	}
}

func TestReadDecimal(t *testing.T) {
	price := rows.Column{Type: rows.Decimal, Digits: 6, Scale: 2}
	for text, want := range map[string]int64{
		"0.00": 0, "0": 0, ".5": 50, "-.05": -5, "12.34": 1234, "12.3": 1230, "-12": -1200, "9999.99": 999999, "0009999.99": 999999,
	} {
		got, err := readFixed(price, text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, bad := range []string{"", ".", "1.", "-", "1.234", "1.230", "10000.00", "1e3", "+1", "--1", "1.2.3", "NaN", "1,5", " 1"} {
		_, err := readFixed(price, bad)
		require.Error(t, err, bad)
	}
	widest := rows.Column{Type: rows.Decimal, Digits: 18, Scale: 18}
	got, err := readFixed(widest, "-0.999999999999999999")
	require.NoError(t, err)
	require.EqualValues(t, -999_999_999_999_999_999, got)
}

func TestReadBucket(t *testing.T) {
	row := func(values ...string) (row [][]byte) {
		for _, v := range values {
			row = append(row, []byte(v))
		}
		return row
	}
	b, err := readBucket(append(row("2", "3", "0", "9", "12", "99999999999999999999", "7"), nil), false)
	require.NoError(t, err)
	squares, _ := new(big.Int).SetString("99999999999999999999", 10)
	require.Equal(t, loader.Bucket{Number: 2, Rows: 3, Max: 9, Sum: big.NewInt(12), Squares: squares, Measures: []*big.Int{big.NewInt(7), new(big.Int)}}, b)
	for says, bad := range map[string][][]byte{
		"has 2 values":   row("1", "2"),
		"value 2":        row("2", "three", "0", "2", "3", "5"),
		"not an integer": row("2", "3", "0", "2", "3", "5.5"),
	} {
		_, err := readBucket(bad, false)
		require.ErrorContains(t, err, says)
	}
}

// Which names are the same depends on how the server keeps those that nobody quotes. More columns may be there where the
// server fills them.
func TestDifferences(t *testing.T) {
	schema := rows.Schema{Columns: []rows.Column{{Name: "id", Type: rows.Int64}, {Name: "Body", Type: rows.Text}}}
	types := Types{{Ours: rows.Int64, Name: "int", SQL: "int"}, {Ours: rows.Text, Name: "text", SQL: "text"}}
	for _, c := range []struct {
		dialect Dialect
		id      Column
		want    string
	}{
		{Dialect{}, ColumnOf("id", "int"), ""},
		{Dialect{}, ColumnOf("id", "text"), "column id is text, want int"},
		{Dialect{}, ColumnOf("ID", "int"), "column id (int) is missing; column ID (int) is unknown to the dataset and has no default"},
		{Dialect{}, Column{Column: loader.Column{Name: "more", Default: "1"}}, "column id (int) is missing"},
		{Dialect{Fold: true}, ColumnOf("iD", "int"), ""},
		{Dialect{Upper: true}, ColumnOf("ID", "int"), ""},
		{Dialect{Upper: true}, ColumnOf("id", "int"), "column id (int) is missing; column id (int) is unknown to the dataset and has no default"},
	} {
		c.dialect.Types = types
		body := "Body"
		if c.dialect.Upper {
			body = "BODY"
		}
		s := State{Statements: Statements{Dialect: c.dialect, Schema: schema}}
		require.Equal(t, c.want, strings.Join(s.differences([]Column{c.id, ColumnOf(body, "text")}), "; "))
	}
}

// NULLs and labels that a column does not take are named.
func TestDifferencesOfNullsAndLabels(t *testing.T) {
	s := State{Statements: Statements{Dialect: Dialect{Types: Types{{Ours: rows.Enum, Name: "enum", SQL: "ENUM(%s)"}}}}}
	s.Schema.Columns = []rows.Column{{Name: "mood", Type: rows.Enum, Labels: []string{"ok", "it's"}, Nullable: true}}
	have := ColumnOf("mood", "mood_type")
	have.Is = ServerType{Name: "enum", Labels: []string{"ok", "sad"}}
	require.Equal(t, []string{"column mood is NOT NULL, and some of the dataset's values are NULL"}, s.differences([]Column{have}))
	have.Nullable = true
	require.Equal(t, []string{"column mood is mood_type, which has no label 'it''s'"}, s.differences([]Column{have}))
	have.Is.Labels = append(have.Is.Labels, "it's")
	require.Empty(t, s.differences([]Column{have}))
}

// A name without quotation marks is the table's in any case where the server folds it.
func TestMayRemove(t *testing.T) {
	for _, name := range []string{"t", "T", "s.T", "S.T", "u.t"} {
		for _, upper := range []bool{false, true} {
			s := State{Statements: Statements{Dialect: Dialect{Upper: upper}}, Want: loader.Preparation{MayDrop: name}}
			err := (&Table{Name: "t"}).mayRemove(&s, &Relation{Schema: "S", Name: "T"})
			require.Equal(t, name == "t" || name == "S.T" || upper && name != "u.t", err == nil, "%s, %v", name, upper)
		}
	}
}

// Servers write these in more ways than one.
func TestReadValues(t *testing.T) {
	id := "00112233-4455-6677-8899-aabbccddeeff"
	raw := []byte("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff")
	for _, c := range []struct {
		kind rows.Type
		text string
		want any
	}{
		{rows.UUID, id, raw}, {rows.UUID, strings.ToUpper(id), raw}, {rows.UUID, strings.ReplaceAll(id, "-", ""), raw},
		{rows.UUID, id + "   ", raw}, {rows.UUID, string(raw), raw},
		{rows.Bool, "t", int64(1)}, {rows.Bool, "FALSE", int64(0)}, {rows.Bool, "1", int64(1)},
		{rows.Float64, "1e300", int64(math.Float64bits(1e300))}, {rows.Float64, "x3fe0000000000000", int64(math.Float64bits(0.5))},
		{rows.Float32, "0.10000000149011612", int64(math.Float32bits(0.1))}, {rows.Float32, "x3fb99999a0000000", int64(math.Float32bits(0.1))},
		{rows.TimestampTZ, "1970-01-01 00:00:00.000001", int64(1)},
		{rows.TimestampTZ, "1970-01-01 00:00:00.000001+00:00", int64(1)}, {rows.Int16, "-32768", int64(-32768)},
		{rows.JSON, "{}", []byte("{}")},
		{rows.Float32s, "[1, -0.5]", []byte("\x00\x00\x80\x3f\x00\x00\x00\xbf")}, {rows.Float32s, "0000803F000000BF", []byte("\x00\x00\x80\x3f\x00\x00\x00\xbf")},
	} {
		got, err := Dialect{}.readValue(rows.Column{Type: c.kind}, []byte(c.text))
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, c.text)
	}
	for kind, bad := range map[rows.Type]string{rows.UUID: id[:35], rows.Bool: "2", rows.Float32: "x", rows.Float64: "one", rows.Float32s: "[1"} {
		_, err := Dialect{}.readValue(rows.Column{Type: kind}, []byte(bad))
		require.Error(t, err, bad)
	}
	for text, want := range map[string]string{
		`{}`: "", `{NULL,"NULL"}`: "\xff\xff\xff\xff\x04\x00\x00\x00NULL", `{"a\"\\,",b c}`: "\x04\x00\x00\x00a\"\\,\x03\x00\x00\x00b c",
		`[]`: "", `[null, "null", "a\"\u00fc"]`: "\xff\xff\xff\xff\x04\x00\x00\x00null\x04\x00\x00\x00a\"ü",
	} {
		got, err := Dialect{}.readValue(rows.Column{Type: rows.Arrays, Of: &rows.Column{Type: rows.Text}}, []byte(text))
		require.NoError(t, err, text)
		require.Equal(t, []byte(want), got, text)
	}
	for _, bad := range []string{"", "{", `{"a}`, `{x}`, "[1", "[x]", "[1.5]", "[[1]]"} {
		_, err := Dialect{}.readValue(rows.Column{Type: rows.Arrays, Of: &rows.Column{Type: rows.Int32}}, []byte(bad))
		require.Error(t, err, bad)
	}
	null, err := Dialect{EmptyIsNull: true}.readValue(rows.Column{Type: rows.Text, Nullable: true}, nil)
	require.NoError(t, err)
	require.Nil(t, null, "an empty text is not sent to a column with NULLs there")
}
