package results

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/units"
)

// Write writes a comparison as Text, Markdown, JSON or HTML. With a threshold they say which cases are slower by more
// than that, and of which that is not certain.
func (c Comparison) Write(w io.Writer, f Format) error {
	text, err := map[Format]func() (string, error){
		Text: c.text, Markdown: c.markdown, HTML: c.html, JSON: func() (string, error) { return asJSON(c) },
	}[f]()
	if err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	return write(w, "comparison", text)
}

// text is for people: the cases, those of one record only, and every input that differs.
func (c Comparison) text() (string, error) {
	var b strings.Builder
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
	for _, only := range c.only() {
		fmt.Fprintf(&b, "%s: %s\n", only.Name, only.Value)
	}
	b.WriteString("\n")
	if len(c.Inputs) == 0 {
		b.WriteString("no input differs\n")
	}
	for _, d := range c.Inputs {
		fmt.Fprintf(&b, "%-17s a %s\n%-17s b %s\n", printable(d.Name), orNone(d.A), "", orNone(d.B))
	}
	b.WriteString(around("\n", c.conclusion(), ""))
	return b.String(), nil
}

// markdown is as GitHub shows it in a pull request or as the summary of a job: what is decided, the cases, and every
// input that differs.
func (c Comparison) markdown() (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\na %s, b %s\n\n", escape(c.headline()), escape(c.A), escape(c.B))
	for line := range strings.Lines(c.conclusion()) {
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
	inputs := gridOf(c.Inputs, []column[Difference]{
		{"input that differs", false, func(d Difference) gridCell { return gridCell{Text: d.Name} }},
		{"a", false, func(d Difference) gridCell { return gridCell{Text: d.A} }},
		{"b", false, func(d Difference) gridCell { return gridCell{Text: d.B} }},
	})
	if len(inputs.Rows) > 0 {
		b.WriteString("\n" + inputs.markdown())
	}
	return b.String(), nil
}

// conclusion says what is decided, and what not and why, a line each; "" if without a threshold nothing is left open.
func (c Comparison) conclusion() string {
	switch {
	case len(c.Cells)+len(c.Broken) == 0:
		return "nothing to compare: no case was measured in both\n"
	case c.Threshold > 0:
		return c.slowerText()
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

func (c Comparison) grid() grid {
	text := func(head string, of func(Pair) string) column[Pair] {
		number := head != "case" && head != "verdict"
		return column[Pair]{head, number, func(p Pair) gridCell { return gridCell{Text: of(p)} }}
	}
	return gridOf(c.Cells, []column[Pair]{
		text("case", c.caseName),
		text("a rows/s", func(p Pair) string { return units.Amount(p.A.Median) }),
		text("spread", func(p Pair) string { return spread(p.A) }),
		text("b rows/s", func(p Pair) string { return units.Amount(p.B.Median) }),
		text("spread", func(p Pair) string { return spread(p.B) }),
		text("change", Pair.changeText),
		text("99 % within", Pair.within),
		text("p", Pair.significance),
		text("verdict", Pair.verdictText),
	})
}

// significance formats P; "" if there are too few pushes.
func (p Pair) significance() string {
	if !p.Tested {
		return ""
	}
	return fmt.Sprintf("%.3f", p.P)
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

func (c Comparison) slowerText() string {
	var b strings.Builder
	limit := limitText(c.Threshold)
	for _, p := range c.Slower {
		fmt.Fprintf(&b, "slower by more than %s: %s, %s\n", limit, cell(p.Table, p.Settings), p.changeText())
	}
	for _, l := range c.Broken {
		fmt.Fprintf(&b, "failed in b: %s\n", cell(l.Table, l.Settings))
	}
	for i, p := range c.Undecided {
		if more := len(c.Undecided) - i; i == 3 && more > 1 {
			fmt.Fprintf(&b, "inconclusive: %d more cases\n", more)
			break
		}
		what := "inconclusive"
		if p.Verdict == Slower { // as the table says
			what = "slower, perhaps by more than " + limit
		}
		fmt.Fprintf(&b, "%s: %s, %s: %s\n", what, cell(p.Table, p.Settings), p.changeText(), p.doubt())
	}
	for _, l := range c.Missing {
		fmt.Fprintf(&b, "inconclusive: %s: not measured in b\n", cell(l.Table, l.Settings))
	}
	if b.Len() == 0 {
		return "no case is slower by more than " + limit + "\n"
	}
	fmt.Fprintf(&b, "%d of %d cases slower by more than %s, %d failed", len(c.Slower), len(c.Cells), limit, len(c.Broken))
	if n := len(c.Undecided) + len(c.Missing); n > 0 {
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
	undecided := c.with(Inconclusive)
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
