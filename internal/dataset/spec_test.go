package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

// specsForTests are specs by name: the golden one, those that equal a built-in dataset, and the kinds of keys.
func specsForTests(t testing.TB) map[string]*Spec {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile("testdata/" + name + ".yaml")
		require.NoError(t, err)
		return string(text)
	}
	specs := map[string]*Spec{}
	for name, text := range map[string]string{
		"everything": read("everything"),
		"more":       read("more"),
		"shapes":     read("shapes"),
		"newer":      read("newer"),
		"scattered key": `
version: 1
columns:
  id: {type: bigint, sequence: {}}
  n: {type: bigint, scatter: {stride: 2147483648}}
  k: {type: bigint, scatter: {start: 1, stride: 3}}
key: [k]`,
		"documents": `
version: 1
columns:
  document_id: {type: bigint, sequence: {start: 0}}
  payload: {type: bytes(512), bytes: {}}`,
		"lineitem": `
version: 1
key: [l_orderkey, l_linenumber]
columns:
  l_orderkey: {type: bigint, sequence: {every: 4}}
  l_partkey: {type: bigint, uniform: {min: 1, max: 200000}}
  l_suppkey: {type: bigint, uniform: {min: 1, max: 10000}}
  l_linenumber: {type: bigint, sequence: {cycle: 4}}
  l_quantity: {type: "decimal(15,2)", uniform: {min: 1, max: 50, step: 1}}
  l_extendedprice: {type: "decimal(15,2)", uniform: {min: 900, max: 104950}}
  l_discount: {type: "decimal(15,2)", uniform: {min: 0, max: 0.10}}
  l_tax: {type: "decimal(15,2)", uniform: {min: 0, max: 0.08}}
  l_returnflag: {type: text(1), values: [R, A, N]}
  l_linestatus: {type: text(1), values: [F, O]}
  l_shipdate: {type: date, uniform: {min: 1992-01-02, max: 1998-12-01}}
  l_commitdate: {type: date, uniform: {min: 1992-01-31, max: 1998-10-31}}
  l_receiptdate: {type: date, uniform: {min: 1992-01-03, max: 1998-12-31}}
  l_shipinstruct: {type: text(25), values: [DELIVER IN PERSON, COLLECT COD, NONE, TAKE BACK RETURN]}
  l_shipmode: {type: text(10), values: [REG AIR, AIR, RAIL, SHIP, TRUCK, MAIL, FOB]}
  l_comment: {type: text(44), words: {length: 10..43}}`,
		"text key": `
version: 1
columns:
  code: {type: text(20), sequence: {start: 0, format: "{:020}"}}
  n: {type: bigint, uniform: {min: 1, max: 9}}`,
		"time key": `
version: 1
columns:
  at: {type: timestamp, sequence: {start: 1969-12-31 23:59:59.5}}
  n: {type: text(5), text: {}}`,
		"short": `
version: 1
key: [id]
columns:
  id: {type: bigint, sequence: {}}
  no: {type: text(3), sequence: {start: 998, step: 1, every: 500, format: "{:03}"}}
  n: {type: bigint, constant: 5}`,
	} {
		var err error
		specs[name], err = ParseSpec(strings.ReplaceAll(name, " ", "_")+".yaml", []byte(text), nil)
		require.NoError(t, err)
	}
	return specs
}

// forEachSpec runs f with the dataset of every spec.
func forEachSpec[T testing.TB](t T, run func(name string, f func(T)) bool, f func(t T, d Dataset)) {
	for name, s := range specsForTests(t) {
		run(name, func(t T) {
			d, err := s.Compile(5)
			require.NoError(t, err)
			f(t, d)
		})
	}
}

// TestGoldenRowsOfASpec pins all generators of version 1, as TestGoldenRows pins the built-in datasets. Programs in
// Python, of the same names, made the rows.
func TestGoldenRowsOfASpec(t *testing.T) {
	for _, name := range []string{"everything", "more", "shapes", "newer"} {
		t.Run(name, func(t *testing.T) { requireGolden(t, name, specsForTests(t)[name]) })
	}
}

func requireGolden(t *testing.T, name string, spec *Spec) {
	golden, err := os.ReadFile("testdata/" + name + ".golden")
	require.NoError(t, err)
	datasets := map[uint64]Dataset{}
	for line := range strings.Lines(string(golden)) {
		want := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		seed, err := strconv.ParseUint(want[0], 10, 64)
		require.NoError(t, err)
		row, err := strconv.ParseInt(want[1], 10, 64)
		require.NoError(t, err)
		if datasets[seed] == nil {
			datasets[seed], err = spec.Compile(seed)
			require.NoError(t, err)
		}
		d := datasets[seed]
		require.LessOrEqual(t, row, d.Schema().MaxNumber())
		var got []string
		for _, v := range rowOf(d, row) {
			text := fmt.Sprint(v)
			if value, is := v.(string); is {
				text = hex.EncodeToString([]byte(value))
			}
			got = append(got, text)
		}
		if !slices.Equal(want[2:], got) { // assert is slow
			assert.Equal(t, want[2:], got, "seed %d, row %d, columns %s", seed, row, d.Schema().Names())
		}
	}
}

