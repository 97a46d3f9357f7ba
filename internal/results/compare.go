package results

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"
)

// Verdict is the result of comparing a case.
type Verdict string

// The verdicts.
const (
	Same   Verdict = "no difference" // none, or one that may be chance
	Slower Verdict = "slower"
	Faster Verdict = "faster"
	// TooFew is a difference that may be noise: there are too few pushes to tell.
	TooFew Verdict = "too few repeats to tell noise"
)

// Comparison is two records compared case by case. Its lists are never nil.
type Comparison struct {
	A      string       `json:"a"` // the names of the records
	B      string       `json:"b"`
	Cells  []Pair       `json:"cells"`  // measured in both
	Lost   []Lost       `json:"lost"`   // measured in one
	Inputs []Difference `json:"inputs"` // that differ
}

// Pair is one case in both records.
type Pair struct {
	Table    string   `json:"table"`
	Settings Settings `json:"settings"`
	A        Sample   `json:"a"` // rows per second
	B        Sample   `json:"b"`
	Change   float64  `json:"change"` // of the median, as a share of A's; 0 where A's is 0
	// P is the probability that pushes of the same speed differ so much; 1 if Tested is false, since there are too few.
	P       float64 `json:"p"`
	Tested  bool    `json:"tested"`
	Verdict Verdict `json:"verdict"`
}

// Lost is a case that was measured in one record only.
type Lost struct {
	Table    string   `json:"table"`
	Settings Settings `json:"settings"`
	In       string   `json:"in"`    // a or b
	Other    Status   `json:"other"` // its status in the other; "" if that does not have it
	Error    string   `json:"error"` // in the other
}

// Difference is an input that differs between the records.
type Difference struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Compare compares two records. Cases match by their settings; an axis of one value in both is ignored, so that two
// targets or versions can be compared: they are inputs that differ.
func Compare(a, b Record) Comparison {
	both := []Record{a, b}
	c := Comparison{
		A: fileName(a, 0, both), B: fileName(b, 1, both), Cells: []Pair{}, Lost: []Lost{}, Inputs: []Difference{},
	}
	tablesA, tablesB := Tables([]Record{a}), Tables([]Record{b})
	matched := map[int]bool{}
	for _, ta := range tablesA {
		i := slices.IndexFunc(tablesB, func(tb Table) bool { return ta.Name == tb.Name })
		if len(tablesA) == 1 && len(tablesB) == 1 {
			i = 0
		}
		if i < 0 {
			c.addCells(ta, Table{})
			continue
		}
		matched[i] = true
		c.addInputs(ta.allInputs, tablesB[i].allInputs)
		c.addCells(ta, tablesB[i])
	}
	for i, tb := range tablesB {
		if !matched[i] {
			c.addCells(Table{}, tb)
		}
	}
	if len(matched) == 0 {
		c.addInputs(inputsOfAll(tablesA), inputsOfAll(tablesB))
	}
	return c
}

// SlowerBy lists the cases that are slower in B by more than a share of A's rate. With enough pushes the difference
// must be more than noise as well; with too few it counts, and the verdict is TooFew.
func (c Comparison) SlowerBy(threshold float64) (cells []Pair) {
	for _, p := range c.Cells {
		if p.Change < -threshold && (p.Verdict == Slower || p.Verdict == TooFew) {
			cells = append(cells, p)
		}
	}
	return cells
}

// Broken lists the cases that were measured in A and failed in B.
func (c Comparison) Broken() (cells []Lost) {
	for _, l := range c.Lost {
		if l.In == "a" && l.Other == Failed {
			cells = append(cells, l)
		}
	}
	return cells
}

func inputsOfAll(tables []Table) (all []Input) {
	for _, t := range tables {
		all = append(all, t.allInputs...)
	}
	return distinct(all)
}

