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
		n, m int
		can  bool
	}{
		{0, 0, false}, {1, 9, false}, {3, 3, false}, {4, 4, true}, {3, 5, true}, {2, 7, false}, {2, 8, true}, {1000, 1000, true},
	} {
		require.Equal(t, c.can, canTell(c.n, c.m), "%d and %d", c.n, c.m)
	}
}

// The ends are the changes that the test itself begins to tell from a sample's. Those of the first are of Hollander and
// Wolfe's table: for 5 and 5 values the third smallest and the third largest of the 25 pairs.
func TestSpan(t *testing.T) {
	a, b := []float64{100, 101, 103, 106, 110}, []float64{90, 99, 104, 111, 95}
	changes := []float64{}
	for _, x := range a {
		for _, y := range b {
			changes = append(changes, y/x-1)
		}
	}
	slices.Sort(changes)
	require.Equal(t, span{changes[2], changes[22]}, spanOf(a, b))

	for _, n := range []int{4, 5, 8, 20, 60} {
		scaled := func(change float64) (values []float64) {
			for i := range n {
				values = append(values, (100+float64(i*i%17)+float64(i)/1000)*(1+change))
			}
			return values
		}
		differs := func(change float64) bool { return significance(scaled(change), scaled(-0.07)) < alpha }
		s := spanOf(scaled(0), scaled(-0.07))
		require.True(t, differs(s.low-1e-9) && differs(s.high+1e-9), n)
		require.False(t, differs(s.low+1e-9) || differs(s.high-1e-9), n)
	}

	require.Equal(t, span{-1, math.Inf(1)}, spanOf(a[:3], b[:3]), "three and three never tell")
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
