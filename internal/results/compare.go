package results

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/terapush/terapush/internal/report"
)

// Verdict is what a comparison says of a cell.
type Verdict string

// The verdicts.
const (
	Same   Verdict = "no difference" // none, or none that chance does not explain
	Slower Verdict = "slower"
	Faster Verdict = "faster"
	// TooFew is a difference of which nobody can say whether it is noise.
	TooFew Verdict = "too few repeats to tell noise"
)

// Comparison is two records beside each other, cell by cell. Its lists are never nil.
type Comparison struct {
	A      string       `json:"a"` // what the records are called
	B      string       `json:"b"`
	Cells  []Pair       `json:"cells"`  // measured in both
	Lost   []Lost       `json:"lost"`   // measured in one
	Inputs []Difference `json:"inputs"` // that differ
}

// Pair is one cell in both records.
type Pair struct {
	Table    string   `json:"table"`
	Settings Settings `json:"settings"`
	A        Sample   `json:"a"` // rows per second
	B        Sample   `json:"b"`
	Change   float64  `json:"change"` // of the median, as a share of A's; 0 where A's is 0
	// P is the chance that pushes of the same speed differ so much; 1 where there are too few to tell, and Tested is
	// false.
	P       float64 `json:"p"`
	Tested  bool    `json:"tested"`
	Verdict Verdict `json:"verdict"`
}

// Lost is a cell that was measured in one record only.
type Lost struct {
	Table    string   `json:"table"`
	Settings Settings `json:"settings"`
	In       string   `json:"in"`    // a or b
	Other    Status   `json:"other"` // how it ended in the other; "" if that does not have it
	Error    string   `json:"error"` // there
}