// A column's values follow from its name: others may come, go and change places.
func TestColumnsOfASpecAreIndependent(t *testing.T) {
	all := specsForTests(t)["everything"]
	want, err := all.Compile(9)
	require.NoError(t, err)
	few := *all
	few.Unique = nil
	few.Columns = slices.DeleteFunc(slices.Clone(all.Columns), func(c SpecColumn) bool {
		return len(c.Name)%2 == 1 && !slices.Contains(all.Key, c.Name)
	})
	slices.Reverse(few.Columns)
	require.Less(t, len(few.Columns), len(all.Columns))
	got, err := few.Compile(9)
	require.NoError(t, err)
	for i, c := range got.Schema().Columns {
		at := slices.Index(want.Schema().Names(), c.Name)
		assert.Equal(t, rowOf(want, 12345)[at], rowOf(got, 12345)[i], c.Name)
	}
}

func TestRowsOfASpecDoNotDependOnTheRequest(t *testing.T) {
	forEachSpec(t, t.Run, func(t *testing.T, d Dataset) {
		for _, first := range []int64{0, 1950, 999, 86_399_990, 1 << 40, d.Schema().MaxNumber() - 49} {
			if first > d.Schema().MaxNumber()-49 {
				continue
			}
			all, part := rows.NewBlock(d.Schema()), rows.NewBlock(d.Schema())
			d.Fill(all, first, 50)
			d.Derive(all, first)
			for _, from := range []int{49, 0, 17, 3, 17} { // backwards and twice: no state is kept
				for _, n := range []int{1, 2, 50 - from} {
					n = min(n, 50-from)
					d.Fill(part, first+int64(from), n)
					d.Derive(part, first+int64(from))
					d.Derive(part, first+int64(from)) // the derived columns are replaced, not added to
					require.Equal(t, n, part.Rows)
					for i := range n {
						require.Equal(t, values(all, from+i), values(part, i), "row %d", first+int64(from+i))
					}
				}
			}
		}
	})
}

// Encoders, databases and verification rely on the promises of a schema without looking.
func TestSpecsKeepThePromisesOfTheirSchema(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	forEachSpec(t, t.Run, func(t *testing.T, d Dataset) {
		s := d.Schema()
		longest := make([]int, len(s.Columns))
		for k := range 500 {
			row := random.Int64N(s.MaxNumber()) >> random.IntN(32)
			if k == 0 {
				row = s.MaxNumber()
			}
			requirePromises(t, d, row, longest)
		}

		b := rows.NewBlock(s)
		d.Fill(b, 0, 10_000)
		for i, c := range s.Columns {
			for k := range len(b.Columns[i].Ends) {
				longest[i] = max(longest[i], len(b.Columns[i].Value(k)))
			}
			if c.Type != rows.JSON { // whose fields are rarely all at their longest
				require.Equal(t, c.MaxBytes, longest[i], "%s: the longest value is as long as the schema says", c.Name)
			}
		}
	})
}

// requirePromises checks one row, and keeps the longest values.
func requirePromises(t *testing.T, d Dataset, row int64, longest []int) {
	t.Helper()
	s := d.Schema()
	all := rowOf(d, row)
	number, values := int64(0), s.KeyValues(row)
	for i, term := range s.Number {
		v, is := all[term.Column].(int64)
		if !is && !term.Hex {
			v, _ = strconv.ParseInt(all[term.Column].(string), 10, 64)
		}
		if !term.Hex {
			require.Equal(t, v, values[i])
		}
		switch {
		case term.Hex:
			text := all[term.Column].(string)
			if s.Columns[term.Column].Type == rows.UUID {
				text = hex.EncodeToString([]byte(text))
			}
			text = strings.ReplaceAll(text, "-", "")
			require.Equal(t, text, strings.ReplaceAll(UUIDOf(d)(row), "-", ""))
			v, _ = strconv.ParseInt(text[len(text)-15:], 16, 64)
		case term.Stride > 0:
			v = rows.Scatter(v-term.Minus, term.Stride) + term.Minus
		}
		number += (v - term.Minus) * term.Times
	}
	require.Equal(t, row, number)

	widest := rows.NewBlock(s)
	Widest(widest, d, row)
	for i, c := range s.Columns {
		if c.Derived && c.Type.IsInteger() {
			require.GreaterOrEqual(t, widest.Columns[i].Ints[0], all[i].(int64), "%s", c.Name)
		}
	}

	for i, c := range s.Columns {
		if all[i] == nil {
			require.True(t, c.Nullable && !c.Derived, "%s", c.Name)
			continue
		}
		if text, is := all[i].(string); is && !c.Type.InBytes() {
			requireText(t, c, text)
			longest[i] = max(longest[i], len(text))
			continue
		}
		if c.Type == rows.Wide {
			_, err := c.ParseWide(c.TextOf([]byte(all[i].(string))))
			require.NoError(t, err, "%s has no more digits than its column", c.Name)
		}
		if !c.Type.InBytes() {
			requireNumber(t, c, all[i].(int64))
		}
	}
}

