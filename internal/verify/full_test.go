package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// ragged is a dataset whose texts are of all lengths: row i holds i mod 7 bytes, then i mod 5. It has derived columns of
// every kind.
type ragged struct{}

func (ragged) Schema() rows.Schema {
	return rows.Schema{
		Dataset: "ragged",
		Columns: []rows.Column{
			{Name: "a", Type: rows.Text, MaxBytes: 6},
			{Name: "id", Type: rows.Int64, Derived: true},
			{Name: "b", Type: rows.Bytes, MaxBytes: 4},
			{Name: "group", Type: rows.Text, MaxBytes: 3, Derived: true, Plain: true},
			{Name: "day", Type: rows.Date, Derived: true},
			{Name: "at", Type: rows.Timestamp, Derived: true},
		},
		Number: []rows.Term{{Column: 1, Times: 1}},
	}
}

func (ragged) Fill(b *rows.Block, first int64, n int) {
	b.Reset(n)
	for i := first; i < first+int64(n); i++ {
		for column, modulus := range map[int]int64{0: 7, 2: 5} {
			v := &b.Columns[column]
			for range i % modulus {
				v.Data = append(v.Data, byte('a'+i%26))
			}
			v.Ends = append(v.Ends, uint32(len(v.Data)))
		}
	}
}

func (ragged) Derive(b *rows.Block, first int64) {
	group := &b.Columns[3]
	group.Data, group.Ends = group.Data[:0], group.Ends[:0]
	for i := range b.Rows {
		row := first + int64(i)
		b.Columns[1].Ints[i] = row
		group.Data = fmt.Appendf(group.Data, "g%02d", row/20%100)
		group.Ends = append(group.Ends, uint32(len(group.Data)))
		b.Columns[4].Ints[i] = row
		b.Columns[5].Ints[i] = row * 1e6
	}
}

// 103 rows from key 1000 in batches of 10, repeating after 30.
func raggedRun() Expect {
	return Expect{Spans: source.Spans{FirstKey: 1000, Rows: 103, BatchRows: 10}, Proof: source.Proof{Dataset: ragged{}, Distinct: 30}}
}

func TestFull(t *testing.T) {
	for _, distinct := range []int64{0, 10, 30, 110, 200} {
		e := raggedRun()
		e.Distinct = distinct
		r, err := run(t.Context(), load(e), Full, e, 0)
		require.NoError(t, err)
		require.True(t, r.OK, "%+v", r)
		require.EqualValues(t, 103, r.SampledRows)
	}
}

func TestFullNamesWhatDiffers(t *testing.T) {
	// Row 47 of the run is dataset row 17: three letters 'r', then the key, then two.
	const key, place = 1047, 47
	for _, c := range []struct {
		name   string
		damage func(values []any)
		batch  string // what its batch is found to differ in
		row    string
	}{
		{"one byte of the text", func(v []any) { v[0].([]byte)[2] = 'x' }, "", "column a at byte 2: 0x78 instead of 0x72"},
		{"one byte of the last column", func(v []any) { v[2].([]byte)[0] ^= 0xff }, "", "column b: 0x8d instead of 0x72"},
		{"another number", func(v []any) { v[1] = int64(5) }, "", "column id: 5 instead of 1047"},
		{"a byte cut off", func(v []any) { v[0] = v[0].([]byte)[:2] },
			"column a holds 32 bytes instead of 33", "column a at byte 2: 2 bytes long instead of 3"},
		{"other and longer", func(v []any) { v[2] = []byte("rqq") },
			"column b holds 21 bytes instead of 20", "column b at byte 1: 0x71 instead of 0x72, 3 bytes long instead of 2"},
		{"a value lost", func(v []any) { v[2] = nil }, "column b holds 18 bytes instead of 20", "column b: it is NULL"},
		{"one byte of a derived text", func(v []any) { v[3].([]byte)[2]++ }, "", "column group at byte 2: 0x33 instead of 0x32"},
		{"a derived text cut off", func(v []any) { v[3] = v[3].([]byte)[:1] },
			"column group holds 28 bytes instead of 30", "column group at byte 1: 1 bytes long instead of 3"},
		{"another day", func(v []any) { v[4] = v[4].(int64) + 1 }, "", "column day: 1972-11-14 instead of 1972-11-13"},
		{"another time", func(v []any) { v[5] = v[5].(int64) - 1 }, "",
			"column at: 1970-01-01 00:17:26.999999 instead of 1970-01-01 00:17:27.000000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := raggedRun()
			table := load(e)
			c.damage(table.rows[place].values)
			r, err := run(t.Context(), table, Full, e, 0)
			require.NoError(t, err)
			require.False(t, r.OK)
			var batches []report.BadBatch
			if c.batch != "" {
				batches = []report.BadBatch{{
					Number: 4, FirstKey: 1040, LastKey: 1049, Keys: "id 1040 to 1049", Rows: 10, Found: 10, Reason: string(Differs),
					Detail: c.batch,
				}}
			}
			require.Equal(t, batches, r.BadBatches)
			require.Len(t, r.BadRows, 1)
			require.EqualValues(t, key, r.BadRows[0].Key)
			require.Equal(t, "id = 1047 differs in "+c.row, r.BadRows[0].String())
		})
	}
}

