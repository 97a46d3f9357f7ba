package results

import (
	"math"
	"slices"
	"sort"

	"golang.org/x/perf/benchmath"
)

// alpha is how often samples of one speed may be called different. A listing of many cases has such an alarm in every
// twentieth; a threshold is missed, or kept, by mistake in every fortieth of those that lie exactly on it, and in far
// fewer of all others.
const alpha = 0.05

// significance returns the probability that two samples of one distribution differ as much as these do, by the test of
// Mann and Whitney, which assumes no distribution and is what benchstat prints. With ties the library's result depends
// on the order and may exceed 1: the larger one counts, so that the order of records does not matter.
func significance(a, b []float64) float64 {
	thresholds := benchmath.DefaultThresholds // for the library's warnings only
	sample := func(values []float64) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(values), &thresholds) // it sorts its argument
	}
	test := func(a, b []float64) float64 { return benchmath.AssumeNothing.Compare(sample(a), sample(b)).P }
	return min(1, max(test(a, b), test(b, a)))
}

// canTell reports whether the test can find a difference between samples of these sizes: two of all distributions of
// the ranks have the clearest order.
func canTell(n, m int) bool {
	ways := 1.0
	for i := 1; i <= min(n, m); i++ {
		ways *= float64(max(n, m)+i) / float64(i)
	}
	return 2/ways < alpha
}

// span is where a change lies, as a share.
type span struct{ low, high float64 }

// spanOf returns where the change from a to b lies with a confidence of 1-alpha: all changes from which the test of
// Mann and Whitney does not tell it. The test counts in how many pairs of a and b the change is smaller, so the ends are
// among those of the pairs. Without enough values nothing is known.
func spanOf(a, b []float64) span {
	if !canTell(len(a), len(b)) {
		return span{-1, math.Inf(1)}
	}
	var changes []float64
	for _, before := range a {
		for _, after := range b {
			change := after/before - 1
			if math.IsNaN(change) { // nothing, and before that nothing
				change = 0
			}
			changes = append(changes, change)
		}
	}
	slices.Sort(changes)
	rare := sort.Search(len(changes)/2, func(smaller int) bool { return significanceOf(len(a), len(b), smaller) >= alpha })
	return span{changes[rare-1], changes[len(changes)-rare]}
}

// significanceOf returns the test's result for samples of n and m values without ties, of which so many pairs have the
// smaller value in the second.
func significanceOf(n, m, smaller int) float64 {
	a, b := make([]float64, n), make([]float64, m)
	for i := range a {
		a[i] = float64(m + i*(m+1))
	}
	for i := range b {
		under := min(max(smaller-i*n, 0), n) // values of a that are larger
		b[i] = float64((n-under)*(m+1) + i)
	}
	return significance(a, b)
}

// apart reports whether two rates differ by more than their noise. With too few pushes for the test their ranges must
// not overlap; known is false for a single push.
func apart(a, b Sample) (differ, known bool) {
	if canTell(a.N, b.N) {
		return significance(a.Values, b.Values) < alpha, true
	}
	if a.N < 2 || b.N < 2 {
		return false, false
	}
	return a.High < b.Low || b.High < a.Low, true
}
