package results

import (
	"math"
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
		level float64
		can   bool
	}{
		{0, 0, alpha, false}, {1, 9, alpha, false}, {3, 3, alpha, false}, {4, 4, alpha, true}, {3, 5, alpha, true},
		{2, 7, alpha, false}, {2, 8, alpha, true}, {1000, 1000, alpha, true},
		{4, 4, alphaCompare, false}, {5, 5, alphaCompare, true}, {4, 6, alphaCompare, true}, {3, 8, alphaCompare, false},
	} {
		require.Equal(t, c.can, canTell(c.n, c.m, c.level), "%d and %d at %v", c.n, c.m, c.level)
	}
}

// The ends are the changes that the test itself begins to tell from a sample's. Those of the first are of the tables of
// Mann and Whitney: at 1 % 5 and 5 values decide if all of the 25 pairs say the same.
func TestSpan(t *testing.T) {
	a, b := []float64{100, 101, 103, 106, 110}, []float64{90, 99, 104, 111, 95}
	changes := []float64{}
	for _, x := range a {
		for _, y := range b {
			changes = append(changes, y/x-1)
		}
	}
	slices.Sort(changes)
	require.Equal(t, span{changes[0], changes[24]}, spanOf(a, b))

	for _, n := range []int{5, 6, 8, 20, 60} {
		scaled := func(change float64) (values []float64) {
			for i := range n {
				values = append(values, (100+float64(i*i%17)+float64(i)/1000)*(1+change))
			}
			return values
		}
		differs := func(change float64) bool { return significance(scaled(change), scaled(-0.07)) < alphaCompare }
		s := spanOf(scaled(0), scaled(-0.07))
		require.True(t, differs(s.low-1e-9) && differs(s.high+1e-9), n)
		require.False(t, differs(s.low+1e-9) || differs(s.high-1e-9), n)
	}

	require.Equal(t, span{-1, math.Inf(1)}, spanOf(a[:4], b[:4]), "four and four never tell")
	require.Equal(t, span{}, spanOf(make([]float64, 5), make([]float64, 5)))
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