func TestFullNamesMissingAndDoubledRows(t *testing.T) {
	e := raggedRun()
	table := load(e)
	table.remove(1020)
	table.insert(e, 22)
	r, err := run(t.Context(), table, Full, e, 0)
	require.NoError(t, err)
	require.Equal(t, []BadRow{{Key: 1020, Name: "id = 1020", Reason: Missing}, {Key: 1022, Name: "id = 1022", Reason: Doubled}}, r.BadRows)
	require.EqualValues(t, 2, r.BadRowCount)
	require.Equal(t, "id = 1020 is missing", r.BadRows[0].String())
	require.Equal(t, "verify failed: 103 rows found, 103 expected; wrong batches: 1, wrong rows of those read back: 2 of 103: id = 1020 is missing", r.Failure())
}

// refuses is a table that fetches no row of a key.
type refuses struct {
	*table
	key int64
}

func (r refuses) Fetch(ctx context.Context, keys []int64, each func(int64, []any) error) error {
	if slices.Contains(keys, r.key) {
		return errors.New("too many rows")
	}
	return r.table.Fetch(ctx, keys, each)
}

// A wrong batch is wrong whether or not its rows can be read back.
func TestFullOfABatchThatCannotBeReadBack(t *testing.T) {
	e := raggedRun()
	e.VerifyRows = 1
	table := load(e)
	table.remove(1020)
	table.insert(e, 22)
	r, err := run(t.Context(), refuses{table, 1020}, Full, e, 0)
	require.NoError(t, err)
	require.False(t, r.OK)
	require.EqualValues(t, 1, r.BadCount)
	require.Empty(t, r.BadRows)
}

// 0, 4, 5 and 1, 2, 6 have the same number, sum and sum of squares: only the mix tells them apart where all values have one
// length.
func TestFullFindsWhatCountCannot(t *testing.T) {
	e := documents(t, Expect{Spans: source.Spans{FirstKey: 1000, Rows: 103, BatchRows: 103}, VerifyRows: 1})
	table := load(e)
	for i, n := range []int64{10, 14, 15} {
		table.remove(1000 + n)
		table.insert(e, []int64{11, 12, 16}[i])
	}
	for mode, ok := range map[Mode]bool{Count: true, Full: false} {
		r, err := run(t.Context(), table, mode, e, 0)
		require.NoError(t, err)
		require.Equal(t, ok, r.OK)
		require.Equal(t, !ok, r.BadCount == 1)
	}
}

// A run too large to regenerate has an even spread of its batches measured, and the last one.
func TestMeasureKeepsToItsBound(t *testing.T) {
	e := raggedRun()
	e.Distinct = 0
	perBatch := ragged{}.Schema().MaxRowBytes() * e.BatchRows
	for bound, want := range map[int64]int{0: 0, perBatch - 1: 0, perBatch: 1, 4 * perBatch: 4, 1 << 40: 11} {
		l, err := measure(t.Context(), e, bound)
		require.NoError(t, err)
		require.Len(t, l.template, want)
		require.Equal(t, want > 0, l.lastSums != nil)
	}
}

func TestMeasureStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := run(ctx, load(raggedRun()), Full, raggedRun(), 0)
	require.ErrorIs(t, err, context.Canceled)
}

func TestSpread(t *testing.T) {
	require.Nil(t, Spread(0, 10, 1))
	require.Equal(t, []int64{0, 1, 2}, Spread(3, 10, 1))
	for n := int64(1); n < 200; n += 7 {
		for k := int64(1); k <= n; k += 3 {
			s := Spread(n, k, uint64(n))
			require.Len(t, s, int(k))
			require.True(t, slices.IsSorted(s))
			require.Len(t, slices.Compact(slices.Clone(s)), int(k))
			require.True(t, s[0] >= 0 && s[k-1] < n)
			for i := 1; i < len(s); i++ { // one in each stretch: no gap is longer than two
				require.LessOrEqual(t, s[i]-s[i-1], 2*(n/k+1))
			}
		}
	}
	require.Equal(t, Spread(1<<62, 1000, 5), Spread(1<<62, 1000, 5))
	require.NotEqual(t, Spread(1<<62, 1000, 5), Spread(1<<62, 1000, 6))
}

// fetches hands out the same values for every row.
type fetches struct {
	*table
	number int64
	values []any
}

func (f fetches) Fetch(_ context.Context, _ []int64, each func(int64, []any) error) error {
	return each(f.number, f.values)
}

func TestWrongAnswersToFetch(t *testing.T) {
	e := raggedRun()
	a, g := []byte{}, []byte("g50") // of row 1000
	for _, c := range []struct {
		number  int64
		values  []any
		message string
	}{
		{7, nil, "returned row 7, which was not asked for"},
		{1000, []any{int64(1)}, "returned 1 columns instead of 6"},
		{1000, []any{[]byte{}, []byte("1"), nil, nil, nil, nil}, "returned bytes for column id of type int64"},
		{1000, []any{int64(1), nil, nil, nil, nil, nil}, "returned a number for column a of type text"},
		{1000, []any{"", nil, nil, nil, nil, nil}, "returned a string for column a"},
		{1000, []any{a, int64(1000), a, g, []byte("1972-09-27"), nil}, "returned bytes for column day of type date"},
		{1000, []any{a, int64(1000), a, g, int64(1000), time.Unix(1000, 0)}, "returned a time.Time for column at"},
	} {
		_, err := run(t.Context(), fetches{load(e), c.number, c.values}, Full, e, 0)
		require.ErrorContains(t, err, c.message)
	}
}

// Full regenerates at most measureBytes before its first scan.
func BenchmarkMeasure(b *testing.B) {
	d, err := dataset.New("documents", dataset.Options{})
	if err != nil {
		b.Fatal(err)
	}
	const batchRows, batches = 32 << 10, 16
	e := Expect{Spans: source.Spans{Rows: batchRows * batches, BatchRows: batchRows}, Proof: source.Proof{Dataset: d}}
	b.SetBytes(batchRows * batches * 512)
	for b.Loop() {
		if _, err := measure(b.Context(), e, measureBytes); err != nil {
			b.Fatal(err)
		}
	}
}

// TestFullOfEveryDataset: rows whose texts have several lengths, whose number lies in two columns or in a time, and whose
// drawn columns repeat; a decimal that is a cent off is found.
func TestFullOfEveryDataset(t *testing.T) {
	for _, name := range dataset.Names() {
		d, err := dataset.New(name, dataset.Options{Seed: 7})
		require.NoError(t, err)
		e := Expect{Spans: source.Spans{FirstKey: 4_000_003, Rows: 250, BatchRows: 40}, Proof: source.Proof{Dataset: d, Distinct: 120}, VerifyRows: 250, Seed: 1}
		table := load(e)
		r, err := run(t.Context(), table, Full, e, 0)
		require.NoError(t, err)
		require.True(t, r.OK, "%s: %+v", name, r)
		for c, column := range d.Schema().Columns {
			if column.Type == rows.Decimal {
				table.rows[9].values[c] = table.rows[9].values[c].(int64) - 1
			}
		}
		r, err = run(t.Context(), table, Full, e, 0)
		require.NoError(t, err)
		require.Equal(t, name != "lineitem", r.OK)
	}
}

