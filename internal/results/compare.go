package results

import (
	"fmt"
	"math"
	"slices"
	"strings"

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
	// P is the chance that pushes of the same speed differ so much; 1 where there are too few to tell, and Tested is false.
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
	names := []Record{a, b}
	c := Comparison{A: fileName(a, 0, names), B: fileName(b, 1, names), Cells: []Pair{}, Lost: []Lost{}, Inputs: []Difference{}}
	tablesA, tablesB := withInputs(a), withInputs(b)
	matched := map[int]bool{}
	for _, ta := range tablesA {
		i := slices.IndexFunc(tablesB, func(tb tableInputs) bool { return ta.table.Name == tb.table.Name })
		if len(tablesA) == 1 && len(tablesB) == 1 {
			i = 0
		}
		if i < 0 {
			c.cells(ta.table, Table{Name: ta.table.Name})
			continue
		}
		matched[i] = true
		c.differences(comparable(ta, tablesB[i]))
		c.cells(ta.table, tablesB[i].table)
	}
	for i, tb := range tablesB {
		if !matched[i] {
			c.cells(Table{Name: tb.table.Name}, tb.table)
		}
	}
	if len(matched) == 0 { // strangers: all that is known of the one beside all of the other
		c.differences(inputsOfAll(tablesA), inputsOfAll(tablesB))
	}
	return c
}

// SlowerBy lists the cells that are slower in B by more than a share of A's rate. Where there are enough pushes the
// difference must be more than noise as well; where there are not it counts, as nobody can say that it is noise: its
// verdict is TooFew then.
func (c Comparison) SlowerBy(threshold float64) []Pair {
	var found []Pair
	for _, p := range c.Cells {
		if p.Change < -threshold && (p.Verdict == Slower || p.Verdict == TooFew) {
			found = append(found, p)
		}
	}
	return found
}

// Broken lists the cells that were measured in A and failed in B.
func (c Comparison) Broken() []Lost {
	var found []Lost
	for _, l := range c.Lost {
		if l.In == "a" && l.Other == Failed {
			found = append(found, l)
		}
	}
	return found
}

type tableInputs struct {
	table  Table
	inputs []Input
}

func withInputs(r Record) []tableInputs {
	var all []tableInputs
	for _, t := range Tables([]Record{r}) {
		all = append(all, tableInputs{t, t.allInputs})
	}
	return all
}

// comparable are the inputs of two tables, without the rounding of the distinct rows: they are a whole number of batches, so
// that they differ wherever batches do.
func comparable(a, b tableInputs) (inA, inB []Input) {
	inA, inB = a.inputs, b.inputs
	if sameDistinct(append(a.table.reports(), b.table.reports()...)) {
		rounded := func(in Input) bool { return in.Name == inputDistinct }
		inA, inB = slices.DeleteFunc(slices.Clone(inA), rounded), slices.DeleteFunc(slices.Clone(inB), rounded)
	}
	return inA, inB
}

// sameDistinct tells whether the distinct rows of all pushes can be one number, rounded up to whole batches.
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

func inputsOfAll(tables []tableInputs) []Input {
	var all []Input
	seen := map[Input]bool{}
	for _, t := range tables {
		for _, in := range t.inputs {
			if !seen[in] {
				seen[in] = true
				all = append(all, in)
			}
		}
	}
	return all
}

func (c *Comparison) cells(a, b Table) {
	axes := matching(a, b)
	inB := map[string]Point{}
	for _, p := range b.Points {
		inB[cellKey(p, axes)] = p
	}
	for _, p := range a.Points {
		k := cellKey(p, axes)
		other, there := inB[k]
		delete(inB, k)
		c.pair(a.Name, p, other, there)
	}
	for _, p := range b.Points {
		if _, left := inB[cellKey(p, axes)]; left && p.RowsPerSecond.N > 0 {
			c.Lost = append(c.Lost, Lost{Table: b.Name, Settings: p.Settings, In: "b"})
		}
	}
}

func (c *Comparison) pair(table string, a, b Point, inB bool) {
	switch {
	case a.RowsPerSecond.N > 0 && b.RowsPerSecond.N > 0:
		c.Cells = append(c.Cells, judge(Pair{Table: table, Settings: a.Settings, A: a.RowsPerSecond, B: b.RowsPerSecond}))
	case a.RowsPerSecond.N > 0:
		lost := Lost{Table: table, Settings: a.Settings, In: "a"}
		if inB {
			lost.Other, lost.Error = b.Status, b.Error
		}
		c.Lost = append(c.Lost, lost)
	case b.RowsPerSecond.N > 0:
		c.Lost = append(c.Lost, Lost{Table: table, Settings: b.Settings, In: "b", Other: a.Status, Error: a.Error})
	}
}

func judge(p Pair) Pair {
	p.Change, _ = known(p.B.Median/p.A.Median-1, true) // of nothing there is no share
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
	return p
}

// matching are the axes that tell cells apart in at least one of two tables.
func matching(a, b Table) []string {
	var found []string
	for _, t := range []Table{a, b} {
		for _, axis := range t.Axes {
			if len(axis.Values) > 1 && !slices.Contains(found, PlainName(axis.Name)) {
				found = append(found, PlainName(axis.Name))
			}
		}
	}
	return found
}

func cellKey(p Point, axes []string) string {
	var b strings.Builder
	for _, axis := range axes {
		for _, s := range p.Settings {
			if PlainName(s.Axis) == axis {
				fmt.Fprintf(&b, "%q=%v;", axis, parseValue(s.Value))
			}
		}
	}
	return b.String()
}

// differences adds the inputs whose values are not the same, with those values alone that the other does not have.
func (c *Comparison) differences(a, b []Input) {
	onlyA, onlyB := inputsWithout(a, b), inputsWithout(b, a)
	seen := map[string]bool{}
	for _, in := range slices.Concat(a, b) {
		if seen[in.Name] {
			continue
		}
		seen[in.Name] = true
		d := Difference{in.Name, list(values(onlyA, in.Name)), list(values(onlyB, in.Name))}
		if (d.A != "" || d.B != "") && !slices.Contains(c.Inputs, d) { // of another table it may have been said
			c.Inputs = append(c.Inputs, d)
		}
	}
}

// inputsWithout are those inputs that are not among others. A sweep has thousands, each looked for once.
func inputsWithout(these, others []Input) []Input {
	known := map[Input]bool{}
	for _, in := range others {
		known[in] = true
	}
	return slices.DeleteFunc(slices.Clone(these), func(in Input) bool { return known[in] })
}
