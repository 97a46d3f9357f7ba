package runlog_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/runlog"
)

func of(numbers map[int64]bool) *runlog.Done {
	d := new(runlog.Done)
	for n := range numbers {
		d.Add(n)
	}
	return d
}

// Done behaves like a map of numbers.
func TestDone(t *testing.T) {
	require.Zero(t, new(runlog.Done).Len())
	require.EqualValues(t, -1, new(runlog.Done).Last())
	for seed := range uint64(200) {
		dice := rand.New(rand.NewPCG(seed, 0))
		sets := [2]map[int64]bool{{}, {}}
		for _, set := range sets {
			for range dice.IntN(100) {
				set[dice.Int64N(300)] = true
			}
		}
		a, b := of(sets[0]), of(sets[1])
		last := int64(-1)
		if len(sets[0]) > 0 {
			last = slices.Max(slices.Collect(maps.Keys(sets[0])))
		}
		require.Equal(t, last, a.Last())
		require.EqualValues(t, len(sets[0]), a.Len())

		left := a.Without(b)
		both := of(sets[0])
		both.Merge(b)
		for n := range int64(400) {
			require.Equal(t, sets[0][n], a.Has(n))
			require.Equal(t, sets[0][n] && !sets[1][n], left.Has(n))
			require.Equal(t, sets[0][n] || sets[1][n], both.Has(n))
		}
		onlyB := b.Without(a)
		require.Equal(t, a.Len()+onlyB.Len(), both.Len())
		for n := range sets[0] {
			require.False(t, a.Add(n), "it was there")
		}
	}
}