// broken is a table whose connection is lost at the end of every first answer.
type broken struct {
	*table
	lost map[string]bool
}

func (b broken) once(what string, err error) error {
	if err == nil && !b.lost[what] {
		b.lost[what] = true
		return io.ErrUnexpectedEOF
	}
	return err
}

func (b broken) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	return b.once(fmt.Sprint("count by ", g.Size), b.table.Count(ctx, g, f))
}

func (b broken) Fetch(ctx context.Context, numbers []int64, f func(int64, []any) error) error {
	return b.once("fetch", b.table.Fetch(ctx, numbers, f))
}

// sampled chooses the rows at these places, and each time begins with a row of another run.
type sampled struct {
	*table
	places []int
}

func (s sampled) Sample(_ context.Context, _ int, f func(int64, []any) error) error {
	err := f(999, nil)
	for _, place := range s.places {
		err = errors.Join(err, f(s.rows[place].number, s.rows[place].values))
	}
	return err
}

// A back-end's own sample saves the second scan, unless it is too small.
func TestFullTakesTheSampleOfTheBackEnd(t *testing.T) {
	e := raggedRun()
	e.VerifyRows = 4
	damaged := load(e)
	damaged.rows[50].values[4] = int64(1)
	for _, c := range []struct {
		places      []int
		ok          bool
		rows, scans int
	}{
		{[]int{0, 100}, true, 2, 1},
		{[]int{3, 50, 70}, false, 3, 1},
		{[]int{50}, true, 4, 2}, // none of the four is the damaged one
		{nil, true, 4, 2},
	} {
		damaged.scans = 0
		r, err := run(t.Context(), sampled{damaged, c.places}, Full, e, 0)
		require.NoError(t, err)
		require.Equal(t, c.ok, r.OK)
		require.Equal(t, []int{c.rows, c.scans}, []int{int(r.SampledRows), damaged.scans})
	}
}

// typed is ragged with columns of which some values are NULL, and of types that servers keep in forms of their own.
type typed struct{}

func (typed) Schema() rows.Schema {
	return rows.Schema{
		Dataset: "typed",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int64, Derived: true},
			{Name: "n", Type: rows.Int16, Nullable: true},
			{Name: "price", Type: rows.Decimal, Digits: 6, Scale: 2},
			{Name: "doc", Type: rows.JSON, MaxBytes: 40, Nullable: true},
			{Name: "code", Type: rows.Char, MaxBytes: 4},
			{Name: "ratio", Type: rows.Float64},
			{Name: "ref", Type: rows.UUID},
			{Name: "address", Type: rows.Text, SQL: "inet", MaxBytes: 20, Nullable: true},
		},
		Number: []rows.Term{{Times: 1}},
	}
}

func (typed) Fill(b *rows.Block, first int64, n int) {
	b.Reset(n)
	null, every := func(c, i int) { b.Columns[c].Nulls[i/64] |= 1 << (i % 64) }, map[int]int64{1: 3, 3: 4, 7: 5}
	for c := range every {
		b.Columns[c].SetNulls(n)
	}
	for i := range n {
		row := first + int64(i)
		b.Columns[1].Ints[i], b.Columns[2].Ints[i], b.Columns[5].Ints[i] = row%7, row%100, int64(math.Float64bits(float64(row)/16))
		texts := map[int]string{3: fmt.Sprintf(`{"b": [%d.50, true], "a": "x"}`, row%10), 4: "c", 7: "10.0.0.1"}
		for c, m := range every {
			if row%m == 0 {
				null(c, i)
				texts[c], b.Columns[1].Ints[i] = "", b.Columns[1].Ints[i]*min(row%3, 1)
			}
		}
		for c, text := range texts {
			v := &b.Columns[c]
			v.Data = append(v.Data, text...)
			v.Ends = append(v.Ends, uint32(len(v.Data)))
		}
		for k := range b.Columns[6].UUID(i) {
			b.Columns[6].UUID(i)[k] = byte(row + int64(k))
		}
	}
}

