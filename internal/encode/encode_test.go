package encode_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
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
	day   int64  // date
	at    int64  // timestamp
	sum   int64  // decimal of 18 digits, 5 of them behind the point
}

// uncompressed are the formats that have bytes of their own; TestCompressed is for the others.
func uncompressed() []batch.Format {
	return slices.DeleteFunc(encode.Formats(), func(f batch.Format) bool {
		_, how := f.Compression()
		return how != ""
	})
}

// textOnly reports whether a format carries no Bytes.
func textOnly(f batch.Format) bool { return f == batch.CSV || f == batch.DorisCSV || f == batch.NDJSON }

// recordsSchema has every type; formats without Bytes go without the last column.
func recordsSchema(f batch.Format, maxBytes int) rows.Schema {
	s := rows.Schema{
		Dataset: "records",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int64, Derived: true},
			{Name: "n", Type: rows.Int64},
			{Name: "words", Type: rows.Text, MaxBytes: maxBytes, Plain: f == batch.DorisCSV},
			{Name: "day", Type: rows.Date},
			{Name: "at", Type: rows.Timestamp},
			{Name: "sum", Type: rows.Decimal, Digits: 18, Scale: 5},
			{Name: "raw", Type: rows.Bytes, MaxBytes: maxBytes},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
	if textOnly(f) {
		s.Columns = s.Columns[:6]
	}
	return s
}

func blockOf(s rows.Schema, records ...record) *rows.Block {
	b := rows.NewBlock(s)
	b.Reset(len(records))
	for i, r := range records {
		b.Columns[0].Ints[i], b.Columns[1].Ints[i], b.Columns[3].Ints[i], b.Columns[4].Ints[i] = r.id, r.n, r.day, r.at
		b.Columns[5].Ints[i] = r.sum
		put := func(c int, value []byte) {
			if c < len(b.Columns) {
				v := &b.Columns[c]
				v.Data = append(v.Data, value...)
				v.Ends = append(v.Ends, uint32(len(v.Data)))
			}
		}
		put(2, []byte(r.words))
		put(6, r.raw)
	}
	return b
}

func newEncoder(t testing.TB, f batch.Format, s rows.Schema, digits ...int) encode.Encoder {
	t.Helper()
	e, err := encode.New(f, s, encode.Options{Digits: digits})
	require.NoError(t, err)
	return e
}

// whole encodes blocks as one buffer, in memory that has the promised size and holds something else.
func whole(e encode.Encoder, blocks ...*rows.Block) ([]byte, *encode.Offsets) {
	memory := bytes.Repeat([]byte{0xA5}, int(maxBytes(e, rowsIn(blocks))))
	var at encode.Offsets
	buf := appendAll(memory[:0], e, &at, blocks)
	if &buf[0] != &memory[0] {
		panic("the bytes did not fit the promised size")
	}
	return buf, &at
}

// appendAll encodes blocks as one buffer.
func appendAll(buf []byte, e encode.Encoder, at *encode.Offsets, blocks []*rows.Block) []byte {
	if p, ok := e.(encode.PerBatch); ok {
		e = p.ForBatch(rowsIn(blocks))
	}
	buf = e.AppendHead(buf)
	for _, b := range blocks {
		buf = e.AppendRows(buf, b, at)
	}
	return e.AppendTail(buf)
}

func rowsIn(blocks []*rows.Block) (n int) {
	for _, b := range blocks {
		n += b.Rows
	}
	return n
}

