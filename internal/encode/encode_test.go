package encode_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// record is one row of the schema that recordsSchema makes.
type record struct {
	id    int64 // derived
	n     int64
	words string // text
	raw   []byte // bytes
}

// recordsSchema has every type; formats without Bytes get three columns.
func recordsSchema(f batch.Format, maxBytes int) rows.Schema {
	s := rows.Schema{
		Dataset: "records",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int64, Derived: true},
			{Name: "n", Type: rows.Int64},
			{Name: "words", Type: rows.Text, MaxBytes: maxBytes},
			{Name: "raw", Type: rows.Bytes, MaxBytes: maxBytes},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
	if f == batch.CSV {
		s.Columns = s.Columns[:3]
	}
	return s
}

func blockOf(s rows.Schema, records ...record) *rows.Block {
	b := rows.NewBlock(s)
	b.Reset(len(records))
	for i, r := range records {
		b.Columns[0].Ints[i], b.Columns[1].Ints[i] = r.id, r.n
		put := func(c int, value []byte) {
			if c < len(b.Columns) {
				v := &b.Columns[c]
				v.Data = append(v.Data, value...)
				v.Ends = append(v.Ends, uint32(len(v.Data)))
			}
		}
		put(2, []byte(r.words))
		put(3, r.raw)
	}
	return b
}

func newEncoder(t testing.TB, f batch.Format, s rows.Schema, digits ...int) encode.Encoder {
	t.Helper()
	e, err := encode.New(f, s, encode.Options{Digits: digits})
	require.NoError(t, err)
	return e
}

// whole encodes blocks as one buffer.
func whole(e encode.Encoder, blocks ...*rows.Block) ([]byte, *encode.Offsets) {
	var at encode.Offsets
	buf := e.AppendHead(nil)
	for _, b := range blocks {
		buf = e.AppendRows(buf, b, &at)
	}
	return e.AppendTail(buf), &at
}

// nasty are values that one format or another has to treat with care.
func nasty() []string {
	return []string{
		"", "a", "0", " ", "  a  ", "\\", "\\.", "\\N", "NULL", "\\\\", "a\\", "\\n", "\\'", "'", "''", "'; --",
		`"`, `""`, `"a"`,
		`a"b`, ",", "a,b", "\t", "\n", "\r", "\r\n", "a\nb", "\\\n", "\\\t", "\x00", "\\\x00", "\x1A", "\x01\x02", "\x7F", "\b\f\v",
		"%_", "äöü€😀", "\u2028", "--", "/*", "$$", "):", "),(", "\\x41", "_binary'", "\xEF\xBB\xBFbom", strings.Repeat("\\", 33),
	}
}

func TestBytesOfEveryFormat(t *testing.T) {
	records := []record{
		{id: 7, n: -1, words: "it's \"a\\b\", ok\t\r\n", raw: []byte("\x00\\'\n\xFF")},
		{id: 12, n: math.MaxInt64},
	}
	for f, want := range map[batch.Format]string{
		batch.TSV:    "0007\t-1\tit's \"a\\\\b\", ok\\t\r\\n\t\\0\\\\'\\n\xFF\n" + "0012\t9223372036854775807\t\t\n",
		batch.CSV:    "0007,-1,\"it's \"\"a\\b\"\", ok\t\r\n\"\n" + "0012,9223372036854775807,\"\"\n",
		batch.PGText: "0007\t-1\tit's \"a\\\\b\", ok\\t\\r\\n\t\\\\x005c270aff\n" + "0012\t9223372036854775807\t\t\\\\x\n",
		batch.PGBinary: "PGCOPY\n\xFF\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
			"\x00\x04\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF" +
			"\x00\x00\x00\x11it's \"a\\b\", ok\t\r\n\x00\x00\x00\x05\x00\\'\n\xFF" +
			"\x00\x04\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x0C\x00\x00\x00\x08\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF" +
			"\x00\x00\x00\x00\x00\x00\x00\x00" + "\xFF\xFF",
		batch.Values:   `(0007,-1,'it\'s \"a\\b\", ok` + "\t" + `\r\n',_binary'\0\\\'\n` + "\xFF'),(0012,9223372036854775807,'',_binary'')",
		batch.PGValues: `(0007,-1,'it''s "a\b", ok` + "\t\r\n" + `','\x005c270aff'),(0012,9223372036854775807,'','\x')`,
	} {
		s := recordsSchema(f, 100)
		buf, _ := whole(newEncoder(t, f, s, widths(s, 4)...), blockOf(s, records...))
		assert.Equal(t, want, string(buf), "%s", f)
	}
}

// widths are the digits for a schema whose first column is derived.
func widths(s rows.Schema, first int) []int {
	digits := make([]int, len(s.Columns))
	digits[0] = first
	return digits
}

