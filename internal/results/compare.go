package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
)

// Verdict is the result of comparing a case.
type Verdict string

// The verdicts.
const (
	Same   Verdict = "equal" // within the margin: the whole range lies so near to 0
	Slower Verdict = "slower"
	Faster Verdict = "faster"
	// Inconclusive is a change that the pushes do not tell from none, nor from one that matters.
	Inconclusive Verdict = "inconclusive"
	// OtherRows is a case whose rows differ, so that the rates say nothing about each other.
	OtherRows Verdict = "other rows"
)

// margin is the share by which a change matters to those who give no threshold, as for the smallest case of a table.
const margin = 0.05

// Comparison is two records compared case by case. Its lists are never nil. Written as JSON it may get more fields under
// the same schema.
type Comparison struct {
	Schema string `json:"schema"`
	// Threshold is the share of A's rate by which no case must be slower; 0 is none.
	Threshold float64 `json:"threshold"`
	Slower    []Pair  `json:"slower"`       // certainly by more than the threshold
	Broken    []Lost  `json:"broken"`       // measured in A, failed in B
	Undecided []Pair  `json:"inconclusive"` // perhaps slower by more than the threshold
	Missing   []Lost  `json:"missing"`      // measured in A, neither measured nor failed in B

	A      string       `json:"a"` // the names of the records
	B      string       `json:"b"`
	Cells  []Pair       `json:"cells"`  // measured in both
	Lost   []Lost       `json:"lost"`   // measured in one
	Inputs []Difference `json:"inputs"` // that differ
	// Unlike says in sentences why rates that are compared are of different things.
	Unlike []string `json:"unlike"`
}