// Difference is an input that is not the same in both records.
type Difference struct {
	Name string `json:"name"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// Compare puts two records side by side. Cells match by their settings; an axis of one value in both does not count, so
// that two targets or versions can be compared: they are inputs that differ.
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
		c.addInputs(comparable(ta, tablesB[i]))
		c.addCells(ta, tablesB[i])
	}
	for i, tb := range tablesB {
		if !matched[i] {
			c.addCells(Table{}, tb)
		}
	}
	if len(matched) == 0 { // strangers: all that is known of the one beside all of the other
		c.addInputs(inputsOfAll(tablesA), inputsOfAll(tablesB))
	}
	return c
}

// SlowerBy lists the cells that are slower in B by more than a share of A's rate. Where there are enough pushes the
// difference must be more than noise as well; where there are not it counts, as nobody can say that it is noise: its
// verdict is TooFew then.
func (c Comparison) SlowerBy(threshold float64) (found []Pair) {
	for _, p := range c.Cells {
		if p.Change < -threshold && (p.Verdict == Slower || p.Verdict == TooFew) {
			found = append(found, p)
		}
	}
	return found
}

// Broken lists the cells that were measured in A and failed in B.
func (c Comparison) Broken() (found []Lost) {
	for _, l := range c.Lost {
		if l.In == "a" && l.Other == Failed {
			found = append(found, l)
		}
	}
	return found
}

// comparable returns the inputs of two tables without the rounding of the distinct rows: they are a whole number of
// batches, so that they differ wherever batches do.
func comparable(a, b Table) (inA, inB []Input) {
	inA, inB = a.allInputs, b.allInputs
	if sameDistinct(append(a.reports(), b.reports()...)) {
		rounded := func(in Input) bool { return in.Name == inputDistinct }
		inA, inB = slices.DeleteFunc(slices.Clone(inA), rounded), slices.DeleteFunc(slices.Clone(inB), rounded)
	}
	return inA, inB
}

// sameDistinct reports whether the distinct rows of all pushes can be one number, rounded up to whole batches.
func sameDistinct(reports []*report.Report) bool {
	least, most := int64(0), int64(math.MaxInt64)
	for _, r := range reports {
		if r.Plan.DistinctRows == 0 {
			return false // all rows are distinct, which is no rounding
		}
		least, most = max(least, r.Plan.DistinctRows-r.Plan.BatchRows), min(most, r.Plan.DistinctRows)
	}
	return least < most
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
		other, there := inB[k]
		delete(inB, k)
		c.addCell(a.Name, p, other, there)
	}
	for _, p := range b.Points {
		if _, left := inB[cellKey(p, axes)]; left && p.measured() {
			c.Lost = append(c.Lost, Lost{Table: b.Name, Settings: p.Settings, In: "b"})
		}
	}
}

func (c *Comparison) addCell(table string, a, b Point, inB bool) {
	switch {
	case a.measured() && b.measured():
		p := Pair{Table: table, Settings: a.Settings, A: a.RowsPerSecond, B: b.RowsPerSecond}
		p.judge()
		c.Cells = append(c.Cells, p)
	case a.measured():
		lost := Lost{Table: table, Settings: a.Settings, In: "a"}
		if inB {
			lost.Other, lost.Error = b.Status, b.Error
		}
		c.Lost = append(c.Lost, lost)
	case b.measured():
		c.Lost = append(c.Lost, Lost{Table: table, Settings: b.Settings, In: "b", Other: a.Status, Error: a.Error})
	}
}

func (p *Pair) judge() {
	if change := p.B.Median/p.A.Median - 1; finite(change) {
		p.Change = change
	}
	p.P = 1
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
}

// matching returns the axes that tell cells apart in at least one of two tables.
func matching(a, b Table) []string {
	var found []string
	for _, axis := range append(a.varying(), b.varying()...) {
		if name := plainName(axis.Name); !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found
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

// addInputs adds the inputs whose values are not the same, with those values alone that the other does not have.
func (c *Comparison) addInputs(a, b []Input) {
	onlyA, onlyB := inputsWithout(a, b), inputsWithout(b, a)
	seen := map[string]bool{}
	for _, in := range slices.Concat(a, b) {
		if seen[in.Name] {
			continue
		}
		seen[in.Name] = true
		d := Difference{in.Name, firstFew(valuesOf(onlyA, in.Name)), firstFew(valuesOf(onlyB, in.Name))}
		if (d.A != "" || d.B != "") && !slices.Contains(c.Inputs, d) { // of another table it may have been said
			c.Inputs = append(c.Inputs, d)
		}
	}
}

// inputsWithout returns those inputs that are not among others. A sweep has thousands, each looked for once.
func inputsWithout(these, others []Input) []Input {
	known := map[Input]bool{}
	for _, in := range others {
		known[in] = true
	}
	return slices.DeleteFunc(slices.Clone(these), func(in Input) bool { return known[in] })
}

// How often two samples of the same thing may be taken for different: in a warning, which asks for a second look, and
// in a comparison of sweeps, where one cell in twenty would be an alarm in every sweep.
const (
	warningAlpha = 0.05
	compareAlpha = 0.01
)

// significance returns the probability that two samples of one and the same thing differ as much as these do, by the
// test of Mann and Whitney, which asks nothing of the distribution and is what benchstat prints. With equal values
// among them the test gives one number for a beside b and another for b beside a, and may give more than 1: the
// larger one counts, so that it does not matter which record comes first.
func significance(a, b []float64) float64 {
	thresholds := benchmath.DefaultThresholds // not asked: they are for the library's warnings
	sample := func(values []float64) *benchmath.Sample {
		return benchmath.NewSample(slices.Clone(values), &thresholds) // it sorts what it is given
	}
	test := func(a, b []float64) float64 { return benchmath.AssumeNothing.Compare(sample(a), sample(b)).P }
	return min(1, max(test(a, b), test(b, a)))
}

// canTell reports whether two samples of these sizes can be found to differ at all: even the clearest order of their
// values comes by chance in two of all ways to share out the ranks.
func canTell(n, m int, alpha float64) bool {
	ways := 1.0
	for i := 1; i <= min(n, m); i++ {
		ways *= float64(max(n, m)+i) / float64(i)
	}
	return 2/ways < alpha
}

// apart reports whether two points' rates differ by more than their noise. Where there are too few pushes for the test
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
