package results

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The wanted values are those that benchstat prints.
func TestSignificance(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		p    float64
	}{
		{[]float64{-1, -2, -3, -4}, []float64{1, 2, 3, 4}, 0.02857142857142857},
		{[]float64{-1, -1, -1, -1}, []float64{1, 1, 1, 1}, 0.02857142857142857},
		{[]float64{1, -1, -1, -1}, []float64{-1, 1, 1, 1}, 0.4857142857142857},
		{[]float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, 1},
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 0.1},
		{[]float64{1, 2, 3, 4, 5}, []float64{6, 7, 8, 9, 10}, 2.0 / 252},
		{[]float64{1, 3, 5, 7, 9}, []float64{2, 4, 6, 8}, 1},
		{[]float64{1, 1, 1, 1, 0}, []float64{1, 1, 1, 1, 1, 0}, 1}, // twice its tail is more than 1
	} {
		require.InDelta(t, c.p, significance(c.a, c.b), 1e-12)
		require.InDelta(t, c.p, significance(c.b, c.a), 1e-12, "the sides are alike")
	}
}

// Of samples of the same thing a share of p lies below p, or a little less: the ranks are whole numbers.
func TestSignificanceIsCalibrated(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const samples = 2000
	below := map[float64]int{0.01: 0, 0.05: 0, 0.2: 0}
	for range samples {
		p := significance(noisy(random, 100, 0.03, 6), noisy(random, 100, 0.03, 6))
		for limit := range below {
			if p < limit {
				below[limit]++
			}
		}
	}
	for limit, n := range below {
		share := float64(n) / samples
		require.LessOrEqual(t, share, limit*1.5, "p < %v", limit)
		require.GreaterOrEqual(t, share, limit*0.4, "p < %v", limit)
	}
}

func TestCanTell(t *testing.T) {
	for _, c := range []struct {
		n, m  int
		alpha float64
		can   bool
	}{
		{0, 0, warningAlpha, false}, {1, 9, warningAlpha, false}, {3, 3, warningAlpha, false}, {4, 4, warningAlpha, true},
		{4, 4, compareAlpha, false}, {5, 5, compareAlpha, true}, {4, 8, compareAlpha, true}, {1000, 1000, compareAlpha, true},
	} {
		require.Equal(t, c.can, canTell(c.n, c.m, c.alpha), "%d and %d at %v", c.n, c.m, c.alpha)
	}
}

func noisy(random *rand.Rand, around, noise float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = around * (1 + noise*random.NormFloat64())
	}
	return values
}

func TestApart(t *testing.T) {
	of := func(values ...float64) Sample {
		pushes := make([]float64, len(values))
		copy(pushes, values)
		s := Sample{N: len(values), Values: pushes}
		if s.N > 0 {
			s.Low, s.High = min(values[0], values[s.N-1]), max(values[0], values[s.N-1])
		}
		return s
	}
	for _, c := range []struct {
		a, b          Sample
		differ, known bool
	}{
		{of(1), of(2), false, false},
		{of(1, 2), of(3), false, false},
		{of(1, 2), of(3, 4), true, true},
		{of(1, 3), of(2, 4), false, true},
		{of(1, 2, 3, 4), of(5, 6, 7, 8), true, true},
		{of(1, 3, 5, 7), of(2, 4, 6, 8), false, true},
	} {
		differ, known := apart(c.a, c.b)
		require.Equal(t, c.differ, differ, "%v %v", c.a.Values, c.b.Values)
		require.Equal(t, c.known, known, "%v %v", c.a.Values, c.b.Values)
	}
}