func TestRowsDoNotDependOnHowTheyAreCut(t *testing.T) {
	for _, f := range encode.Formats() {
		s := recordsSchema(f, 100)
		e := newEncoder(t, f, s)
		var records []record
		for i, v := range nasty() {
			records = append(records, record{id: int64(i), n: -int64(i), words: v, raw: []byte(v)})
		}
		want, starts := whole(e, blockOf(s, records...))
		got, at := whole(e, blockOf(s, records[:1]...), blockOf(s), blockOf(s, records[1:20]...), blockOf(s, records[20:]...))
		assert.Equal(t, want, got, "%s", f)
		assert.Equal(t, starts, at, "%s", f)
		require.Len(t, at.Starts, len(records))
		require.Len(t, at.Fields, len(records))

		// What batch.Body sends where the database has the first rows already.
		head := len(e.AppendHead(nil))
		for skip := range records {
			rest, _ := whole(e, blockOf(s, records[skip:]...))
			body := append(want[:head:head], want[at.Starts[skip]:]...)
			require.Equal(t, string(rest), string(body), "%s without the first %d rows", f, skip)
		}
	}
}

func TestMaxRow(t *testing.T) {
	worst := map[batch.Format]record{
		batch.TSV:      {words: "\\\t\n", raw: []byte("\\\t\x00")},
		batch.CSV:      {words: `"""`},
		batch.PGText:   {words: "\r\\\t", raw: []byte("abc")},
		batch.PGBinary: {words: "abc", raw: []byte("abc")},
		batch.Values:   {words: "\x00\x1A'", raw: []byte("\\\"\n")},
		batch.PGValues: {words: "'''", raw: []byte("abc")},
	}
	for _, f := range encode.Formats() {
		s := recordsSchema(f, 3)
		e := newEncoder(t, f, s, widths(s, 5)...)
		r := worst[f]
		r.id, r.n = 99999, math.MinInt64
		one, _ := whole(e, blockOf(s, r))
		two, _ := whole(e, blockOf(s, r, r))
		most := len(two) - len(one) // the second row with what separates it from the first
		assert.Equal(t, most, e.MaxRow(), "%s", f)

		for c := range s.Columns {
			s.Columns[c].Plain = true
		}
		plain := newEncoder(t, f, s, widths(s, 5)...)
		r.words, r.raw = "abc", []byte("abc")
		one, _ = whole(plain, blockOf(s, r))
		two, _ = whole(plain, blockOf(s, r, r))
		assert.Equal(t, len(two)-len(one), plain.MaxRow(), "%s", f)
	}
}

func TestPlainColumnsHaveTheSameBytes(t *testing.T) {
	for _, f := range encode.Formats() {
		s := recordsSchema(f, 10)
		b := blockOf(s, record{1, 2, "plain", []byte("\x03\xFF")}, record{3, 4, "", nil})
		want, _ := whole(newEncoder(t, f, s), b)
		for c := range s.Columns {
			s.Columns[c].Plain = true
		}
		got, _ := whole(newEncoder(t, f, s), b)
		assert.Equal(t, want, got, "%s", f)
	}
}

func TestCarries(t *testing.T) {
	schema := func(c rows.Column) rows.Schema { return rows.Schema{Dataset: "d", Columns: []rows.Column{c}} }
	bytesIn := schema(rows.Column{Name: "raw", Type: rows.Bytes})
	for _, f := range encode.Formats() {
		err := encode.Carries(f, bytesIn)
		if f == batch.CSV {
			require.EqualError(t, err, "encode: format csv cannot carry the raw bytes of column raw: "+
				"use --payload-kind text, or another format")
			_, err = encode.New(f, bytesIn, encode.Options{})
			require.Error(t, err)
			continue
		}
		require.NoError(t, err, "%s", f)
	}
	assert.EqualError(t, encode.Carries("xml", bytesIn),
		`encode: format "xml" does not exist; there is: tsv, csv, pgbinary, pgtext, values, pgvalues`)
	assert.EqualError(t, encode.Carries(batch.TSV, schema(rows.Column{Name: "c", Type: 9})),
		"encode: format tsv cannot carry column c of type rows.Type(9)")
	assert.EqualError(t, encode.Carries(batch.TSV, schema(rows.Column{Name: "c", Type: rows.Text, Derived: true})),
		"encode: derived column c is text; only int64 can be stamped")
}

func TestDigitsAreChecked(t *testing.T) {
	s := recordsSchema(batch.CSV, 1)
	for _, c := range []struct {
		digits []int
		want   string
	}{
		{[]int{1}, "encode: digits for 1 columns, but records has 3"},
		{[]int{20, 0, 0}, "encode: 20 digits for column id: valid are 1 to 19, and 0 for 19"},
		{[]int{-1, 0, 0}, "encode: -1 digits for column id: valid are 1 to 19, and 0 for 19"},
	} {
		_, err := encode.New(batch.CSV, s, encode.Options{Digits: c.digits})
		assert.EqualError(t, err, c.want)
	}
	assert.Equal(t, []int{3, 1, 0}, encode.Digits(blockOf(s, record{id: 100})))
	assert.Equal(t, []int{19, 1, 0}, encode.Digits(blockOf(s, record{id: math.MaxInt64})))
}

func TestFormatsNameThemselves(t *testing.T) {
	for _, f := range encode.Formats() {
		e := newEncoder(t, f, recordsSchema(f, 1))
		assert.Equal(t, f, e.Format())
		assert.Implements(t, (*encode.Stamper)(nil), e)
	}
}