// Pair is one case in both records.
type Pair struct {
	Table    string   `json:"table"`
	Settings Settings `json:"settings"`
	A        Sample   `json:"a"` // rows per second
	B        Sample   `json:"b"`
	Change   float64  `json:"change"` // of the median, or the median of pairs, as a share of A's; 0 where A's is 0
	// P is the probability that pushes of the same speed differ so much; 1 if Tested is false, since there are too few.
	P       float64 `json:"p"`
	Tested  bool    `json:"tested"`
	Verdict Verdict `json:"verdict"`
	// InTurns is true if the pushes of A and B took turns: then they are compared in pairs.
	InTurns bool `json:"in_turns"`
	// The true change lies from Low to High with a confidence of 99 %. Both are 0 if Tested is false or A's rate is 0.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// The machine's speed changed likewise from MachineLow to MachineHigh; both are 0 if that is not known, or InTurns.
	MachineLow  float64 `json:"machine_low"`
	MachineHigh float64 `json:"machine_high"`
	// Enough is about how many pushes on either side would decide; 0 if the case is decided, or if more would hardly.
	Enough int `json:"enough"`

	span                 // of the change: its ends are Low and High, or infinite
	rates        span    // without what the machine may have done
	machine      span    // of its speed; unknown if it was not measured or does not matter
	near         float64 // what is called equal
	byMachine    bool    // the rates alone would decide
	otherRows    string  // in what the rows differ, in a sentence; "" if they are alike
	otherBackend string  // likewise of the databases
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
// targets or versions can be compared: they are inputs that differ. The threshold is a share of A's rate, 0 without one.
func Compare(a, b Record, threshold float64) Comparison {
	both := []Record{a, b}
	c := Comparison{
		Schema: "terapush.compare/v1", Threshold: threshold, A: fileName(a, 0, both), B: fileName(b, 1, both),
		Cells: []Pair{}, Lost: []Lost{}, Inputs: []Difference{},
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
	c.Unlike = c.unlike()

	c.Slower = those(c.Cells, func(p Pair) bool { return threshold > 0 && p.comparable() && p.high < -threshold })
	c.Undecided = those(c.Cells, func(p Pair) bool { return threshold > 0 && (!p.comparable() || p.holds(-threshold)) })
	c.Broken = those(c.Lost, func(l Lost) bool { return l.In == "a" && l.Other == Failed })
	c.Missing = those(c.Lost, func(l Lost) bool { return l.In == "a" && l.Other != Failed })
	return c
}

// those returns what meets a condition; never nil.
func those[T any](all []T, is func(T) bool) []T {
	return slices.DeleteFunc(append([]T{}, all...), func(one T) bool { return !is(one) })
}

// OtherRows reports whether the rows of all cases differ, so that nothing was compared.
func (c Comparison) OtherRows() bool {
	return len(c.Cells) > 0 && !slices.ContainsFunc(c.Cells, func(p Pair) bool { return p.otherRows == "" })
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
			c.Cells = append(c.Cells, newPair(a.Name, p, other, c.Threshold))
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

func newPair(table string, a, b Point, threshold float64) Pair {
	p := changeOf(a, b)
	p.Table, p.Settings, p.A, p.B = table, a.Settings, a.RowsPerSecond, b.RowsPerSecond
	if !finite(p.Change) {
		p.Change = 0
	}
	if p.known() {
		p.Low, p.High = p.low, p.high
	}
	if p.machine.known() {
		p.MachineLow, p.MachineHigh = p.machine.low, p.machine.high
	}
	p.otherRows, p.otherBackend = otherRows(a, b), otherBackend(a, b)
	p.near = cmp.Or(threshold, margin)
	if p.otherRows != "" {
		p.Verdict = OtherRows
		return p
	}

	p.Verdict = p.verdict(p.near)
	away := max(math.Abs(p.Change), p.near-math.Abs(p.Change)) // from what the range must leave out
	if threshold > 0 {
		away = math.Abs(p.Change + threshold)
	}
	if p.open(threshold) {
		p.Enough = p.enough(away)
		p.byMachine = !p.rates.open(threshold)
	}
	return p
}

// comparable reports whether both rates are of the same rows and database.
func (p Pair) comparable() bool { return p.otherRows == "" && p.otherBackend == "" }

// open reports whether a range leaves open what is asked: whether there is a loss of the threshold or, without one,
// whether there is a change that matters.
func (s span) open(threshold float64) bool {
	if threshold > 0 {
		return s.holds(-threshold)
	}
	return s.verdict(margin) == Inconclusive
}

// verdict returns what a range says where a change of near matters.
func (s span) verdict(near float64) Verdict {
	switch {
	case s.high < 0:
		return Slower
	case s.low > 0:
		return Faster
	case s.low > -near && s.high < near:
		return Same
	}
	return Inconclusive
}

func (s span) holds(change float64) bool { return s.low <= change && s.high >= change }

// enough returns about how many pushes on either side make the range reach less far than away on either side: it
// narrows with the square root of their number. 0 is more than anybody makes.
func (p Pair) enough(away float64) int {
	const least = 5 // with fewer on both sides canTell is false
	if !p.Tested {
		return least
	}
	const most = 100
	has := float64(max(p.A.N, p.B.N))
	needs := math.Ceil(has * math.Pow(p.seen()/away, 2))
	if !finite(needs) || needs > most {
		return 0
	}
	return max(int(needs), int(has)+1)
}

// seen returns the difference that the pushes would have shown: half of the range.
func (p Pair) seen() float64 { return (p.high - p.low) / 2 }

// unlike returns, once each, in what the things measured in two records differ, and whether the machine's speed surely
// changed by more than is called equal.
func (c Comparison) unlike() []string {
	texts, cases := []string{}, []string{}
	for _, p := range c.Cells {
		texts = append(texts, p.otherRows, p.otherBackend)
		if p.machine.known() && !p.machine.holds(0) && math.Abs(p.machine.low+p.machine.high)/2 > margin {
			cases = append(cases, fmt.Sprintf("by %s (%s)", p.machine, cell(p.Table, p.Settings)))
		}
	}
	texts = append(texts, around("the speed of the machine that ran terapush changed from a to b ", firstFew(cases), ""))
	return distinct(those(texts, func(text string) bool { return text != "" }))
}

// otherRows says in what the rows of two points differ, "" if their rates are of like rows.
func otherRows(a, b Point) string {
	one, two := a.Typical, b.Typical
	if one == nil || two == nil {
		return ""
	}
	if one.Plan.Dataset != two.Plan.Dataset {
		return fmt.Sprintf("the rows differ: a pushes %s, b %s", orNone(one.Plan.Dataset), orNone(two.Plan.Dataset))
	}
	const alike = 1.1 // those of a dataset vary in length
	first, second := bytesOfRow(one), bytesOfRow(two)
	if ratio := max(first, second) / min(first, second); finite(ratio) && ratio > alike {
		return fmt.Sprintf("the rows differ: those of a have %.0f bytes, those of b %.0f", first, second)
	}
	return ""
}

func bytesOfRow(r *report.Report) float64 {
	return float64(r.Result.PayloadBytes) / float64(r.Result.Rows)
}

// otherBackend says that two points are of different databases, "" if they are not.
func otherBackend(a, b Point) string {
	if a.Typical == nil || b.Typical == nil || a.Typical.Target.Backend == b.Typical.Target.Backend {
		return ""
	}
	return fmt.Sprintf("the databases differ: a is %s, b %s",
		orNone(a.Typical.Target.Backend), orNone(b.Typical.Target.Backend))
}

// matching returns the axes that vary in at least one of two tables.
func matching(a, b Table) []string {
	var names []string
	for _, axis := range append(a.varying(), b.varying()...) {
		names = append(names, plainName(axis.Name))
	}
	return distinct(names)
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
