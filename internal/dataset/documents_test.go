package dataset

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

func documentsOf(t testing.TB, o Options) Dataset {
	t.Helper()
	d, err := New("documents", o)
	require.NoError(t, err)
	return d
}

// payload returns the payload of one row, filled by itself.
func payload(d Dataset, row int64) []byte {
	b := rows.NewBlock(d.Schema())
	d.Fill(b, row, 1)
	return b.Columns[1].Value(0)
}

// TestDocumentsGolden pins the bytes: a change here makes every recorded run unverifiable. The wanted ones come from a
// program of its own, 20 lines of Python with whole numbers of any size.
func TestDocumentsGolden(t *testing.T) {
	for _, c := range []struct {
		o    Options
		row  int64
		want string
	}{
		{Options{Seed: 1, PayloadBytes: 24}, 0, "c2b3a7623c6830d26643eb4167fbe9b67667fdea4c57e3ca"},
		{Options{Seed: 1, PayloadBytes: 24}, 1, "f4c4dcb3bef478203b86a62dc5ad83149cf6f8b1f41da33c"},
		{Options{Seed: 1, PayloadBytes: 24}, math.MaxInt64, "3f241e5a03fd1fda46ed331993f4592a3c4eb16618e6c3ba"},
		{Options{Seed: 0, PayloadBytes: 13}, 7, "b8891136b7dd67c18a0be5d0cd"},
		{Options{Seed: math.MaxUint64, PayloadBytes: 1}, 1 << 40, "89"},
		{Options{Seed: 1, PayloadBytes: 24, PayloadKind: Text}, 0, `hN{N.GUiERFmNiAHKL+|+7j7`},
		{Options{Seed: 42, PayloadBytes: 13, PayloadKind: Text}, 1 << 40, `z^mgQPZcFOb1*`},
	} {
		got := payload(documentsOf(t, c.o), c.row)
		if c.o.PayloadKind == Text {
			assert.Equal(t, c.want, string(got), "%+v row %d", c.o, c.row)
		} else {
			assert.Equal(t, c.want, hex.EncodeToString(got), "%+v row %d", c.o, c.row)
		}
	}
}

func TestDocumentsSchema(t *testing.T) {
	assert.Equal(t, rows.Schema{
		Dataset: "documents",
		Columns: []rows.Column{
			{Name: "document_id", Type: rows.Int64, Derived: true},
			{Name: "payload", Type: rows.Bytes, MaxBytes: 512, Plain: true},
		},
		Number: []rows.Term{{Column: 0, Minus: 0, Times: 1}},
	}, documentsOf(t, Options{}).Schema())
	assert.Equal(t, rows.Text, documentsOf(t, Options{PayloadKind: Text}).Schema().Columns[1].Type)
}

func TestDocumentsDoNotDependOnWhoAsks(t *testing.T) {
	for _, size := range []int{1, 7, 8, 9, 64, 513} {
		d := documentsOf(t, Options{Seed: 3, PayloadBytes: size})
		all, part := rows.NewBlock(d.Schema()), rows.NewBlock(d.Schema())
		d.Fill(all, 1000, 50)
		require.Len(t, all.Columns[1].Data, 50*size)
		for _, from := range []int{49, 0, 17, 3, 17} { // backwards and twice: no state is kept
			for _, n := range []int{1, 2, 50 - from} {
				n = min(n, 50-from)
				d.Fill(part, 1000+int64(from), n)
				require.Equal(t, n, part.Rows)
				require.Len(t, part.Columns[1].Ends, n)
				for i := range n {
					require.Equal(t, all.Columns[1].Value(from+i), part.Columns[1].Value(i), "%d bytes, row %d", size, from+i)
				}
			}
		}
	}
}

func TestDocumentsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, seed := range []uint64{0, 1, 2, math.MaxUint64} {
		d := documentsOf(t, Options{Seed: seed, PayloadBytes: 16})
		for row := range int64(1000) {
			seen[string(payload(d, row))] = true
		}
	}
	assert.Len(t, seen, 4*1000)
}

// TestDocumentsArePlain keeps the promise of rows.Column.Plain, on which encoders rely without looking.
func TestDocumentsArePlain(t *testing.T) {
	const special = "\x00\x01\x02\t\n\r\x1A\"',\\"
	for kind, symbols := range map[Kind]int{Bytes: 256 - len(special), Text: 94 - 4} {
		p := payload(documentsOf(t, Options{PayloadBytes: 1 << 20, PayloadKind: kind}), 0)
		assert.False(t, bytes.ContainsAny(p, special), "%s", kind)

		var count [256]int
		for _, c := range p {
			count[c]++
		}
		used, chi2, each := 0, 0.0, float64(len(p))/float64(symbols)
		for _, n := range count {
			if n > 0 {
				used++
				chi2 += (float64(n) - each) * (float64(n) - each) / each
			}
		}
		assert.Equal(t, symbols, used, "%s", kind)
		// χ² has a mean of k = symbols−1 and a deviation of √2k; five of those are chance once in millions of seeds.
		k := float64(symbols - 1)
		assert.InDelta(t, k, chi2, 5*math.Sqrt(2*k), "%s", kind)
		if kind == Text {
			assert.True(t, utf8.Valid(p))
			assert.False(t, bytes.ContainsRune(p, ' '))
		}
	}
}

