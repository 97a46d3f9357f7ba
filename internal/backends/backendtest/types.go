package backendtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// EveryType is a schema with NULLs in columns of every type but some, and derived columns of those that can be. The last
// column is no text: see the MySQL family's losesEmpty.
func EveryType(lacks ...rows.Type) rows.Schema {
	s := rows.Schema{
		Dataset: "every_type",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int32, Derived: true},
			{Name: "ref", Type: rows.UUID, Derived: true},
			{Name: "moment", Type: rows.TimestampTZ, Derived: true},
			{Name: "big", Type: rows.Int64},
			{Name: "whole", Type: rows.Int32},
			{Name: "small", Type: rows.Int16},
			{Name: "yes", Type: rows.Bool},
			{Name: "f4", Type: rows.Float32},
			{Name: "f8", Type: rows.Float64},
			{Name: "u", Type: rows.UUID},
			{Name: "tz", Type: rows.TimestampTZ},
			{Name: "ts", Type: rows.Timestamp},
			{Name: "day", Type: rows.Date},
			{Name: "words", Type: rows.Text, MaxBytes: 20},
			{Name: "raw", Type: rows.Bytes, MaxBytes: 20},
			{Name: "code", Type: rows.Char, MaxBytes: 6},
			{Name: "mood", Type: rows.Enum, MaxBytes: 6, Labels: []string{"sad", "o'k", "so, so"}},
			{Name: "doc", Type: rows.JSON, MaxBytes: 60},
			{Name: "near", Type: rows.Float32s, MaxBytes: 3 * rows.FloatBytes},
			{Name: "clock", Type: rows.Time},
			{Name: "u2", Type: rows.Uint16},
			{Name: "u4", Type: rows.Uint32},
			{Name: "u8", Type: rows.Uint64},
			{Name: "tall", Type: rows.Wide, Digits: 38, Scale: 10},
			{Name: "whole38", Type: rows.Wide, Digits: 38},
			{Name: "amount", Type: rows.Decimal, Digits: 9, Scale: 2},
		},
		Number: []rows.Term{{Times: 1}},
	}
	for i := range s.Columns {
		s.Columns[i].Nullable = !s.Columns[i].Derived
	}
	last := len(s.Columns) - 1
	s.Columns = slices.Insert(s.Columns, last, arraysOf(s.Columns[3:])...)
	s.Columns = slices.DeleteFunc(s.Columns, func(c rows.Column) bool {
		return slices.Contains(lacks, c.Type) || c.Type == rows.Arrays && slices.Contains(lacks, c.Of.Type)
	})
	return s
}

// allOf begins the names of columns of arrays, whose elements are those of another column.
const allOf = "all_"

// arraysOf returns a column of arrays for each that can be an element. They have an element for each of EveryValue.
func arraysOf(columns []rows.Column) (arrays []rows.Column) {
	for _, c := range columns {
		if !c.Type.IsElement() {
			continue
		}
		longest := len(EveryValue) * int(4+c.MaxSize())
		array := rows.Column{Name: allOf + c.Name, Type: rows.Arrays, MaxBytes: longest, Nullable: true}
		c.Name = ""
		array.Of = &c
		arrays = append(arrays, array)
	}
	return arrays
}

// Lacks adds to some types those that a format cannot carry, in columns of EveryType.
func Lacks(f batch.Format, types []rows.Type) []rows.Type {
	for _, c := range EveryType().Columns {
		if encode.Carries(f, rows.Schema{Columns: []rows.Column{c}}) != nil {
			types = append(types, c.Type)
		}
	}
	return types
}

