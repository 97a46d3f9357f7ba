package results

import (
	"slices"
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
		{[]float64{1, -1, -1, -1}, []float64{-1, 1, 1, 1}, 0.4857142857142857},
		{[]float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, 1},
		{[]float64{1, 2, 3}, []float64{4, 5, 6}, 0.1},
		{[]float64{1, 1, 1, 1, 0}, []float64{1, 1, 1, 1, 1, 0}, 1}, // twice its tail is more than 1
	} {
		require.InDelta(t, c.p, significance(c.a, c.b), 1e-12)
		require.InDelta(t, c.p, significance(c.b, c.a), 1e-12, "the sides are alike")
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

func TestApart(t *testing.T) {
	of := func(values ...float64) Sample {
		return Sample{N: len(values), Values: values, Low: slices.Min(values), High: slices.Max(values)}
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