func TestEachPlaceOfAWordIsUniform(t *testing.T) {
	p := payload(documentsOf(t, Options{PayloadBytes: 1 << 20}), 1)
	var count [8][256]int
	for i, c := range p {
		count[i%8][c]++
	}
	each := float64(len(p)) / 8 / 245
	for place := range count {
		chi2 := 0.0
		for c, n := range count[place] {
			if !bytes.ContainsRune([]byte("\x00\x01\x02\t\n\r\x1A\"',\\"), rune(c)) {
				chi2 += (float64(n) - each) * (float64(n) - each) / each
			}
		}
		assert.InDelta(t, 244, chi2, 5*math.Sqrt(2*244), "place %d", place)
	}
}

func TestDeriveNumbersRows(t *testing.T) {
	d := documentsOf(t, Options{PayloadBytes: 4})
	b := rows.NewBlock(d.Schema())
	d.Fill(b, 5, 3)
	before := bytes.Clone(b.Columns[1].Data)
	d.Derive(b, 1<<40)
	assert.Equal(t, []int64{1 << 40, 1<<40 + 1, 1<<40 + 2}, b.Columns[0].Ints)
	assert.Equal(t, before, b.Columns[1].Data)
}

func TestRow(t *testing.T) {
	d := documentsOf(t, Options{Seed: 9, PayloadBytes: 40})
	b := rows.NewBlock(d.Schema())
	for _, c := range []struct{ firstKey, row, distinct, drawn int64 }{
		{0, 12, 0, 12}, {100, 12, 0, 12}, {100, 12, 5, 2}, {7, 5, 5, 0}, {7, 4, 5, 4},
	} {
		Row(b, d, c.firstKey, c.row, c.distinct)
		assert.Equal(t, 1, b.Rows)
		assert.Equal(t, c.firstKey+c.row, b.Columns[0].Ints[0])
		assert.Equal(t, payload(d, c.drawn), b.Columns[1].Value(0))
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"docs", Options{}, `dataset "docs" does not exist; there is: documents, people, journal, pairs, lineitem, httplogs`},
		{"documents", Options{PayloadBytes: -1}, "payload of -1 bytes: a row's payload has 1 to 1048576 bytes"},
		{"documents", Options{PayloadBytes: 1<<20 + 1}, "payload of 1048577 bytes: a row's payload has 1 to 1048576 bytes"},
		{"documents", Options{PayloadKind: "json"}, `payload kind "json" does not exist; valid are bytes and text`},
	} {
		_, err := New(c.name, c.o)
		assert.EqualError(t, err, c.want)
	}
	for _, size := range []int{1, 1 << 20} {
		assert.Len(t, payload(documentsOf(t, Options{PayloadBytes: size}), 0), size)
	}
	assert.Equal(t, []string{"documents", "people", "journal", "pairs", "lineitem", "httplogs"}, Names())
}

func TestCompressionRatio(t *testing.T) {
	for _, c := range []struct {
		o         Options
		low, high float64
	}{
		{Options{}, 0.99, 8 / math.Log2(245)},
		{Options{PayloadBytes: 1}, 0.99, 8 / math.Log2(245)},
		{Options{PayloadKind: Text}, 1.2, 8 / math.Log2(90)},
	} {
		ratio, err := CompressionRatio(documentsOf(t, c.o), 1<<20)
		require.NoError(t, err)
		t.Logf("%+v: %.4f", c.o, ratio)
		assert.GreaterOrEqual(t, ratio, c.low, "%+v", c.o)
		assert.LessOrEqual(t, ratio, c.high, "%+v", c.o)
	}
}

// BenchmarkFillBySize is BenchmarkFill for other lengths of the payload.
func BenchmarkFillBySize(b *testing.B) {
	for _, size := range []int{16, 512, 65536} {
		d := documentsOf(b, Options{PayloadBytes: size})
		n := 128 << 10 / size
		block := rows.NewBlock(d.Schema())
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			b.SetBytes(int64(n * size))
			b.ReportAllocs()
			for b.Loop() {
				d.Fill(block, 0, n)
				d.Derive(block, 0)
			}
		})
	}
}
