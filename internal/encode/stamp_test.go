package encode_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// derivedSchema has derived columns of every type around drawn ones, so that strides and columns can be mixed up.
func derivedSchema(f batch.Format) rows.Schema {
	s := rows.Schema{
		Dataset: "derived",
		Columns: []rows.Column{
			{Name: "a", Type: rows.Int64, Derived: true},
			{Name: "words", Type: rows.Text, MaxBytes: 20, Plain: f == batch.DorisCSV},
			{Name: "b", Type: rows.Int64, Derived: true},
			{Name: "name", Type: rows.Text, MaxBytes: 4, Derived: true, Plain: true},
			{Name: "day", Type: rows.Date, Derived: true},
			{Name: "more", Type: rows.Text, MaxBytes: 20},
			{Name: "at", Type: rows.Timestamp, Derived: true},
			{Name: "code", Type: rows.Bytes, MaxBytes: 1, Derived: true, Plain: true},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
	if textOnly(f) {
		s.Columns = s.Columns[:7]
	}
	s.Columns[5].Plain = s.Columns[1].Plain
	return s
}

// number gives column c of row i for tests, from which every type's value follows.
type number func(c, i int) int64

// derive fills only the derived columns of rows from … from+n−1.
func derive(s rows.Schema, from, n int, value number) *rows.Block {
	b := rows.NewBlock(s)
	b.Reset(n)
	for c, column := range s.Columns {
		v := &b.Columns[c]
		for i := 0; i < n && column.Derived; i++ {
			x := value(c, from+i)
			switch column.Type {
			case rows.Int64:
				v.Ints[i] = x
			case rows.Date:
				v.Ints[i] = x%2_000_000 - 500_000
			case rows.Timestamp:
				v.Ints[i] = x%100_000_000_000_000_000 - 10_000_000_000_000_000
			default:
				v.Data = append(v.Data, fmt.Sprintf("%04d", x%9973)[4-column.MaxBytes:]...)
				v.Ends = append(v.Ends, uint32(len(v.Data)))
			}
		}
	}
	return b
}

// wholeRows fills the drawn columns too.
func wholeRows(s rows.Schema, n int, value number, words string) *rows.Block {
	b := derive(s, 0, n, value)
	for _, c := range []int{1, 5} {
		v := &b.Columns[c]
		for i := range n {
			v.Data = append(v.Data, words[:(i*c)%len(words)]...)
			v.Ends = append(v.Ends, uint32(len(v.Data)))
		}
	}
	return b
}

// stamped encodes rows of other values, and stamps the right ones over them, in pieces of so many rows.
func stamped(e encode.Encoder, s rows.Schema, n, piece int, value number, words string) ([]byte, *encode.Offsets) {
	buf, at := whole(e, wholeRows(s, n, func(int, int) int64 { return 5 }, words))
	for from := 0; from < n; from += piece {
		e.(encode.Stamper).Stamp(buf, at, from, derive(s, from, min(piece, n-from), value))
	}
	return buf, at
}

func TestStampedEqualsEncoded(t *testing.T) {
	const n, words = 251, "it's, \"q\"\t\\"
	for name, second := range map[string]func(int64) int64{
		"falling":   func(v int64) int64 { return math.MaxInt64 - v },
		"repeating": func(v int64) int64 { return v / 7 },
		"rising":    func(v int64) int64 { return v },
		"scattered": func(v int64) int64 { return int64(uint64(v) * 0x9E3779B97F4A7C15 >> 1) },
		"thousands": func(v int64) int64 { return v % 1e9 * 400_000 }, // seconds and months are passed
	} {
		for _, f := range uncompressed() {
			for _, first := range []int64{0, 1, 95, 999_999_950, math.MaxInt64 - n + 1} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, f, first), func(t *testing.T) {
					value := func(c, i int) int64 {
						if c == 0 {
							return first + int64(i)
						}
						return second(first+int64(i)) / int64(1+c%2)
					}
					s := derivedSchema(f)
					e := newEncoder(t, f, s)
					want, wantAt := whole(e, wholeRows(s, n, value, words))
					got, at := stamped(e, s, n, 37, value, words)
					require.Equal(t, string(want), string(got))
					require.Equal(t, wantAt, at)
				})
			}
		}
	}
}

// Pages of the columns end at other rows, and the last ones are short.
func TestStampOfManyPages(t *testing.T) {
	const n = 2*131_072 + 77
	s := derivedSchema(batch.Parquet)
	e := newEncoder(t, batch.Parquet, s)
	value := func(c, i int) int64 { return int64(c*1_000_003 + i) }
	want, wantAt := whole(e, wholeRows(s, n, value, "some words"))
	got, at := stamped(e, s, n, 4096, value, "some words")
	require.Equal(t, wantAt, at)
	require.True(t, bytes.Equal(want, got))
}

