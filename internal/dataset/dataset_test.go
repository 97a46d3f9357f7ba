package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

func newDataset(t testing.TB, name string, o Options) Dataset {
	t.Helper()
	d, err := New(name, o)
	require.NoError(t, err)
	return d
}

// forEach runs f with every dataset.
func forEach[T testing.TB](t T, run func(name string, f func(T)) bool, f func(t T, d Dataset)) {
	for _, name := range Names() {
		run(name, func(t T) { f(t, newDataset(t, name, Options{Seed: 5})) })
	}
}

// rowOf returns one row, made by itself.
func rowOf(d Dataset, row int64) []any {
	b := rows.NewBlock(d.Schema())
	Row(b, d, 0, row, 0)
	return values(b, 0)
}

func values(b *rows.Block, i int) []any {
	var v []any
	for c := range b.Columns {
		switch of := &b.Columns[c]; {
		case of.IsNull(i):
			v = append(v, nil)
		case of.Type.InBytes():
			v = append(v, string(of.UUID(i)))
		case of.Type.Variable():
			v = append(v, string(of.Value(i)))
		default:
			v = append(v, of.Ints[i])
		}
	}
	return v
}

// TestGoldenRows pins the values: a change makes every recorded run unverifiable. The file's lines have a dataset, a seed,
// a row number and the columns. They come from programs in Python, with its integers of any size and its calendar.
func TestGoldenRows(t *testing.T) {
	golden, err := os.ReadFile("testdata/rows.golden")
	require.NoError(t, err)
	for line := range strings.Lines(string(golden)) {
		want := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		seed, err := strconv.ParseUint(want[1], 10, 64)
		require.NoError(t, err)
		row, err := strconv.ParseInt(want[2], 10, 64)
		require.NoError(t, err)
		var got []string
		for _, v := range rowOf(newDataset(t, want[0], Options{Seed: seed}), row) {
			got = append(got, fmt.Sprint(v))
		}
		assert.Equal(t, want[3:], got, "%s, seed %d, row %d", want[0], seed, row)
	}
	for _, c := range []struct { // from the same programs
		o    Options
		row  int64
		want string
	}{
		{Options{Seed: 1, PayloadBytes: 24}, 1, "f4c4dcb3bef478203b86a62dc5ad83149cf6f8b1f41da33c"},
		{Options{Seed: 1, PayloadBytes: 24}, math.MaxInt64, "3f241e5a03fd1fda46ed331993f4592a3c4eb16618e6c3ba"},
		{Options{Seed: 0, PayloadBytes: 13}, 7, "b8891136b7dd67c18a0be5d0cd"},
		{Options{Seed: math.MaxUint64, PayloadBytes: 1}, 1 << 40, "89"},
		{Options{Seed: 42, PayloadBytes: 13, PayloadKind: Text}, 1 << 40, hex.EncodeToString([]byte("z^mgQPZcFOb1*"))},
	} {
		row := rowOf(newDataset(t, "documents", c.o), c.row)
		assert.Equal(t, c.want, hex.EncodeToString([]byte(row[1].(string))), "%+v, row %d", c.o, c.row)
	}
}

// TestDigests pins the columns, and what the golden rows are too few for: the ranges of values, how columns depend on each
// other and how often each value is drawn. The tables of the columns are in the golden files of the back-ends.
func TestDigests(t *testing.T) {
	digests := map[string]string{
		"documents": "ae10a77de37885ce",
		"people":    "8f6f60e73de7e685",
		"journal":   "ee6d5a4fb09b711d",
		"pairs":     "8cb624c0ece45143",
		"lineitem":  "450f42b84e51a93f",
		"httplogs":  "8d4f7c2b43eca936",
	}
	forEach(t, t.Run, func(t *testing.T, d Dataset) {
		sum, b := sha256.New(), rows.NewBlock(d.Schema())
		for _, c := range d.Schema().Columns {
			fmt.Fprintln(sum, c.Name, c.Type, c.MaxBytes, c.Declared, c.Digits, c.Scale, c.Derived, c.Plain, c.JSON)
		}
		for _, at := range []struct {
			first int64
			n     int
		}{{0, 20_000}, {1 << 40, 1000}, {d.Schema().MaxNumber() - 999, 1000}} {
			d.Fill(b, at.first, at.n)
			d.Derive(b, at.first)
			for _, c := range b.Columns {
				_ = binary.Write(sum, binary.LittleEndian, c.Ints) // a hash never fails
				_ = binary.Write(sum, binary.LittleEndian, c.Ends)
				sum.Write(c.Data)
			}
		}
		require.Equal(t, digests[d.Schema().Dataset], hex.EncodeToString(sum.Sum(nil)[:8]))
	})
}