// maxBytes returns the room for n rows.
func maxBytes(e encode.Encoder, n int) int64 {
	if p, ok := e.(encode.PerBatch); ok {
		return p.MaxBytes(int64(n))
	}
	return int64(len(e.AppendHead(nil)) + n*e.MaxRow() + len(e.AppendTail(nil)))
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
		{7, -1, "it's \"a\\b\", ok\t\r\n", []byte("\x00\\'\n\xFF"), 18262, 1577836800_000001, -12345678},
		{id: 12, n: math.MaxInt64},
	}
	for f, want := range map[batch.Format]string{
		batch.TSV: "0007\t-1\tit's \"a\\\\b\", ok\\t\r\\n\t2020-01-01\t2020-01-01 00:00:00.000001\t-123.45678\t\\0\\\\'\\n\xFF\n" +
			"0012\t9223372036854775807\t\t1970-01-01\t1970-01-01 00:00:00.000000\t0.00000\t\n",
		batch.CSV: "0007,-1,\"it's \"\"a\\b\"\", ok\t\r\n\",2020-01-01,2020-01-01 00:00:00.000001,-123.45678\n" +
			"0012,9223372036854775807,\"\",1970-01-01,1970-01-01 00:00:00.000000,0.00000\n",
		batch.DorisCSV: "0007\x01-1\x01it's \"a\\b\", ok\t\r\n\x012020-01-01\x012020-01-01 00:00:00.000001\x01-123.45678\x02" +
			"0012\x019223372036854775807\x01\x011970-01-01\x011970-01-01 00:00:00.000000\x010.00000\x02",
		batch.NDJSON: `{"id":   7,"n":-1,"words":"it's \"a\\b\", ok\t\r\n","day":"2020-01-01","at":"2020-01-01 00:00:00.000001","sum":"-123.45678"}` + "\n" +
			`{"id":  12,"n":9223372036854775807,"words":"","day":"1970-01-01","at":"1970-01-01 00:00:00.000000","sum":"0.00000"}` + "\n",
		batch.PGText: "0007\t-1\tit's \"a\\\\b\", ok\\t\\r\\n\t2020-01-01\t2020-01-01 00:00:00.000001\t-123.45678\t\\\\x005c270aff\n" +
			"0012\t9223372036854775807\t\t1970-01-01\t1970-01-01 00:00:00.000000\t0.00000\t\\\\x\n",
		batch.PGBinary: "PGCOPY\n\xFF\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
			"\x00\x07\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF" +
			"\x00\x00\x00\x11it's \"a\\b\", ok\t\r\n" +
			"\x00\x00\x00\x04\x00\x00\x1C\x89\x00\x00\x00\x08\x00\x02\x3E\x07\x86\xC2\x60\x01" +
			"\x00\x00\x00\x0E\x00\x03\x00\x00\x40\x00\x00\x05\x00\x7B\x11\xD7\x1F\x40" + "\x00\x00\x00\x05\x00\\'\n\xFF" +
			"\x00\x07\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x0C\x00\x00\x00\x08\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF" +
			"\x00\x00\x00\x00" +
			"\x00\x00\x00\x04\xFF\xFF\xD5\x33\x00\x00\x00\x08\xFF\xFC\xA2\xFE\xC4\xC8\x20\x00" +
			"\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x05" + "\x00\x00\x00\x00" + "\xFF\xFF",
		batch.Values: `(0007,-1,'it\'s \"a\\b\", ok` + "\t" + `\r\n','2020-01-01','2020-01-01 00:00:00.000001',-123.45678,_binary'\0\\\'\n` + "\xFF')," +
			"(0012,9223372036854775807,'','1970-01-01','1970-01-01 00:00:00.000000',0.00000,_binary'')",
		batch.PGValues: `(0007,-1,'it''s "a\b", ok` + "\t\r\n" + `','2020-01-01','2020-01-01 00:00:00.000001',-123.45678,'\x005c270aff'),` +
			`(0012,9223372036854775807,'','1970-01-01','1970-01-01 00:00:00.000000',0.00000,'\x')`,
	} {
		s := recordsSchema(f, 100)
		buf, _ := whole(newEncoder(t, f, s, widths(s, 4)...), blockOf(s, records...))
		assert.Equal(t, want, string(buf), "%s", f)
	}
}

// widths returns the digits for a schema whose first column is derived.
func widths(s rows.Schema, first int) []int {
	digits := make([]int, len(s.Columns))
	digits[0] = first
	return digits
}

func TestRowsDoNotDependOnHowTheyAreCut(t *testing.T) {
	for _, f := range uncompressed() {
		s := recordsSchema(f, 100)
		e := newEncoder(t, f, s)
		_, perBatch := e.(encode.PerBatch)
		var records []record
		for i, v := range nasty() {
			records = append(records, record{id: int64(i), n: -int64(i), words: v, raw: []byte(v)})
		}
		want, starts := whole(e, blockOf(s, records...))
		got, at := whole(e, blockOf(s, records[:1]...), blockOf(s), blockOf(s, records[1:20]...), blockOf(s, records[20:]...))
		assert.Equal(t, want, got, "%s", f)
		assert.Equal(t, starts, at, "%s", f)
		if perBatch {
			continue
		}
		require.Equal(t, len(records), at.Rows)
		require.Len(t, at.Fields, len(records))
	}
}