func requireText(t *testing.T, c rows.Column, text string) {
	require.LessOrEqual(t, len(text), c.MaxBytes, "%s", c.Name)
	require.True(t, !c.Derived || len(text) == c.MaxBytes && c.Plain, "%s", c.Name)
	require.True(t, c.Type == rows.Bytes || c.Type.IsList() || utf8.ValidString(text), "%s", c.Name)
	require.False(t, c.Plain && strings.ContainsAny(text, plainBreakers), "%s is %q", c.Name, text)
	require.True(t, c.Declared == 0 || c.Declared > c.MaxBytes, "%s", c.Name)
	require.True(t, c.Type != rows.JSON && !c.JSON || json.Valid([]byte(text)) && !strings.ContainsAny(text, "\n\r"), "%s is %q", c.Name, text)
	require.True(t, c.Type != rows.Char || !strings.HasSuffix(text, " "), "%s is %q", c.Name, text)
	require.True(t, c.Type != rows.Enum || slices.Contains(c.Labels, text), "%s is %q", c.Name, text)
}

func requireNumber(t *testing.T, c rows.Column, v int64) {
	require.True(t, !c.Type.IsInteger() || !c.Derived || v >= 0, "%s", c.Name)
	require.True(t, c.Least == c.Most || v >= c.Least && v <= c.Most, "%s is %d", c.Name, v)
	require.True(t, c.Type != rows.Int16 || v == int64(int16(v)), "%s is %d", c.Name, v)
	require.True(t, c.Type != rows.Int32 || v == int64(int32(v)), "%s is %d", c.Name, v)
	require.True(t, c.Type != rows.Uint16 || v == int64(uint16(v)), "%s is %d", c.Name, v)
	require.True(t, c.Type != rows.Uint32 || v == int64(uint32(v)), "%s is %d", c.Name, v)
	require.True(t, c.Type != rows.Time || v >= 0 && v < dayMicros && v%tenTo(c.Scale) == 0, "%s is %d", c.Name, v)
	require.True(t, c.Type != rows.Bool || v == 0 || v == 1, "%s is %d", c.Name, v)
	require.True(t, c.Type != rows.Date || v >= earliestDay && v <= latestDay, "%s is %d", c.Name, v)
	require.True(t, !c.Type.IsTime() || v >= earliestMicros && v <= latestMicros && v%tenTo(c.Scale) == 0, "%s is %d", c.Name, v)
	require.True(t, c.Type != rows.Decimal || v > -tenTo(c.Digits) && v < tenTo(c.Digits), "%s is %d", c.Name, v)
	if c.Type == rows.Float32 {
		require.Equal(t, v, int64(uint32(v)))
		f := float64(math.Float32frombits(uint32(v))) * (1 << maxBinary)
		require.Equal(t, math.Trunc(f), f, "%s is a multiple of a power of two", c.Name)
	}
	if c.Type == rows.Float64 {
		f := math.Float64frombits(uint64(v)) * (1 << maxBinary)
		require.Equal(t, math.Trunc(f), f, "%s is a multiple of a power of two", c.Name)
	}
}

// A row after the last one would have a value that its column has no room for.
func TestLastRowOfASpec(t *testing.T) {
	for _, c := range []struct {
		column string
		want   int64
	}{
		{"{type: text, sequence: {start: 998, format: 'x{:03}'}}", 1},
		{"{type: text, sequence: {start: 998, every: 10, format: 'x{:03}'}}", 19},
		{"{type: text, sequence: {start: 0, step: 7, format: 'x{:03}'}}", 142},
		{"{type: text, sequence: {start: 0, cycle: 1000, format: 'x{:03}'}}", math.MaxInt64 - 1},
		{"{type: date, sequence: {start: 9999-12-30}}", 1},
		{"{type: date, sequence: {start: 0001-01-01, every: 24}}", (latestDay-earliestDay+1)*24 - 1},
		{"{type: timestamp, sequence: {start: 9999-12-31, step: 1h}}", 23},
		{"{type: bigint, sequence: {start: 9223372036854775800, step: 5}}", 1},
		{"{type: bigint, sequence: {start: 2}}", math.MaxInt64 - 2},
		{"{type: bigint, sequence: {start: 1, step: 9223372036854775806}}", 1},
	} {
		s, err := ParseSpec("t.yaml", []byte("version: 1\nkey: [id]\ncolumns:\n  id: {type: bigint, sequence: {}}\n  c: "+c.column), nil)
		require.NoError(t, err, c.column)
		d, err := s.Compile(1)
		require.NoError(t, err)
		assert.Equal(t, c.want, d.Schema().MaxNumber(), c.column)
		requirePromises(t, d, c.want, make([]int, 2))
	}
}

