package results

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"
)

// How often pushes of one speed may be called different: by a comparison of two records, where it is a false alarm and
// in half of these says "slower", and within a table, where it keeps a difference from being shown as noise.
const (
	alphaCompare = 0.01
	alpha        = 0.05
)

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

// canTell reports whether the test can find a difference between samples of these sizes at a level: two of all
// distributions of the ranks have the clearest order.
func canTell(n, m int, level float64) bool {
	ways := 1.0
	for i := 1; i <= min(n, m); i++ {
		ways *= float64(max(n, m)+i) / float64(i)
	}
	return 2/ways < level
}

// span is where a change lies, as a share.
type span struct{ low, high float64 }

// unknown is where a change lies of which nothing is known.
func unknown() span { return span{-1, math.Inf(1)} }

// known reports whether both ends are figures.
func (s span) known() bool { return finite(s.low) && finite(s.high) }

func (s span) String() string { return fmt.Sprintf("%+.1f … %+.1f %%", 100*s.low, 100*s.high) }

// changeOf finds the change from a to b, with a confidence of 1-alphaCompare. It is infinite or no number from 0.
//
// Pushes in turns are compared in pairs, so that what the machine does meanwhile falls on both. For others the rates
// alone say how pushes of one hour differ: if the machine was slower while b was pushed, all of b is. So the range
// covers both that the rate follows the machine's speed and that it does not.
func changeOf(a, b Point) Pair {
	if inTurns(a, b) {
		return ofPairs(a.RowsPerSecond.Values, b.RowsPerSecond.Values)
	}
	c := Pair{Change: b.rate()/a.rate() - 1, P: 1, machine: unknown()}
	if c.Tested = canTell(a.RowsPerSecond.N, b.RowsPerSecond.N, alphaCompare); c.Tested {
		c.P = significance(a.RowsPerSecond.Values, b.RowsPerSecond.Values)
	}
	c.rates = spanOf(a.RowsPerSecond.Values, b.RowsPerSecond.Values)
	c.span = c.rates
	speedsA, speedsB := measuredSpeeds(a), measuredSpeeds(b)
	if len(speedsA) < a.RowsPerSecond.N || len(speedsB) < b.RowsPerSecond.N {
		return c
	}

	c.machine = spanOf(speedsA, speedsB)
	if !c.machine.known() || !c.rates.known() {
		return c
	}
	follows := followed([2][]float64{a.RowsPerSecond.Values, b.RowsPerSecond.Values}, [2][]float64{speedsA, speedsB})
	slowest, fastest := math.Pow(1+c.machine.low, follows), math.Pow(1+c.machine.high, follows)
	c.low = (1+c.rates.low)/max(fastest, 1) - 1
	c.high = (1+c.rates.high)/min(slowest, 1) - 1
	return c
}

func measuredSpeeds(p Point) []float64 {
	return slices.DeleteFunc(slices.Clone(p.speeds), func(v float64) bool { return !finite(v) || v <= 0 })
}

// followed returns the power of the machine's speed that rates follow at most, from 0 to 1: those of a server behind a
// slow network stay the same while the client's machine is twice as busy. Within a record both show how much they vary;
// a machine that varies less than the measurement of its speed shows nothing.
func followed(rates, speeds [2][]float64) float64 {
	const sure, noise = 2, 0.1
	w, share := width(speeds), sure*width(rates)/width(speeds)
	if w > noise && finite(share) {
		return min(share, 1)
	}
	return 1
}

// width returns how far apart, as logarithms, the middle half of the values lies around the median of their record,
// which a single slow push does not widen.
func width(records [2][]float64) float64 {
	var around []float64
	for _, values := range records {
		for _, v := range values {
			around = append(around, math.Log(v/Median(values)))
		}
	}
	slices.Sort(around)
	return around[3*len(around)/4] - around[len(around)/4]
}

// inTurns reports whether a push of a and one of b were made before the next of either, and so often that pairs decide.
func inTurns(a, b Point) bool {
	n := a.RowsPerSecond.N
	if b.RowsPerSecond.N != n || len(a.begun) != n || len(b.begun) != n || n < leastPairs {
		return false
	}
	for i := 1; i < n; i++ {
		last, next := []time.Time{a.begun[i-1], b.begun[i-1]}, []time.Time{a.begun[i], b.begun[i]}
		if !slices.MaxFunc(last, time.Time.Compare).Before(slices.MinFunc(next, time.Time.Compare)) {
			return false
		}
	}
	return true
}

// leastPairs is how many pairs a change takes: of 7, all show the same sign by chance in every 64th case.
const leastPairs = 8

// ofPairs finds the change from the ratios of pairs. As many lie above their median as below, whatever their
// distribution, which is all that the sign test assumes.
func ofPairs(a, b []float64) Pair {
	var changes []float64
	above, below := 0, 0
	for i := range a {
		changes = append(changes, relative(a[i], b[i]))
		if b[i] > a[i] {
			above++
		} else if b[i] < a[i] {
			below++
		}
	}
	slices.Sort(changes)
	n := len(changes)
	rare := sort.Search(n/2, func(fewer int) bool { return signs(n, fewer) >= alphaCompare })
	within := span{changes[rare-1], changes[n-rare]}
	return Pair{
		Change: Median(changes), P: signs(above+below, min(above, below)), Tested: true, InTurns: true,
		span: within, rates: within, machine: unknown(),
	}
}

// signs returns the probability that of n signs at most so many, or at least n less that, are positive by chance.
func signs(n, fewer int) float64 {
	return min(1, 2*stats.BinomialDist{N: n, P: 0.5}.CDF(float64(fewer)))
}

// relative returns the change from one rate to another as a share.
func relative(before, after float64) float64 {
	if before == 0 && after == 0 {
		return 0
	}
	return after/before - 1
}

// spanOf returns where the change from a to b lies with a confidence of 1-alphaCompare: all changes from which the test
// of Mann and Whitney does not tell it. The test counts in how many pairs of a and b the change is smaller, so the ends
// are among those of the pairs. Without enough values nothing is known.
func spanOf(a, b []float64) span {
	if !canTell(len(a), len(b), alphaCompare) {
		return unknown()
	}
	var changes []float64
	for _, before := range a {
		for _, after := range b {
			changes = append(changes, relative(before, after))
		}
	}
	slices.Sort(changes)
	rare := rareOf(len(a), len(b))
	return span{changes[rare-1], changes[len(changes)-rare]}
}

// rares are the results of rareOf by its arguments: a page asks for few of them, and again and again.
var rares sync.Map

// rareOf returns the fewest pairs of n and m values with a smaller value in the second that may come by chance.
func rareOf(n, m int) int {
	of := [2]int{n, m}
	if rare, known := rares.Load(of); known {
		return rare.(int)
	}
	rare := sort.Search(n*m/2, func(smaller int) bool { return significanceOf(n, m, smaller) >= alphaCompare })
	rares.Store(of, rare)
	return rare
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
	if canTell(a.N, b.N, alpha) {
		return significance(a.Values, b.Values) < alpha, true
	}
	if a.N < 2 || b.N < 2 {
		return false, false
	}
	return a.High < b.Low || b.High < a.Low, true
}
