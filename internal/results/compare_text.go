package results

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/units"
)

// Text writes a comparison for people: the cases, those of one record only, and every input that differs. With a
// threshold above 0, a share of A's rate, it ends with the cases that are slower by more than that.
func (c Comparison) Text(w io.Writer, threshold float64) error {
	var b strings.Builder
	c = c.judged(threshold)
	fmt.Fprintf(&b, "a %s\nb %s\n", printable(c.A), printable(c.B))
	for _, text := range c.Unlike {
		fmt.Fprintf(&b, "not alike: %s\n", printable(text))
	}
	if len(c.Cells) > 0 {
		b.WriteString("\n" + c.grid().text())
	}
	if len(c.Lost) > 0 {
		b.WriteString("\n")
	}
	for _, l := range c.Lost {
		fmt.Fprintf(&b, "only in %s: %s", l.In, cell(l.Table, l.Settings))
		if l.Other != "" {
			b.WriteString("; in the other " + units.Join(": ", string(l.Other), units.OneLine(l.Error)))
		}
		b.WriteString("\n")
	}
	b.WriteString("\n")
	if len(c.Inputs) == 0 {
		b.WriteString("no input differs\n")
	}
	for _, d := range c.Inputs {
		fmt.Fprintf(&b, "%-17s a %s\n%-17s b %s\n", printable(d.Name), orNone(d.A), "", orNone(d.B))
	}
	if text := c.conclusion(threshold); text != "" {
		b.WriteString("\n" + text)
	}
	return write(w, "comparison", b.String())
}

// Markdown writes a comparison as GitHub shows it in a pull request or as the summary of a job: what is decided, the
// cases, and every input that differs. The threshold is a share of A's rate, 0 without one.
func (c Comparison) Markdown(w io.Writer, threshold float64) error {
	var b strings.Builder
	c = c.judged(threshold)
	fmt.Fprintf(&b, "### %s\n\na %s, b %s\n\n", escape(c.headline()), escape(c.A), escape(c.B))
	for line := range strings.Lines(c.conclusion(threshold)) {
		b.WriteString("- " + escape(line) + "\n")
	}
	for _, text := range c.Unlike {
		b.WriteString("- not alike: " + escape(text) + "\n")
	}
	for _, only := range c.only() {
		b.WriteString("- " + escape(only.Name+": "+only.Value) + "\n")
	}
	if len(c.Cells) > 0 {
		b.WriteString("\n" + c.grid().markdown())
	}
	inputs := grid{Head: []gridCell{{Text: "input that differs"}, {Text: "a"}, {Text: "b"}}}
	for _, d := range c.Inputs {
		inputs.Rows = append(inputs.Rows, gridRow{Cells: []gridCell{{Text: d.Name}, {Text: d.A}, {Text: d.B}}})
	}
	if len(inputs.Rows) > 0 {
		b.WriteString("\n" + inputs.markdown())
	}
	return write(w, "comparison", b.String())
}

// conclusion says what is decided, and what not and why, a line each; "" if without a threshold nothing is left open.
func (c Comparison) conclusion(threshold float64) string {
	switch {
	case len(c.Cells)+len(c.Broken()) == 0:
		return "nothing to compare: no case was measured in both\n"
	case threshold > 0:
		return c.slowerText(threshold)
	}
	return c.unseenText()
}

// only lists the cases that were measured in one record, with what became of them in the other.
func (c Comparison) only() (all []Input) {
	for _, l := range c.Lost {
		all = append(all, Input{cell(l.Table, l.Settings), units.Join(", ", "measured in "+l.In+" only",
			around("in the other ", string(l.Other), ""), printable(l.Error))})
	}
	return all
}

// judged returns the comparison with the verdicts of a threshold.
func (c Comparison) judged(threshold float64) Comparison {
	cells := make([]Pair, len(c.Cells))
	for i, p := range c.Cells {
		cells[i] = p.judged(threshold)
	}
	c.Cells = cells
	return c
}

func (c Comparison) grid() grid {
	g := grid{Rows: make([]gridRow, len(c.Cells))}
	for n, head := range []string{"case", "a rows/s", "spread", "b rows/s", "spread", "change", "99 % within", "p", "verdict"} {
		g.Head = append(g.Head, gridCell{Text: head, Number: n > 0 && head != "verdict"})
	}
	for i, p := range c.Cells {
		tested := ""
		if p.Tested {
			tested = fmt.Sprintf("%.3f", p.P)
		}
		for n, text := range []string{
			c.caseName(p), units.Amount(p.A.Median), spread(p.A), units.Amount(p.B.Median), spread(p.B),
			p.changeText(), p.within(), tested, p.verdictText(),
		} {
			g.Rows[i].Cells = append(g.Rows[i].Cells, gridCell{Text: text, Number: g.Head[n].Number})
		}
	}
	return g
}