// EveryValue has values of EveryType's drawn columns by their names, as rows.Vector.At returns them; nil where they are
// missing. The words of the first row have to be escaped in every format of text.
var EveryValue = []map[string]any{
	{
		"big": int64(math.MinInt64), "whole": int64(math.MinInt32), "small": int64(math.MinInt16), "yes": int64(1),
		"f4": int64(math.Float32bits(-math.MaxFloat32)), "f8": int64(math.Float64bits(0.0625)), "u": []byte("0123456789abcdef"),
		"tz": int64(1_577_836_800_000_001), "ts": int64(-1), "day": int64(18262), "amount": int64(-999_999_999),
		"words": []byte(`\N`), "raw": []byte("\x00\\\n\xff"), "code": []byte("é"), "mood": []byte("so, so"),
		"near":  floats(0.0625, -math.MaxFloat32, 1.0/(1<<14)),
		"clock": int64(86_399_999_999), "u2": int64(math.MaxUint16), "u4": int64(math.MaxUint32), "u8": int64(-1),
		"tall": wide("-9999999999999999999999999999999999999"), "whole38": wide("99999999999999999999999999999999999999"),
		"doc": []byte(`{"a": "it's \"q\" \\ ü", "n": [1.50, null, true]}`),
	},
	{},
	{
		"big": int64(math.MaxInt64), "whole": int64(math.MaxInt32), "small": int64(math.MaxInt16), "yes": int64(0),
		"f4": int64(math.Float32bits(0.1)), "f8": int64(math.Float64bits(1e300)), "u": bytes.Repeat([]byte{0xFF}, 16),
		"tz": int64(1_774_747_800_000_000), "ts": int64(1_774_747_800_000_000), "day": int64(-1), "amount": int64(5),
		"clock": int64(0), "u2": int64(0), "u4": int64(0), "u8": int64(math.MaxInt64), "tall": wide("-1"), "whole38": wide("0"),
		"words": []byte{}, "raw": []byte{}, "code": []byte("a b"), "mood": []byte("o'k"), "doc": []byte(`[]`),
		"near": floats(0, 0.1, -12345.67),
	},
	{"clock": int64(43_200_000_001), "u8": int64(1 << 62), "tall": wide("170141183460469231731687303715884105727"[:37]), "whole38": wide("-10000000000000000000"),
		"big": int64(7), "yes": int64(1), "words": []byte("NULL"), "doc": []byte(`"x"`), "mood": []byte("sad")},
}

// wide is a number times 10^Scale in the form of rows.AppendWide.
func wide(digits string) []byte {
	n, _ := new(big.Int).SetString(digits, 10)
	return rows.FromBig(n)
}

// floats is a value of rows.Float32s.
func floats(all ...float32) (value []byte) {
	for _, f := range all {
		value = binary.LittleEndian.AppendUint32(value, math.Float32bits(f))
	}
	return value
}

// EveryRow is a row of EveryType: value is one of EveryValue, or like those, and number that of the row.
func EveryRow(s rows.Schema, value map[string]any, number int) []any {
	row := make([]any, len(s.Columns))
	for c, column := range s.Columns {
		switch column.Name {
		case "id":
			row[c] = int64(number)
		case "ref":
			row[c] = fmt.Appendf(nil, "0123456789%06d", number)
		case "moment":
			row[c] = int64(1_774_747_800_000_000 + number)
		default:
			row[c] = value[column.Name]
			if name, is := strings.CutPrefix(column.Name, allOf); is {
				row[c] = everyArray(*column.Of, name, number)
			}
		}
	}
	return row
}

// everyArray is the value of a row in a column of arrays: all values of the column of a name, none of them, or NULL.
func everyArray(of rows.Column, name string, number int) any {
	switch number % 3 {
	case 1:
		return []byte{}
	case 2:
		return nil
	}
	var values [][]any
	for _, value := range EveryValue {
		values = append(values, []any{value[name]})
	}
	all := Block(rows.Schema{Columns: []rows.Column{of}}, values)
	array := []byte{}
	for i := range values {
		array = rows.AppendElement(array, &all.Columns[0], i)
	}
	return array
}

// Block fills a block with rows. A column has a map of NULLs only where it has a NULL.
func Block(s rows.Schema, all [][]any) *rows.Block {
	b := rows.NewBlock(s)
	b.Reset(len(all))
	for c := range s.Columns {
		v := &b.Columns[c]
		for i, row := range all {
			value := row[c]
			if value == nil {
				if len(v.Nulls) == 0 {
					v.SetNulls(len(all))
				}
				v.Nulls[i/64] |= 1 << (i % 64)
			}
			text, _ := value.([]byte)
			switch {
			case v.Type.Variable():
				v.Data = append(v.Data, text...)
				v.Ends = append(v.Ends, uint32(len(v.Data)))
			case v.Type.InBytes():
				clear(v.UUID(i))
				copy(v.UUID(i), text)
			default:
				v.Ints[i], _ = value.(int64)
			}
		}
	}
	return b
}

var typesBatches atomic.Int64

