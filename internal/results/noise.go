package results

import (
	"slices"

	"golang.org/x/perf/benchmath"
)

// How often two samples of the same thing may be taken for different: in a warning, which asks for a second look, and in
// a comparison of sweeps, where one cell in twenty would be an alarm in every sweep.
const (
	warningAlpha = 0.05
	compareAlpha = 0.01
)

// significance is the probability that two samples of one and the same thing differ as much as these do, by the test of
// Mann and Whitney, which asks nothing of the distribution and is what benchstat prints. With equal values among them the
// test gives one number for a beside b and another for b beside a, and may give more than 1: the larger one counts, so that
// it does not matter which record comes first.
func significance(a, b []float64) float64 {
	return min(1, max(mannWhitney(a, b), mannWhitney(b, a)))
}

func mannWhitney(a, b []float64) float64 {
	thresholds := benchmath.DefaultThresholds // not asked: they are for the library's warnings
	sample := func(values []float64) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(values), &thresholds) // it sorts what it is given
	}
	return benchmath.AssumeNothing.Compare(sample(a), sample(b)).P
}

// canTell tells whether two samples of these sizes can be found to differ at all: even the clearest order of their values
// comes by chance in two of all ways to share out the ranks.
func canTell(n, m int, alpha float64) bool {
	ways := 1.0
	for i := 1; i <= min(n, m); i++ {
		ways *= float64(max(n, m)+i) / float64(i)
	}
	return 2/ways < alpha
}

// apart tells whether two points' rates differ by more than their noise. Where there are too few pushes for the test
// their ranges must not touch; known is false where even a range is not known.
func apart(a, b Sample) (differ, known bool) {
	if canTell(a.N, b.N, warningAlpha) {
		return significance(a.Values, b.Values) < warningAlpha, true
	}
	if a.N < 2 || b.N < 2 {
		return false, false
	}
	return a.High < b.Low || b.High < a.Low, true
}