func TestMaxRow(t *testing.T) {
	worst := map[batch.Format]record{
		batch.TSV:      {words: "\\\t\n", raw: []byte("\\\t\x00")},
		batch.CSV:      {words: `"""`},
		batch.DorisCSV: {words: "abc"},
		batch.NDJSON:   {words: "\x01\x02\x1F"},
		batch.PGText:   {words: "\r\\\t", raw: []byte("abc")},
		batch.PGBinary: {words: "abc", raw: []byte("abc")},
		batch.Values:   {words: "\x00\x1A'", raw: []byte("\\\"\n")},
		batch.PGValues: {words: "'''", raw: []byte("abc")},
	}
	for _, f := range uncompressed() {
		s := recordsSchema(f, 3)
		e := newEncoder(t, f, s, widths(s, 5)...)
		if _, is := e.(encode.PerBatch); is {
			continue // see TestPerBatchSize
		}
		r := worst[f]
		r.id, r.n, r.sum = 99999, math.MinInt64, -999_999_999_999_999_999
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
	for _, f := range uncompressed() {
		s := recordsSchema(f, 10)
		b := blockOf(s, record{1, 2, "plain", []byte("\x03\xFF"), 5, 6, 7}, record{id: 3, n: 4})
		want, _ := whole(newEncoder(t, f, s), b)
		for c := range s.Columns {
			s.Columns[c].Plain = true
		}
		e := newEncoder(t, f, s)
		got, _ := whole(e, b)
		assert.Equal(t, want, got, "%s", f)
		assert.Equal(t, f, e.Format())
	}
}

func TestCarries(t *testing.T) {
	schema := func(c rows.Column) rows.Schema { return rows.Schema{Dataset: "d", Columns: []rows.Column{c}} }
	bytesIn := schema(rows.Column{Name: "raw", Type: rows.Bytes})
	for _, f := range uncompressed() {
		err := encode.Carries(f, bytesIn)
		if textOnly(f) {
			require.EqualError(t, err, "encode: format "+string(f)+" cannot carry the raw bytes of column raw: "+
				"declare it as text (for dataset documents use --payload-kind text), or use another format")
			_, err = encode.New(f, bytesIn, encode.Options{})
			require.Error(t, err)
			continue
		}
		require.NoError(t, err, "%s", f)
	}
	assert.EqualError(t, encode.Carries("xml", bytesIn),
		`encode: format "xml" does not exist; available: tsv, csv, doriscsv, ndjson, parquet, pgbinary, pgtext, values, pgvalues, columns, csv.gz, csv.zst, ndjson.gz, ndjson.zst, doriscsv.gz`)
	assert.ErrorContains(t, encode.Carries("parquet.gz", bytesIn), "does not exist")
	assert.EqualError(t, encode.Carries("orc", bytesIn), "encode: terapush does not make ORC files; use format parquet, csv or ndjson")
	assert.EqualError(t, encode.Carries(batch.DorisCSV, schema(rows.Column{Name: "words", Type: rows.Text, MaxBytes: 5})),
		"encode: format doriscsv cannot carry the text of column words: it quotes and escapes nothing, and a value may hold "+
			"0x01, 0x02 or a backslash; use format ndjson")
	for _, f := range uncompressed() {
		for _, typ := range []rows.Type{rows.Int64, rows.Date, rows.Timestamp, rows.Text} {
			c := rows.Column{Name: "c", Type: typ, Plain: true, Derived: true}
			if typ == rows.Text {
				c.MaxBytes = 1
			}
			require.NoError(t, encode.Carries(f, schema(c)), "%s %s", f, typ)
		}
		sql := schema(rows.Column{Name: "c", Type: rows.Text, Plain: true, SQL: "inet"})
		if f == batch.PGBinary || f == batch.Parquet || f == batch.ColumnArrays {
			assert.ErrorContains(t, encode.Carries(f, sql), "the server has to parse its inet")
		} else {
			assert.NoError(t, encode.Carries(f, sql))
		}
		assert.EqualError(t, encode.Carries(f, schema(rows.Column{Name: "c", Type: 99})),
			fmt.Sprintf("encode: format %s cannot carry column c of type rows.Type(99): use a format of text", f))
		for _, c := range []rows.Column{
			{Name: "c", Type: rows.Text, MaxBytes: 1, Derived: true}, {Name: "c", Type: rows.Text, Plain: true, Derived: true},
			{Name: "c", Type: rows.Bytes, MaxBytes: 1, Derived: true},
		} {
			assert.Error(t, encode.Carries(f, schema(c)), "%s", f)
		}
	}
	assert.EqualError(t, encode.Carries(batch.TSV, schema(rows.Column{Name: "c", Type: rows.Text, Derived: true})),
		"encode: derived column c is text that is not plain or has no length, so it cannot be stamped")
}

func TestDigitsAreChecked(t *testing.T) {
	s := recordsSchema(batch.CSV, 1)
	for _, c := range []struct {
		digits []int
		want   string
	}{
		{[]int{1}, "encode: digits for 1 columns, but records has 6"},
		{[]int{20, 0, 0, 0, 0, 0}, "encode: 20 digits for column id: valid are 1 to 19, and 0 for 19"},
		{[]int{-1, 0, 0, 0, 0, 0}, "encode: -1 digits for column id: valid are 1 to 19, and 0 for 19"},
	} {
		_, err := encode.New(batch.CSV, s, encode.Options{Digits: c.digits})
		assert.EqualError(t, err, c.want)
	}
	for n, digits := range map[int64]int{9: 1, 10: 2, 100: 3, math.MaxInt64: 19} {
		assert.Equal(t, digits, encode.Digits(blockOf(s, record{id: n}))[0])
	}
}