func TestFillOfASpecAllocatesNothingPerRow(t *testing.T) {
	forEachSpec(t, t.Run, requireNoAllocations)
}

func TestMeanRowBytesOfASpec(t *testing.T) {
	for name, s := range specsForTests(t) {
		of, err := s.Compile(1)
		require.NoError(t, err)
		for _, seed := range []uint64{1, math.MaxUint64} {
			d, err := s.Compile(seed)
			require.NoError(t, err)
			require.Equal(t, of.Schema(), d.Schema(), "the same for every seed")
			n := 10_000
			if d.Schema().MaxNumber() < 10_000 {
				n = 1000
			}
			b := rows.NewBlock(d.Schema())
			d.Fill(b, 0, n)
			d.Derive(b, 0)
			near := 0.01
			if name == "more" { // its 300 addresses are others with another seed, of other lengths
				near = 0.02
			}
			assert.InEpsilon(t, float64(b.PayloadBytes())/float64(n), d.Schema().RowBytes(), near, "%s, seed %d", name, seed)
		}
	}
}

// A record holds the spec's JSON, and nothing else is needed to make the rows again.
func TestSpecsComeBackFromTheirJSON(t *testing.T) {
	for name, s := range specsForTests(t) {
		text, err := json.Marshal(s)
		require.NoError(t, err)
		again := new(Spec)
		require.NoError(t, json.Unmarshal(text, again))
		_, err = again.Compile(1)
		require.NoError(t, err)
		same, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(text), string(same), "%s: compiling changes nothing", name)

		_, problems := again.plan()
		require.Empty(t, problems)
		same, err = json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(text), string(same), "%s: frozen specs are frozen", name)
	}
}

// What means the same is the same: other notations, parameters, defaults, comments.
func TestSpecsAreCanonical(t *testing.T) {
	parse := func(text string, parameters map[string]string) string {
		s, err := ParseSpec("shop.yaml", []byte(text), parameters)
		require.NoError(t, err)
		j, err := json.Marshal(s)
		require.NoError(t, err)
		return string(j)
	}
	want := parse(`
version: 1
name: shop
rows: 1000000
key: [id]
columns:
  id: {type: bigint, sequence: {start: 1, step: 1, every: 1}}
  at: {type: timestamp, sequence: {start: "2026-01-01 00:00:00.000000", step: 90s, every: 1}}
  c:  {type: bigint, zipf: {s: 1.5, scatter: false, min: 1, max: 5000, step: 1}}
  p:  {type: "decimal(5,2)", uniform: {min: 0.50, max: 10.00, step: 0.01}}
  s:  {type: text(7), values: {paid: 12.5%, shipped: 87.5%}}
  t:  {type: text(9), text: {length: 9..9, alphabet: alnum}}
unique: []
`, nil)
	assert.Equal(t, want, parse(`
# another way to say it
columns:
  id:
    sequence: {}
    type: BIGINT
  at:
    type: timestamp
    sequence: {start: 2026-01-01, step: 1.5m}
  c: {type: bigint, zipf: {s: 1.500, min: 1, max: "${customers}"}}
  p: {type: "decimal( 5, 2 )", uniform: {min: 0.5, max: 10}}
  s: {type: text, values: {paid: 12.50 %, shipped: "${rest}"}}
  t: {type: text(9), text: }
parameters:
  customers: 100
  rest: 87.5%
rows: 1_000_000
version: 1
`, map[string]string{"customers": "5000"}))
}

