package dataset

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

// What follows holds of every dataset, so each is tested as soon as it has a name.

func forEach[T testing.TB](t T, run func(name string, f func(T)) bool, f func(t T, d Dataset)) {
	for _, name := range Names() {
		d, err := New(name, Options{Seed: 5})
		require.NoError(t, err)
		run(name, func(t T) { f(t, d) })
	}
}

// rowOf is one row, made by itself.
func rowOf(d Dataset, row int64) []any {
	b := rows.NewBlock(d.Schema())
	Row(b, d, 0, row, 0)
	return values(b, 0)
}

func values(b *rows.Block, i int) []any {
	var v []any
	for c := range b.Columns {
		if b.Columns[c].Type.Variable() {
			v = append(v, string(b.Columns[c].Value(i)))
		} else {
			v = append(v, b.Columns[c].Ints[i])
		}
	}
	return v
}

func TestRowsDoNotDependOnWhoAsks(t *testing.T) {
	forEach(t, t.Run, func(t *testing.T, d Dataset) {
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
	})
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

		// As the feed stamps: nothing but the derived columns is in the block.
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

// A payload has no effect where the columns are given, so whoever asks for one is told.
func TestGivenColumnsRefuseAPayload(t *testing.T) {
	for _, name := range Names() {
		_, err := New(name, Options{PayloadBytes: DefaultPayloadBytes, PayloadKind: Bytes}) // as the command line has them
		require.NoError(t, err)
		if name == documentsName {
			continue
		}
		_, err = New(name, Options{PayloadBytes: 100})
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

// BenchmarkFill fills pieces of the size that the feed does; BenchmarkDerive is what it does for a stamp.
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
		perRow(b, n)
	})
}

func BenchmarkDerive(b *testing.B) {
	forEach(b, b.Run, func(b *testing.B, d Dataset) {
		block := rows.NewBlock(d.Schema())
		b.ReportAllocs()
		for b.Loop() {
			block.Reset(4096)
			d.Derive(block, 1_000_000_000)
		}
		perRow(b, 4096)
	})
}

func perRow(b *testing.B, n int64) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/row")
}

// TestMeanRowBytes measures the constants that sizes of runs are counted by.
func TestMeanRowBytes(t *testing.T) {
	for _, name := range Names() {
		for _, seed := range []uint64{1, math.MaxUint64} {
			const n = 5000
			d := seeded(t, name, seed)
			s, sum := d.Schema(), int64(0)
			b := rows.NewBlock(s)
			d.Fill(b, 0, n)
			d.Derive(b, 0)
			for i, c := range s.Columns {
				for row := range n {
					if c.Type.Variable() {
						sum += int64(len(b.Columns[i].Value(row)))
					} else {
						sum += c.Type.Size()
					}
				}
			}
			assert.InEpsilon(t, float64(sum)/n, s.RowBytes(), 0.01, "%s, seed %d", name, seed)
			assert.LessOrEqual(t, s.RowBytes(), s.MaxRowBytes(), name)
		}
	}
}