func TestStampOfEveryWidth(t *testing.T) {
	for _, f := range []batch.Format{batch.Values, batch.NDJSON} {
		for digits := 1; digits <= encode.MaxDigits; digits++ {
			last := int64(math.MaxInt64)
			if digits < encode.MaxDigits {
				last = int64(math.Pow10(digits)) - 1
			}
			s := derivedSchema(f)
			planned := make([]int, len(s.Columns))
			planned[0], planned[2] = digits, digits
			e := newEncoder(t, f, s, planned...)
			value := func(c, i int) int64 {
				if c == 0 {
					return last - 9 + int64(i)
				}
				return min(last, 14) - int64(i) // also from two digits to one
			}
			want, _ := whole(e, wholeRows(s, 10, value, "x"))
			got, _ := stamped(e, s, 10, 10, value, "x")
			assert.Equal(t, string(want), string(got), "%d digits", digits)
		}
	}
}

// Nothing is written over the next field, nor another value than was meant.
func TestValuesThatDoNotFitPanic(t *testing.T) {
	for _, f := range uncompressed() {
		s := derivedSchema(f)
		e := newEncoder(t, f, s, append([]int{2, 0, 2}, make([]int, len(s.Columns)-3)...)...)
		good := func() *rows.Block { return wholeRows(s, 2, func(_, i int) int64 { return int64(i) }, "x") }
		damages := map[string]func(*rows.Block){
			"shorter text": func(b *rows.Block) { b.Columns[3].Ends[1]-- },
			"longer text":  func(b *rows.Block) { b.Columns[3].Data = append(b.Columns[3].Data, 'x'); b.Columns[3].Ends[1]++ },
		}
		for column, values := range map[int][]int64{ // dates and times before year 1 and after year 9999
			4: {-719_163, 2_932_897},
			6: {math.MinInt64, -719_162*86_400_000_000 - 1, 2_932_897 * 86_400_000_000, math.MaxInt64},
		} {
			for _, v := range values {
				damages[fmt.Sprint(column, v)] = func(b *rows.Block) { b.Columns[column].Ints[1] = v }
			}
		}
		if f != batch.PGBinary && f != batch.ColumnArrays && f != batch.Parquet { // they have room for every number
			for _, v := range []int64{-5, 100, math.MinInt64} {
				damages[fmt.Sprint(v)] = func(b *rows.Block) { b.Columns[0].Ints[1] = v }
			}
		}
		for name, damage := range damages {
			bad := good()
			damage(bad)
			assert.Panics(t, func() { whole(e, bad) }, "%s %s", f, name)
			buf, at := whole(e, good())
			assert.Panics(t, func() { e.(encode.Stamper).Stamp(buf, at, 0, bad) }, "%s %s", f, name)
		}
	}
}

// What a batch takes besides its buffer depends on columns and pages, not on rows.
func TestNothingIsAllocatedPerRow(t *testing.T) {
	most := map[batch.Format]float64{batch.ColumnArrays: 2, batch.Parquet: 250}
	for _, f := range uncompressed() {
		s := derivedSchema(f)
		e, b := newEncoder(t, f, s), wholeRows(s, 100, func(c, i int) int64 { return int64(c * i) }, nasty()[12])
		buf, at := whole(e, b)
		assert.Zero(t, testing.AllocsPerRun(10, func() { e.(encode.Stamper).Stamp(buf, at, 0, b) }), "stamp %s", f)
		s = recordsSchema(f, 100)
		var records []record
		for i := range 100 {
			records = append(records, record{int64(i), -5, nasty()[i%len(nasty())], []byte("\x00raw"), int64(i), int64(-i), int64(i)})
		}
		e = newEncoder(t, f, s)
		blocks := slices.Repeat([]*rows.Block{blockOf(s, records...)}, 300)
		buf, at = whole(e, blocks...)
		assert.LessOrEqual(t, testing.AllocsPerRun(10, func() {
			at.Reset()
			appendAll(buf[:0], e, at, blocks)
		}), most[f], "encode %s", f)

		s = typedSchema(f)
		e, b = newEncoder(t, f, s), backendtest.Block(s, typedRows(f, s))
		buf, at = whole(e, b)
		assert.LessOrEqual(t, testing.AllocsPerRun(10, func() {
			at.Reset()
			appendAll(buf[:0], e, at, []*rows.Block{b})
		}), 2*most[f], "encode every type as %s", f)
	}
}