// changeText formats the change of the median; "-" if A's is 0.
func (p Pair) changeText() string {
	if p.A.Median == 0 && p.B.Median != 0 {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", 100*p.Change)
}

// within formats where the change lies; "" if that is not known.
func (p Pair) within() string {
	if !p.Tested || !p.known() {
		return ""
	}
	return p.String()
}

func (p Pair) verdictText() string {
	if p.Verdict == Same {
		return string(Same) + " within " + limitText(p.near)
	}
	return string(p.Verdict)
}

func limitText(share float64) string { return fmt.Sprintf("%.4g %%", 100*share) }

func (c Comparison) slowerText(threshold float64) string {
	var b strings.Builder
	limit := limitText(threshold)
	slower, broken, undecided, missing := c.SlowerBy(threshold), c.Broken(), c.Undecided(threshold), c.Missing()
	for _, p := range slower {
		fmt.Fprintf(&b, "slower by more than %s: %s, %s\n", limit, cell(p.Table, p.Settings), p.changeText())
	}
	for _, l := range broken {
		fmt.Fprintf(&b, "failed in b: %s\n", cell(l.Table, l.Settings))
	}
	for i, p := range undecided {
		if more := len(undecided) - i; i == 3 && more > 1 {
			fmt.Fprintf(&b, "inconclusive: %d more cases\n", more)
			break
		}
		what := "inconclusive"
		if p.Verdict == Slower { // as the table says
			what = "slower, perhaps by more than " + limit
		}
		fmt.Fprintf(&b, "%s: %s, %s: %s\n", what, cell(p.Table, p.Settings), p.changeText(), p.doubt())
	}
	for _, l := range missing {
		fmt.Fprintf(&b, "inconclusive: %s: not measured in b\n", cell(l.Table, l.Settings))
	}
	if len(slower)+len(broken)+len(undecided)+len(missing) == 0 {
		return "no case is slower by more than " + limit + "\n"
	}
	fmt.Fprintf(&b, "%d of %d cases slower by more than %s, %d failed", len(slower), len(c.Cells), limit, len(broken))
	if n := len(undecided) + len(missing); n > 0 {
		fmt.Fprintf(&b, ", %d inconclusive", n)
	}
	b.WriteString("\n")
	return b.String()
}

// doubt says why a pair is not decided, what its pushes would have shown, and what would decide.
func (p Pair) doubt() string {
	if !p.comparable() {
		return "a and b are not alike"
	}
	if !p.Tested {
		return fmt.Sprintf("%d and %d pushes cannot tell any difference from noise: at least %d on either side can",
			p.A.N, p.B.N, p.Enough)
	}
	if !finite(p.seen()) {
		return "a acknowledged nothing in some of its pushes"
	}
	if p.byMachine {
		return fmt.Sprintf("the rates changed by %s, and the machine's speed by %s: push a and b in turns, or while the machine"+
			" does nothing else", p.rates, p.machine)
	}
	text := fmt.Sprintf("the change is within %s; a difference of %s or more would have been seen; ", p.within(), units.Percent(p.seen()))
	if p.Enough == 0 {
		return text + "more pushes of this length would hardly help: make them longer, or the server quieter"
	}
	return text + fmt.Sprintf("about %d pushes on either side would decide, or longer ones", p.Enough)
}

// unseenText says, without a threshold, what the cases that are not decided could have shown; "" if all are decided.
func (c Comparison) unseenText() string {
	var undecided []Pair
	for _, p := range c.Cells {
		if p.Verdict == Inconclusive {
			undecided = append(undecided, p)
		}
	}
	if len(undecided) == 0 {
		return ""
	}
	widest := slices.MaxFunc(undecided, func(a, b Pair) int { return cmp.Compare(a.seen(), b.seen()) })
	return fmt.Sprintf("%d of %d cases inconclusive; the worst is %s: %s\n",
		len(undecided), len(c.Cells), cell(widest.Table, widest.Settings), widest.doubt())
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return units.OneLine(s)
}

// cell names a case, with its table unless that is "".
func cell(table string, settings Settings) string {
	if text := units.Join(": ", table, settings.String()); text != "" {
		return printable(text)
	}
	return "the run"
}

// JSON writes a comparison as one object, with the cases that are slower by more than the threshold and those of which
// that is not certain. Fields may be added under the same schema.
func (c Comparison) JSON(w io.Writer, threshold float64) error {
	out := struct {
		Schema    string  `json:"schema"`
		Threshold float64 `json:"threshold"` // a share; 0 is none
		Slower    []Pair  `json:"slower"`
		Broken    []Lost  `json:"broken"` // measured in a, failed in b
		Undecided []Pair  `json:"inconclusive"`
		Missing   []Lost  `json:"missing"` // measured in a, neither measured nor failed in b
		Comparison
	}{
		Schema: "terapush.compare/v1", Threshold: threshold, Slower: []Pair{}, Broken: []Lost{}, Undecided: []Pair{},
		Missing: []Lost{}, Comparison: c.judged(threshold),
	}
	if threshold > 0 {
		out.Slower, out.Broken = append(out.Slower, out.SlowerBy(threshold)...), append(out.Broken, c.Broken()...)
		out.Undecided, out.Missing = append(out.Undecided, out.Comparison.Undecided(threshold)...), append(out.Missing, c.Missing()...)
	}
	text, err := asJSON(out)
	if err != nil {
		return err
	}
	return write(w, "comparison", text)
}
