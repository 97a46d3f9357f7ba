package analysis

import (
	"cmp"
	"slices"
)

// How often two samples of the same thing may be taken for different: in a warning, which asks for a second look, and in
// a comparison of sweeps, where one cell in twenty would be an alarm in every sweep.
const (
	warningAlpha = 0.05
	compareAlpha = 0.01
)

// mostExact bounds the samples that the exact test counts out; its work grows with the fourth power. More repeats of a
// push than that say nothing new.
const mostExact = 30

// significance is the probability that two samples of one and the same thing differ as much as these do, by the test of
// Mann and Whitney, which asks nothing of the distribution. It is exact, ties included: of all ways to share out the
// ranks it counts those as far to one side, and doubles them for the other. Of samples that are too large for that the
// first values are taken.
func significance(a, b []float64) float64 {
	a, b = a[:min(len(a), mostExact)], b[:min(len(b), mostExact)]
	ranks, sum := doubledRanks(a, b)
	total := 0
	for _, r := range ranks {
		total += r
	}
	// ways[k][s] counts the choices of k ranks with the sum s.
	ways := make([][]float64, len(a)+1)
	for k := range ways {
		ways[k] = make([]float64, total+1)
	}
	ways[0][0] = 1
	for _, r := range ranks {
		for k := len(a); k > 0; k-- {
			for s := total; s >= r; s-- {
				ways[k][s] += ways[k-1][s-r]
			}
		}
	}
	var below, above, all float64
	for s, n := range ways[len(a)] {
		all += n
		if s <= sum {
			below += n
		}
		if s >= sum {
			above += n
		}
	}
	return min(1, 2*min(below, above)/all)
}

// canTell tells whether two samples of these sizes can be found to differ at all: even the clearest order of their values
// comes by chance in two of all ways to share out the ranks.
func canTell(n, m int, alpha float64) bool {
	ways := 1.0
	for i := 1; i <= min(n, m, mostExact); i++ {
		ways *= float64(max(n, m)+i) / float64(i)
	}
	return 2/ways < alpha
}

// doubledRanks are twice the ranks of all values, equal values sharing the mean of theirs, and the sum of those of a.
func doubledRanks(a, b []float64) (ranks []int, sumOfA int) {
	type ranked struct {
		value float64
		ofA   bool
	}
	var all []ranked
	for _, v := range a {
		all = append(all, ranked{v, true})
	}
	for _, v := range b {
		all = append(all, ranked{v, false})
	}
	slices.SortFunc(all, func(x, y ranked) int { return cmp.Compare(x.value, y.value) })
	for i := 0; i < len(all); {
		j := i
		for j < len(all) && all[j].value == all[i].value {
			j++
		}
		for _, x := range all[i:j] {
			ranks = append(ranks, i+1+j) // the mean of i+1 and j, doubled
			if x.ofA {
				sumOfA += i + 1 + j
			}
		}
		i = j
	}
	return ranks, sumOfA
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