func TestRowsDoNotDependOnTheRequest(t *testing.T) {
	check := func(t *testing.T, d Dataset) {
		for _, first := range []int64{0, 1980, 86_399_990, 99_999_975, 1 << 40, d.Schema().MaxNumber() - 49} {
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
	}
	forEach(t, t.Run, check)
	for _, size := range []int{1, 7, 8, 9, 513} { // of words that the rows share, or do not fill
		t.Run(fmt.Sprintf("payload of %d", size), func(t *testing.T) {
			check(t, newDataset(t, "documents", Options{Seed: 3, PayloadBytes: size}))
		})
	}
}

// Drawn columns may be those of another row, derived ones never.
func TestDerivedAndDrawnApart(t *testing.T) {
	forEach(t, t.Run, func(t *testing.T, d Dataset) {
		b := rows.NewBlock(d.Schema())
		Row(b, d, 1<<40, 12_345, 1000)
		drawn, derived := rowOf(d, 345), rowOf(d, 1<<40+12_345)
		for i, c := range d.Schema().Columns {
			want := drawn[i]
			if c.Derived {
				want = derived[i]
			}
			assert.Equal(t, want, values(b, 0)[i], "%s", c.Name)
		}

		// As the ring stamps: nothing but the derived columns is in the block.
		b.Reset(1)
		d.Derive(b, 1<<40+12_345)
		for i, c := range d.Schema().Columns {
			switch v := &b.Columns[i]; {
			case c.Derived && c.Type.Variable():
				assert.Equal(t, derived[i], string(v.Value(0)), "%s", c.Name)
			case c.Derived:
				assert.Equal(t, derived[i], v.Ints[0], "%s", c.Name)
			}
		}
	})
}

// plainBreakers are the bytes that rows.Column.Plain excludes.
const plainBreakers = "\x00\x01\x02\t\n\r\x1A\"',\\"

// Encoders, databases and verification rely on the promises of a schema without looking.
func TestRowsKeepThePromisesOfTheirSchema(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	forEach(t, t.Run, func(t *testing.T, d Dataset) {
		s := d.Schema()
		seen := map[string]bool{}
		for range 500 {
			row := random.Int64N(s.MaxNumber()) >> random.IntN(32)
			all := rowOf(d, row)
			drawn := ""
			for i, c := range s.Columns {
				text, variable := all[i].(string)
				if !c.Derived {
					drawn += fmt.Sprint(all[i])
				}
				if !variable {
					continue
				}
				require.LessOrEqual(t, len(text), c.MaxBytes, "%s", c.Name)
				require.True(t, !c.Derived || len(text) == c.MaxBytes, "%s", c.Name)
				require.True(t, c.Type == rows.Bytes || utf8.ValidString(text), "%s", c.Name)
				require.False(t, c.Plain && strings.ContainsAny(text, plainBreakers), "%s is %q", c.Name, text)
				require.False(t, c.JSON && !json.Valid([]byte(text)), "%s", c.Name)
				require.Equal(t, !c.JSON, c.Plain, "%s", c.Name)
			}
			require.False(t, s.MaxRowBytes() > 100 && seen[drawn], "row %d repeats", row)
			seen[drawn] = true
			number := int64(0)
			for _, term := range s.Number {
				v, is := all[term.Column].(int64)
				if !is {
					v, _ = strconv.ParseInt(all[term.Column].(string), 10, 64)
				}
				number += (v - term.Minus) * term.Times
			}
			require.Equal(t, row, number)
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"docs", Options{}, `dataset "docs" does not exist; available: documents, people, journal, pairs, lineitem, httplogs`},
		{"documents", Options{PayloadBytes: -1}, "payload of -1 bytes: a row's payload has 1 to 1048576 bytes"},
		{"documents", Options{PayloadBytes: 1<<20 + 1}, "payload of 1048577 bytes: a row's payload has 1 to 1048576 bytes"},
		{"documents", Options{PayloadKind: "json"}, `payload kind "json" does not exist; valid are bytes and text`},
	} {
		_, err := New(c.name, c.o)
		assert.EqualError(t, err, c.want)
	}
	for _, name := range Names() {
		newDataset(t, name, Options{PayloadBytes: DefaultPayloadBytes, PayloadKind: Bytes}) // as the command line has them
		if name == documentsName {
			continue
		}
		_, err := New(name, Options{PayloadBytes: 100})
		assert.EqualError(t, err, "dataset "+name+" has no payload of 100 bytes: the lengths of its columns are fixed")
		_, err = New(name, Options{PayloadKind: Text})
		assert.EqualError(t, err, "dataset "+name+" has no payload of kind text: its columns are fixed, and none has raw bytes")
	}
}

func TestFillAllocatesNothing(t *testing.T) {
	forEach(t, t.Run, func(t *testing.T, d Dataset) {
		b := rows.NewBlock(d.Schema())
		assert.Zero(t, testing.AllocsPerRun(10, func() {
			d.Fill(b, 0, 100)
			d.Derive(b, 0)
		}))
	})
}

// TestMeanRowBytes measures the constants from which sizes become numbers of rows.
func TestMeanRowBytes(t *testing.T) {
	for _, name := range Names() {
		for _, seed := range []uint64{1, math.MaxUint64} {
			d := newDataset(t, name, Options{Seed: seed})
			b := rows.NewBlock(d.Schema())
			d.Fill(b, 0, 5000)
			d.Derive(b, 0)
			assert.InEpsilon(t, float64(b.PayloadBytes())/5000, d.Schema().RowBytes(), 0.01, "%s, seed %d", name, seed)
			assert.LessOrEqual(t, d.Schema().RowBytes(), d.Schema().MaxRowBytes(), name)
		}
	}
}

// BenchmarkFill fills pieces of the size that the ring does.
func BenchmarkFill(b *testing.B) {
	forEach(b, b.Run, func(b *testing.B, d Dataset) {
		n := int64(128<<10) / d.Schema().MaxRowBytes()
		block := rows.NewBlock(d.Schema())
		b.SetBytes(n * d.Schema().MaxRowBytes())
		b.ReportAllocs()
		for b.Loop() {
			d.Fill(block, 0, int(n))
			d.Derive(block, 0)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
	})
}