func (c *Comparison) addCells(a, b Table) {
	axes := matching(a, b)
	inB := map[string]Point{}
	for _, p := range b.Points {
		inB[cellKey(p, axes)] = p
	}
	for _, p := range a.Points {
		k := cellKey(p, axes)
		other := inB[k] // without status if B does not have the case
		delete(inB, k)
		switch {
		case p.measured() && other.measured():
			c.Cells = append(c.Cells, newPair(a.Name, p, other))
		case p.measured():
			c.Lost = append(c.Lost, Lost{a.Name, p.Settings, "a", other.Status, other.Error})
		case other.measured():
			c.Lost = append(c.Lost, Lost{a.Name, other.Settings, "b", p.Status, p.Error})
		}
	}
	for _, p := range b.Points {
		if _, left := inB[cellKey(p, axes)]; left && p.measured() {
			c.Lost = append(c.Lost, Lost{Table: b.Name, Settings: p.Settings, In: "b"})
		}
	}
}

func newPair(table string, a, b Point) Pair {
	p := Pair{Table: table, Settings: a.Settings, A: a.RowsPerSecond, B: b.RowsPerSecond, P: 1}
	if change := p.B.Median/p.A.Median - 1; finite(change) {
		p.Change = change
	}
	if p.Tested = canTell(p.A.N, p.B.N, compareAlpha); p.Tested {
		p.P = significance(p.A.Values, p.B.Values)
	}
	switch {
	case p.B.Median == p.A.Median || p.Tested && p.P >= compareAlpha:
		p.Verdict = Same
	case !p.Tested:
		p.Verdict = TooFew
	case p.B.Median < p.A.Median:
		p.Verdict = Slower
	default:
		p.Verdict = Faster
	}
	return p
}

// matching returns the axes that vary in at least one of two tables.
func matching(a, b Table) []string {
	var names []string
	for _, axis := range append(a.varying(), b.varying()...) {
		names = append(names, plainName(axis.Name))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func cellKey(p Point, axes []string) string {
	var b strings.Builder
	for _, axis := range axes {
		for _, s := range p.Settings {
			if plainName(s.Axis) == axis {
				fmt.Fprintf(&b, "%q=%v;", axis, parseValue(s.Value))
			}
		}
	}
	return b.String()
}

// addInputs adds the inputs that differ, with the values that the other record does not have.
func (c *Comparison) addInputs(a, b []Input) {
	onlyA, onlyB := inputsWithout(a, b), inputsWithout(b, a)
	seen := map[string]bool{}
	for _, in := range slices.Concat(a, b) {
		if seen[in.Name] {
			continue
		}
		seen[in.Name] = true
		d := Difference{in.Name, firstFew(valuesOf(onlyA, in.Name)), firstFew(valuesOf(onlyB, in.Name))}
		if (d.A != "" || d.B != "") && !slices.Contains(c.Inputs, d) { // another table may have it
			c.Inputs = append(c.Inputs, d)
		}
	}
}

// inputsWithout returns the inputs that are not among others. A sweep has thousands.
func inputsWithout(these, others []Input) []Input {
	known := map[Input]bool{}
	for _, in := range others {
		known[in] = true
	}
	return slices.DeleteFunc(slices.Clone(these), func(in Input) bool { return known[in] })
}

// How often samples of one speed may be called different. A comparison of sweeps with 0.05 would have an alarm in every
// twentieth case.
const (
	warningAlpha = 0.05
	compareAlpha = 0.01
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

// canTell reports whether the test can find a difference between samples of these sizes: two of all distributions of
// the ranks have the clearest order.
func canTell(n, m int, alpha float64) bool {
	ways := 1.0
	for i := 1; i <= min(n, m); i++ {
		ways *= float64(max(n, m)+i) / float64(i)
	}
	return 2/ways < alpha
}

// apart reports whether two rates differ by more than their noise. With too few pushes for the test their ranges must
// not overlap; known is false for a single push.
func apart(a, b Sample) (differ, known bool) {
	if canTell(a.N, b.N, warningAlpha) {
		return significance(a.Values, b.Values) < warningAlpha, true
	}
	if a.N < 2 || b.N < 2 {
		return false, false
	}
	return a.High < b.Low || b.High < a.Low, true
}
