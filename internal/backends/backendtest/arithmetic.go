package backendtest

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Proven is what the proof of arrival asks of a table.
type Proven interface {
	loader.Counter
	loader.Fetcher
}

// far is the first row number of Arithmetic's second half. The squares of such offsets fit 64 bits, and their sum does not.
const far, half = 1<<31 - 200, 150

// keys are specs whose rows have a key of a kind that no built-in dataset has.
var keys = map[string]string{
	"uuids":   "{type: text(36), uuid: v4}",
	"native":  "{type: uuid, uuid: v4}",
	"times":   "{type: text, uuid: v7}",
	"scatter": "{type: bigint, scatter: {start: 5, stride: 1000}}",
}

func datasetOf(t *testing.T, name string) dataset.Dataset {
	key, own := keys[name]
	if !own {
		o := dataset.Options{Seed: 7}
		if name == "documents" {
			o.PayloadKind, o.PayloadBytes = dataset.Text, 100
		}
		d, err := dataset.New(name, o)
		require.NoError(t, err)
		return d
	}

	text := "version: 1\ncolumns:\n  k: " + key + "\n  n: {type: text(40), text: {length: 3..40}}\n"
	s, err := dataset.ParseSpec(name+".yaml", []byte(text), nil)
	require.NoError(t, err)
	d, err := s.Compile(7)
	require.NoError(t, err)
	return d
}

// Arithmetic checks that a server's answers to the proof of arrival agree with what is computed here: for keys of one
// number, of two, of digits, of microseconds, and those that are in no order. also names those for databases with
// a type for them: native. fill makes a table, inserts the encoded rows of a format, and returns
// what asks about them.
func Arithmetic(t *testing.T, f batch.Format, fill func(t *testing.T, d dataset.Dataset, rows ...*batch.Batch) Proven, also ...string) {
	mix := loader.Mix{A: loader.MaxMixed - 1, B: loader.MaxMixed - 2} // the largest products
	for _, name := range append([]string{"documents", "lineitem", "journal", "httplogs", "uuids", "times", "scatter"}, also...) {
		t.Run(name, func(t *testing.T) {
			d := datasetOf(t, name)
			run := rand.Text() // Databend repeats its answer to a batch that it has seen lately, and loads nothing
			rows := []*batch.Batch{
				Batch(t, d, f, batch.ID{Run: run}, 0, half), Batch(t, d, f, batch.ID{Run: run, Number: 1}, far, half),
			}
			table := fill(t, d, rows...)
			for _, g := range []loader.Grouping{
				{KeyRange: loader.KeyRange{First: 3, Last: far + half}, Size: 10, Mix: &mix, Measures: true},
				{KeyRange: loader.KeyRange{First: 0, Last: far + half}, Size: loader.MaxMixed, Mix: &mix},
				{KeyRange: loader.KeyRange{First: 0, Last: far + 9}, Size: 1 << 32},
			} {
				t.Run(fmt.Sprint("buckets of ", g.Size), func(t *testing.T) { checkBuckets(t, d, table, g) })
			}
			numbers := []int64{0, 77, half - 1, far, far + half - 1, half} // there is no such last one
			found := 0
			require.NoError(t, table.Fetch(t.Context(), numbers, func(number int64, values []any) error {
				found++
				assert.Equal(t, Row(d, number), values)
				return nil
			}))
			assert.Equal(t, len(numbers)-1, found)
		})
	}
}

func checkBuckets(t *testing.T, d dataset.Dataset, table Proven, g loader.Grouping) {
	want := make(map[int64]loader.Bucket)
	for i := range int64(2 * half) {
		number := i%half + i/half*far
		if number < g.First || number > g.Last {
			continue
		}
		offset := (number - g.First) % g.Size
		at := (number - g.First) / g.Size
		b, known := want[at]
		if !known {
			b = loader.Bucket{Number: at, Min: offset, Sum: new(big.Int), Squares: new(big.Int)}
			if g.Mix != nil {
				b.Mix = new(big.Int)
			}
		}
		b.Rows++
		b.Max = offset
		b.Sum.Add(b.Sum, big.NewInt(offset))
		b.Squares.Add(b.Squares, new(big.Int).Mul(big.NewInt(offset), big.NewInt(offset)))
		if g.Mix != nil {
			b.Mix.Add(b.Mix, big.NewInt(g.Mix.Of(offset)))
		}
		row := Row(d, number)
		for k, m := range d.Schema().Measures() {
			if g.Measures && !known {
				b.Measures = append(b.Measures, new(big.Int))
			}
			if g.Measures {
				b.Measures[k].Add(b.Measures[k], big.NewInt(m.Value(row[m.Column])))
			}
		}
		want[at] = b
	}
	got := make(map[int64]loader.Bucket)
	require.NoError(t, table.Count(t.Context(), g, func(b loader.Bucket) error { got[b.Number] = b; return nil }))
	assert.Equal(t, want, got)
}

// Parts checks that the parts of a range hold each of its rows once, and returns them.
func Parts(t *testing.T, c loader.Counter, r loader.KeyRange, n int) []string {
	t.Helper()
	parts, err := c.Parts(t.Context(), r, n)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(parts), n)
	mix := loader.NewMix(1)
	size := r.Last - r.First + 1
	all := loader.Bucket{Sum: new(big.Int), Squares: new(big.Int), Mix: new(big.Int)}
	for _, part := range parts {
		g := loader.Grouping{KeyRange: r, Size: size, Part: part, Mix: &mix}
		require.NoError(t, c.Count(t.Context(), g, func(b loader.Bucket) error { all.Add(b); return nil }), part)
	}
	assert.Equal(t, size, all.Rows)
	assert.Equal(t, mix.Sum(size), all.Mix)
	return parts
}