// BenchmarkFillSpec is BenchmarkFill of specs that equal a built-in dataset.
func BenchmarkFillSpec(b *testing.B) {
	forEachSpec(b, b.Run, func(b *testing.B, d Dataset) {
		n := int64(128<<10) / d.Schema().MaxRowBytes()
		block := rows.NewBlock(d.Schema())
		b.ReportAllocs()
		for b.Loop() {
			d.Fill(block, 0, int(n))
			d.Derive(block, 0)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
	})
}

// No two rows are equal in a unique set: whatever decide accepts, the first few thousand rows confirm.
func TestDecide(t *testing.T) {
	for _, c := range []struct {
		want bool
		all  []*sequence
	}{
		{true, []*sequence{{every: 1}}},
		{true, []*sequence{{every: 3}, {every: 1}}},
		{true, []*sequence{{every: 4}, {every: 1, cycle: 4}}},
		{true, []*sequence{{every: 4}, {every: 1, cycle: 5}}},
		{true, []*sequence{{every: 1, cycle: 3}, {every: 12}, {every: 3, cycle: 4}}},
		{false, nil},
		{false, []*sequence{{every: 2}}},
		{false, []*sequence{{every: 1, cycle: 1000}}},
		{false, []*sequence{{every: 4}, {every: 1, cycle: 3}}},
		{false, []*sequence{{every: 4}, {every: 2, cycle: 2}}},
		{false, []*sequence{{every: 12}, {every: 3, cycle: 4}, {every: 1, cycle: 2}}},
	} {
		seen, repeated := map[string]bool{}, false
		for row := range int64(5000) {
			key := ""
			for _, s := range c.all {
				s.step = 1
				key += fmt.Sprint(s.place(row).value, " ")
			}
			repeated = repeated || seen[key]
			seen[key] = true
		}
		assert.Equal(t, c.want, !repeated)
		var told []numbering
		for _, s := range c.all {
			told = append(told, numbering{s.every, s.cycle})
		}
		assert.Equal(t, c.want, decide(told))
	}
}

// TestDigestOfASpec pins what the golden rows are too few for, and the JSON that records keep.
func TestDigestOfASpec(t *testing.T) {
	s := specsForTests(t)["everything"]
	text, err := json.Marshal(s)
	require.NoError(t, err)
	d, err := s.Compile(5)
	require.NoError(t, err)

	sum, b := sha256.New(), rows.NewBlock(d.Schema())
	for _, first := range []int64{0, 1 << 40, d.Schema().MaxNumber() - 19_999} {
		d.Fill(b, first, 20_000)
		d.Derive(b, first)
		for _, c := range b.Columns {
			_ = binary.Write(sum, binary.LittleEndian, c.Ints) // a hash never fails
			_ = binary.Write(sum, binary.LittleEndian, c.Ends)
			sum.Write(c.Data)
		}
	}
	assert.Equal(t, "dfd4aace18605ecb", hex.EncodeToString(sum.Sum(nil)[:8]), "rows")
	record := sha256.Sum256(text)
	assert.Equal(t, "9d24b5986dde32e5", hex.EncodeToString(record[:8]), "JSON: %s", text)
}

// A key that is added is one that stands in the file, unless a column has that name.
func TestHiddenKey(t *testing.T) {
	digest := func(key, column string) string {
		s, err := ParseSpec("s.yaml", []byte("version: 1\nkey: "+key+"\ncolumns:\n  n: {type: int, uniform: {min: 1, max: 9}}\n"+column), nil)
		require.NoError(t, err)
		return s.Digest()
	}
	require.Equal(t, digest("[terapush_row]", "  terapush_row: {type: bigint, sequence: {start: 1}}\n"), digest("hidden", ""))
	require.Equal(t, digest("[hidden]", "  hidden: {type: bigint, sequence: {start: 1}}\n"),
		digest("hidden", "  hidden: {type: bigint, sequence: {start: 1}}\n"))
}

// A column that starts over, or is in no order, has its largest value before the last row.
func TestWidest(t *testing.T) {
	s, err := ParseSpec("s.yaml", []byte(`
version: 1
key: [id]
columns:
  id:   {type: bigint, sequence: {start: 1}}
  turn: {type: bigint, sequence: {start: 1, step: 2, every: 3, cycle: 100}}
  jump: {type: bigint, scatter: {start: 1, stride: 7}}
  hash: {type: bigint, hash: {min: 3, max: 777, step: 2}}
`), nil)
	require.NoError(t, err)
	d, err := s.Compile(1)
	require.NoError(t, err)

	block, all := rows.NewBlock(d.Schema()), rows.NewBlock(d.Schema())
	all.Reset(1000)
	d.Derive(all, 0)
	most := make([]int64, 4)
	for last := range 1000 {
		for c := range most {
			most[c] = max(most[c], all.Columns[c].Ints[last])
		}
		Widest(block, d, int64(last))
		for c := range 3 {
			require.Equal(t, most[c], block.Columns[c].Ints[0], "column %d, row %d", c, last)
		}
		require.EqualValues(t, 777, block.Columns[3].Ints[0])
	}
}

func TestDifferences(t *testing.T) {
	parse := func(columns string) *Spec {
		s, err := ParseSpec("s.yaml", []byte("version: 1\nkey: [id]\ncolumns:\n  id: {type: bigint, sequence: {start: 1}}\n"+columns), nil)
		require.NoError(t, err)
		return s
	}
	was := parse("  n: {type: bigint, uniform: {min: 1, max: 12}}\n")
	require.Empty(t, parse("  n: {uniform: {max: 12, min: 1}, type: BIGINT}\n").Differences(was))
	require.Equal(t, was.Digest(), parse("  n: {uniform: {max: 12, min: 1}, type: BIGINT}\n").Digest())

	larger := *was
	larger.Rows = 5
	require.Empty(t, larger.Differences(was), "no row depends on how many there are")
	require.Equal(t, was.Digest(), larger.Digest())

	is := parse("  n: {type: bigint, uniform: {min: 1, max: 13}}\n  m: {type: date, constant: 2026-01-01}\n")
	require.NotEqual(t, was.Digest(), is.Digest())
	require.Equal(t, []string{
		`column n was {"name":"n","type":"bigint","uniform":{"min":"1","max":"12","step":"1"}}, ` +
			`now {"name":"n","type":"bigint","uniform":{"min":"1","max":"13","step":"1"}}`,
		`columns was ["id","n"], now ["id","n","m"]`,
	}, is.Differences(was))
}

// BenchmarkSpecBesideBuiltIn fills a spec and the built-in dataset of the same columns in turns, and reports the ratio
// of the fastest rounds, which other work on the machine does not slow.
func BenchmarkSpecBesideBuiltIn(b *testing.B) {
	for _, name := range []string{"documents", "lineitem"} {
		b.Run(name, func(b *testing.B) {
			own, err := specsForTests(b)[name].Compile(5)
			require.NoError(b, err)
			both, best := []Dataset{newDataset(b, name, Options{Seed: 5}), own}, []time.Duration{time.Hour, time.Hour}
			n, block := int(128<<10/own.Schema().MaxRowBytes()), rows.NewBlock(own.Schema())
			for b.Loop() {
				for i, d := range both {
					began := time.Now()
					d.Fill(block, 0, n)
					d.Derive(block, 0)
					best[i] = min(best[i], time.Since(began))
				}
			}
			b.ReportMetric(float64(best[1])/float64(best[0]), "times-the-built-in")
		})
	}
}

// A type with fewer digits after its seconds has no value with more, whatever makes it; one with all six is what it is
// without.
func TestDigitsOfSeconds(t *testing.T) {
	const text = `version: 1
name: digits
columns:
  id: {type: bigint, sequence: {}}
  walks: {type: timestamp(3), sequence: {start: 1969-12-31 23:59:59.5}}
  hashed: {type: timestamptz(1), hash: {min: 2026-01-01, max: 9999-12-31 23:59:59.9}}
  drawn: {type: timestamp(0), uniform: {min: 1960-01-01, max: 2026-01-01 00:00:01}}
  ranked: {type: timestamp(5), zipf: {s: 1.1, min: 1960-01-01, max: 2026-01-01, scatter: true}}
  bell: {type: timestamp(4), normal: {mean: 1970-01-01 00:00:00.0001, stddev: 100us}}
  wide: {type: timestamp(0), normal: {mean: 9999-12-31, stddev: 1d}}
  later: {type: timestamp(0), after: {column: drawn, by: 0..3s}}
  same: {type: timestamp(0), same: drawn}
  doc: {type: json, json: {at: {type: timestamptz(2), uniform: {min: 2026-01-01, max: 2026-01-02}}, on: {type: timestamp(0), constant: 2026-01-01}}}
  full: {type: timestamp(6), uniform: {min: 2026-01-01, max: 2026-01-02}}
`
	spec, err := ParseSpec("digits.yaml", []byte(text), nil)
	require.NoError(t, err)
	d, err := spec.Compile(7)
	require.NoError(t, err)
	block := rows.NewBlock(d.Schema())
	d.Fill(block, 0, 500)
	d.Derive(block, 0)
	for i, c := range d.Schema().Columns {
		seen := map[int64]bool{}
		for _, v := range block.Columns[i].Ints {
			seen[v] = true
			if c.Type.IsTime() {
				require.Zero(t, v%tenTo(c.Scale), "%s: %s", c.Name, rows.Column{Type: c.Type}.Text(v))
			}
		}
		if c.Type.IsTime() {
			require.Greater(t, len(seen), 5, c.Name)
		}
		require.Equal(t, spec.Columns[i].Type, TypeName(c))
	}
	full, _ := d.Schema().Column("full")
	require.Equal(t, rows.Column{Name: "full", Type: rows.Timestamp}, full)
	doc := slices.IndexFunc(d.Schema().Columns, func(c rows.Column) bool { return c.Name == "doc" })
	require.Regexp(t, `^{"at":"2026-01-01 \d\d:\d\d:\d\d\.\d\d\+00:00","on":"2026-01-01 00:00:00"}$`, string(block.Columns[doc].Value(0)))

	written := func(name string) string {
		text, err := json.Marshal(spec.Columns[slices.IndexFunc(spec.Columns, func(c SpecColumn) bool { return c.Name == name })])
		require.NoError(t, err)
		return string(text)
	}
	require.JSONEq(t, `{"name":"walks","type":"timestamp(3)","sequence":{"start":"1969-12-31 23:59:59.500","step":"1ms","every":1}}`, written("walks"))
	require.JSONEq(t, `{"name":"wide","type":"timestamp(0)","normal":{"mean":"9999-12-31 00:00:00","stddev":"1d",`+
		`"range":{"min":"9999-12-25 00:00:00","max":"9999-12-31 23:59:59","step":"1s"}}}`, written("wide"))
	require.JSONEq(t, `{"name":"full","type":"timestamp","uniform":{"min":"2026-01-01 00:00:00.000000","max":"2026-01-02 00:00:00.000000","step":"1us"}}`, written("full"))
}

// A reference of two columns is to one row of the parent, or NULL in both, whatever the row is made of and in whatever
// order the columns stand.
func TestReferencesOfTwoColumns(t *testing.T) {
	const text = `version: 1
name: tasks
key: [id]
columns:
  project: {type: int, ref: {table: projects, column: id, with: tenant, start: 5, cycle: 30}}
  label: {type: text, ref: {table: projects, column: label, with: tenant, format: "P{:04}"}}
  id: {type: bigint, sequence: {start: 1}}
  tenant: {type: int, ref: {table: projects, column: tenant, rows: 290, every: 30}, zipf: {s: 1.1, scatter: true}, nulls: 20%}
`
	spec, err := ParseSpec("tasks.yaml", []byte(text), nil)
	require.NoError(t, err)
	d, err := spec.Compile(7)
	require.NoError(t, err)
	block := rows.NewBlock(d.Schema())
	d.Fill(block, 0, 5000)

	seen, nulls := map[int64]bool{}, 0
	for i := range 5000 {
		project, label, tenant := &block.Columns[0], &block.Columns[1], &block.Columns[3]
		require.Equal(t, tenant.IsNull(i), project.IsNull(i))
		require.Equal(t, tenant.IsNull(i), label.IsNull(i))
		if tenant.IsNull(i) {
			nulls++
			continue
		}
		parent := (tenant.Ints[i]-1)*30 + project.Ints[i] - 5
		require.Equal(t, fmt.Sprintf("P%04d", parent+1), string(label.Value(i)))
		seen[parent] = true
	}
	require.InDelta(t, 1000, nulls, 150)
	require.Greater(t, len(seen), 200)
	require.Less(t, slices.Max(slices.Collect(maps.Keys(seen))), int64(290))

	for with, want := range map[string]string{
		"{table: projects, column: id, with: other}":             "column other draws no row of table projects: name the column whose ref does",
		"{table: users, column: id, with: tenant}":               "column tenant draws no row of table users",
		"{table: projects, column: id, with: project}":           "column project draws no row of table projects",
		"{table: projects, column: id, with: tenant, rows: 9}":   "ref: 9 rows, and column tenant has 290: leave them out",
		"{table: projects, column: id, with: tenant}, nulls: 1%": "the row and its NULL are those of column tenant",
	} {
		_, err := ParseSpec("tasks.yaml", []byte(text+"  other: {type: int, constant: 1}\n  c: {type: int, ref: "+with+"}\n"), nil)
		require.ErrorContains(t, err, want, with)
	}
}

// A type that is narrower than ours takes a column whose bounds are known, as they are of every drawn column of
// integers.
func TestBoundsOfIntegers(t *testing.T) {
	for generator, want := range map[string][2]int64{
		"constant: 0":                          {0, 1},
		"values: [0]":                          {0, 1},
		"uniform: {min: 0, max: 0}":            {0, 1},
		"zipf: {s: 1, values: [0]}":            {0, 1},
		"constant: -7":                         {-7, -7},
		"uniform: {min: -3, max: 5}":           {-3, 5},
		"same: zero":                           {0, 1},
		"sequence: {start: 0, cycle: 9}":       {0, 8},
		"sequence: {start: 1}":                 {0, 0},
		"ref: {table: t, column: c, rows: 20}": {1, 20},
	} {
		s, err := ParseSpec("f", []byte("version: 1\nname: t\nkey: [id]\ncolumns:\n  id: {type: bigint, sequence: {start: 1}}\n"+
			"  zero: {type: smallint, constant: 0}\n  c: {type: smallint, "+generator+"}\n"), nil)
		require.NoError(t, err, generator)
		d, err := s.Compile(1)
		require.NoError(t, err, generator)
		c, _ := d.Schema().Column("c")
		assert.Equal(t, want, [2]int64{c.Least, c.Most}, generator)
	}
}

// A column of ASCII says so, since it goes into tables of old character sets.
func TestASCII(t *testing.T) {
	for generator, want := range map[string]bool{
		"constant: x":                                             true,
		"values: [a, é]":                                          false,
		"text: {length: 9, alphabet: ascii}":                      true,
		"words: {length: 9}":                                      true,
		"sequence: {format: \"A-{:09}\"}":                         true,
		"sequence: {format: \"Ä-{:09}\"}":                         false,
		"json: {a: {constant: x}, n: {constant: 1}}":              true,
		"json: {a: {constant: é}}":                                false,
		"json: {é: {constant: 1}}":                                false,
		"json: {a: {json: {b: {values: [é, x]}}}}":                false,
		"same: latin":                                             false,
		"ref: {table: t, column: c, rows: 9, format: \"Ä{:09}\"}": false,
	} {
		s, err := ParseSpec("f", []byte("version: 1\nname: t\nkey: [id]\ncolumns:\n  id: {type: bigint, sequence: {start: 1}}\n"+
			"  latin: {type: text, constant: é}\n  c: {type: text, "+generator+"}\n"), nil)
		require.NoError(t, err, generator)
		d, err := s.Compile(1)
		require.NoError(t, err, generator)
		c, _ := d.Schema().Column("c")
		assert.Equal(t, want, c.ASCII, generator)
	}
}

// What is no more than 15 digits, or an integer of 64 bits, every server gives back.
func TestNumbersInDocuments(t *testing.T) {
	for _, column := range []string{
		"json: {a: {values: [-99999999999.9999, 1]}}", "json: {a: {uniform: {min: -9_223_372_036_854_775_808, max: 9223372036854775807}}}",
		"constant: '{\"a\": [0.000000123456789012345, 1.50000000000000000000, 9223372036854775807, 1e300, 10, true, \"1.2345678901234567\"]}'",
	} {
		_, err := ParseSpec("f", []byte("version: 1\nname: t\nkey: [id]\ncolumns:\n  id: {type: bigint, sequence: {start: 1}}\n"+
			"  c: {type: json, "+column+"}\n"), nil)
		require.NoError(t, err, column)
	}
}

// Fields are drawn for as many documents at a time as have a megabyte, and for one that is longer; the documents are
// the same however many that are.
func TestScratchOfDocuments(t *testing.T) {
	for length, together := range map[int]int{9: documentRows, 10_000: documentBytes / 10_012, 65_000: documentBytes / 65_012} {
		s, err := ParseSpec("f", []byte(fmt.Sprintf("version: 1\nname: t\nkey: [id]\ncolumns:\n  id: {type: bigint, sequence: {start: 1}}\n"+
			"  c: {type: json, json: {a: {text: {length: %d}}}}\n", length)), nil)
		require.NoError(t, err)
		d, err := s.Compile(1)
		require.NoError(t, err)
		g := d.(*specDataset).drawn[0].generator.(*document)
		assert.InDelta(t, together, g.together, 1, length)
		assert.LessOrEqual(t, g.together*length, documentBytes)

		all, one := rows.NewBlock(d.Schema()), rows.NewBlock(d.Schema())
		d.Fill(all, 5, 2*g.together+1)
		g.together = 1
		d.Fill(one, 5, all.Rows)
		for i := range one.Rows {
			require.Equal(t, all.Columns[1].Value(i), one.Columns[1].Value(i))
		}
	}
}

// Flow maps are read as they are written, however many a file has: one library for YAML has given some of many back
// empty.
func TestManyFlowMaps(t *testing.T) {
	const n = 900
	var text strings.Builder
	text.WriteString("version: 1\nname: t\nkey: [id]\ncolumns:\n  id: {type: bigint, sequence: {start: 1}}\n")
	for i := range n {
		fmt.Fprintf(&text, "  c%d: {type: json, json: {a: {constant: %d}, b: {values: {x%d: 60%%, y: 40%%}}}}\n", i, i, i)
	}
	s, err := ParseSpec("t", []byte(text.String()), nil)
	require.NoError(t, err)
	require.Len(t, s.Columns, n+1)
	for i, c := range s.Columns[1:] {
		fields := *c.Generator.(*SpecJSON)
		require.Len(t, fields, 2)
		require.Equal(t, SpecConstant(fmt.Sprint(i)), *fields[0].Generator.(*SpecConstant))
		require.Equal(t, SpecValues{{fmt.Sprint("x", i), "60"}, {"y", "40"}}, *fields[1].Generator.(*SpecValues))
	}
}
