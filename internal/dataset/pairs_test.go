package dataset

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

func seeded(t testing.TB, name string, seed uint64) Dataset {
	t.Helper()
	d, err := New(name, Options{Seed: seed})
	require.NoError(t, err)
	return d
}

// TestPairsGolden pins the values: a change here makes every recorded run unverifiable. The wanted ones come from a
// program of its own, a few lines of Python with whole numbers of any size.
func TestPairsGolden(t *testing.T) {
	for _, c := range []struct {
		seed      uint64
		row, r, s int64
	}{
		{1, 0, 749_748, 2}, {1, 1, 372_393, 4}, {math.MaxUint64, 7_654_321, 75_980, 4}, {42, math.MaxInt64, 892_474, 6},
	} {
		assert.Equal(t, []any{c.row, c.r, c.s}, rowOf(seeded(t, "pairs", c.seed), c.row))
	}
}

func TestPairsAreEven(t *testing.T) {
	const n = 100_000
	b := rows.NewBlock(seeded(t, "pairs", 3).Schema())
	seeded(t, "pairs", 3).Fill(b, 0, n)
	var tens, ones [10]int
	for i := range n {
		r, s := b.Columns[1].Ints[i], b.Columns[2].Ints[i]
		require.True(t, 0 <= r && r < 1_000_000 && 0 <= s && s < 10)
		tens[r/100_000]++
		ones[s]++
	}
	for k := range 10 {
		assert.InDelta(t, n/10, tens[k], 5*math.Sqrt(n/10))
		assert.InDelta(t, n/10, ones[k], 5*math.Sqrt(n/10))
	}
}