func (typed) Derive(b *rows.Block, first int64) {
	for i := range b.Rows {
		b.Columns[0].Ints[i] = first + int64(i)
	}
}

// What a server may change and what it must not. Row 47 has dataset row 17, and no NULL; its batch has those of
// rows 10 to 19.
func TestFullOfTypes(t *testing.T) {
	const place = 47
	for _, c := range []struct {
		name       string
		damage     func(values []any)
		batch, row string // "" is right
	}{
		{"as it was sent", func([]any) {}, "", ""},
		{"JSON in another order and notation", func(v []any) { v[3] = []byte(`{"a":"\u0078","b":[7.5,true]}`) }, "", ""},
		{"blanks behind a char", func(v []any) { v[4] = []byte("c   ") }, "", ""},
		{"another spelling of what only the server knows", func(v []any) { v[7] = []byte("10.0.0.1/32") }, "", ""},
		{"another number in JSON", func(v []any) { v[3] = []byte(`{"a":"x","b":[7.51,true]}`) }, "", "column doc at byte 17: 0x31 instead of 0x2c, 25 bytes long instead of 24"},
		{"another integer", func(v []any) { v[1] = int64(6) }, "the values of column n sum to 26 instead of 23", "column n: 6 instead of 3"},
		{"another price", func(v []any) { v[2] = int64(16) }, "the values of column price sum to 1.44 instead of 1.45",
			"column price: 0.16 instead of 0.17"},
		{"a NULL too many", func(v []any) { v[3] = nil }, "column doc has 3 NULLs instead of 2", "column doc: it is NULL"},
		{"a NULL of what only the server knows", func(v []any) { v[7] = nil }, "column address has 3 NULLs instead of 2",
			"column address: it is NULL"},
		{"a float that was rounded", func(v []any) { v[5] = int64(math.Float64bits(1.0625001)) }, "", "column ratio: 1.0625001 instead of 1.0625"},
		{"another UUID", func(v []any) { v[6].([]byte)[15]++ }, "", "column ref at byte 15: 0x21 instead of 0x20"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := raggedRun()
			e.Dataset = typed{}
			table := load(e)
			c.damage(table.rows[place].values)
			r, err := run(t.Context(), table, Full, e, 0)
			require.NoError(t, err)
			require.Equal(t, c.batch+c.row == "", r.OK, "%+v", r)
			require.Equal(t, []string{"address (inet)"}, r.NotCompared)
			if c.batch != "" {
				require.Equal(t, c.batch, r.BadBatches[0].Detail)
			}
			if c.row != "" {
				require.Equal(t, "id = 1047 differs in "+c.row, r.BadRows[0].String())
			}
		})
	}
}

// A value where a NULL was sent.
func TestFullMissesANull(t *testing.T) {
	e := raggedRun()
	e.Dataset = typed{}
	table := load(e)
	table.rows[48].values[1] = int64(0) // as the sum has it
	r, err := run(t.Context(), table, Full, e, 0)
	require.NoError(t, err)
	require.Equal(t, "column n has 2 NULLs instead of 3", r.BadBatches[0].Detail)
	require.Equal(t, "id = 1048 differs in column n: it is not NULL", r.BadRows[0].String())
}

// Numbers that are too long to be compared by value stay as they are.
func TestCanonicalJSON(t *testing.T) {
	for _, same := range [][]string{
		{`{"a":1,"b":[]}`, ` { "b" : [ ] , "a" : 1.0 } `, `{"b":[],"a":100e-2}`},
		{`12345678901234567890`, `12345678901234567890.000`, `1.2345678901234567890e19`},
		{`"\u00e4<"`, `"ä<"`}, {`0`, `-0`, `0.0e5`}, {`null`, ` null`},
	} {
		for _, text := range same {
			require.Equal(t, string(canonicalJSON([]byte(same[0]))), string(canonicalJSON([]byte(text))))
		}
	}
	for _, text := range []string{`1e999999999999`, `1e-999999999`, `{"a":`, `1 2`, ``, `12345678901234567891`} {
		require.Equal(t, text, string(canonicalJSON([]byte(text))))
	}
}