// Types checks that values of every type, and NULLs, come back as they were sent and are measured so, in a table that is made
// and, by changes, in others that take them. Where a change has a text behind " -- ", the table is refused with it. lacks are
// types that the format cannot carry.
func (s Tables) Types(t *testing.T, lacks []rows.Type, changes ...string) {
	const n = 130
	schema := EveryType(lacks...)
	schema.Columns = slices.DeleteFunc(schema.Columns, func(c rows.Column) bool { // arrays of bytes, but for few formats
		one := rows.Schema{Columns: []rows.Column{c}}
		return c.Type == rows.Arrays && encode.Carries(s.Preparation.Contract.Format, one) != nil
	})
	all := make([][]any, n)
	for i := range all {
		all[i] = EveryRow(schema, EveryValue[i%len(EveryValue)], i)
		for k, v := range all[i] {
			if text, is := v.([]byte); is && s.EmptyIsNull && len(text) == 0 {
				all[i][k] = []byte(" ")
			}
		}
	}
	s.Preparation.Schema = schema
	for _, change := range append([]string{""}, changes...) {
		s.Exec("DROP TABLE IF EXISTS " + s.Name)
		_, l, err := s.Prepare(t, nil)
		require.NoError(t, err)
		change, refusal, refused := strings.Cut(change, " -- ")
		if change != "" {
			s.Exec("ALTER TABLE " + s.Name + " " + change)
			_, l, err = s.Prepare(t, nil)
		}
		if refused {
			assert.ErrorContains(t, err, refusal, change)
			continue
		}
		require.NoError(t, err, "%s: the table takes the rows", change)

		block := Block(schema, all)
		e, err := encode.New(s.Preparation.Contract.Format, schema, encode.Options{})
		require.NoError(t, err)
		if whole, is := e.(encode.PerBatch); is {
			e = whole.ForBatch(n)
		}
		var at encode.Offsets
		number := typesBatches.Add(1) // a batch that was claimed is not loaded again
		b := &batch.Batch{ID: batch.ID{Run: s.Preparation.Run, Number: number}, Format: e.Format(), Rows: n}
		b.Encoded = e.AppendTail(e.AppendRows(e.AppendHead(nil), block, &at))
		b.Hold()
		ack, err := Session(t, l, s.Preparation.Contract).Load(t.Context(), b)
		require.NoError(t, err, change)
		if ack.Stored {
			ack, err = loader.FeaturesOf(l).Committer.Commit(t.Context(), loader.Group{Ref: loader.RefOf(b), Members: []loader.Ref{loader.RefOf(b)}})
			require.NoError(t, err, change)
		}
		require.EqualValues(t, n, ack.Rows)
		s.isEvery(t, l, block, change)
	}
	s.Exec("DROP TABLE IF EXISTS " + s.Name)
}

func (s Tables) isEvery(t *testing.T, l loader.Loader, block *rows.Block, change string) {
	schema, found := s.Preparation.Schema, 0
	var numbers []int64
	for i := range block.Rows {
		numbers = append(numbers, int64(i))
	}
	require.NoError(t, loader.FeaturesOf(l).Fetcher.Fetch(t.Context(), numbers, func(number int64, values []any) error {
		found++
		for c, column := range schema.Columns {
			want, text := block.Columns[c].At(int(number)), ""
			if got, is := values[c].([]byte); is {
				text = string(got)
			}
			where := []any{"%s: row %d, column %s", change, number, column.Name}
			switch {
			case column.Type == rows.JSON && want != nil:
				assert.JSONEq(t, string(want.([]byte)), text, where...)
			case column.Type == rows.Char && want != nil:
				assert.Equal(t, string(want.([]byte)), strings.TrimRight(text, " "), where...)
			default:
				assert.Equal(t, want, values[c], where...)
			}
		}
		return nil
	}), change)
	require.Equal(t, block.Rows, found, change)

	var want []*big.Int
	for _, m := range schema.Measures() {
		sum := new(big.Int)
		m.Add(sum, &block.Columns[m.Column])
		want = append(want, sum)
	}
	g := loader.Grouping{KeyRange: loader.KeyRange{Last: int64(block.Rows)}, Size: 1000, Measures: true}
	require.NoError(t, loader.FeaturesOf(l).Counter.Count(t.Context(), g, func(b loader.Bucket) error {
		require.Len(t, b.Measures, len(want))
		for i, m := range schema.Measures() {
			assert.Equal(t, want[i].String(), b.Measures[i].String(), "%s: measure %d of column %s", change, m.Of, schema.Columns[m.Column].Name)
		}
		return nil
	}), change)
}
