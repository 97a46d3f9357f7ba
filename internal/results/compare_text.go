package results

import (
	"fmt"
	"io"
	"strings"

	"github.com/terapush/terapush/internal/units"
)

// Text writes a comparison for people: the cases, those of one record only, and every input that differs. With a
// threshold above 0, a share of A's rate, it ends with the cases that are slower by more than that.
func (c Comparison) Text(w io.Writer, threshold float64) error {
	var b strings.Builder
	fmt.Fprintf(&b, "a %s\nb %s\n", printable(c.A), printable(c.B))
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
	if threshold > 0 {
		b.WriteString("\n" + c.slowerText(threshold))
	}
	return write(w, "comparison", b.String())
}

func (c Comparison) grid() grid {
	several := false
	for _, p := range c.Cells {
		several = several || p.Table != c.Cells[0].Table
	}
	g := grid{
		lines: [][]string{{"case", "a rows/s", "spread", "b rows/s", "spread", "change", "p", ""}},
		right: []bool{false, true, true, true, true, true, true, false},
	}
	for _, p := range c.Cells {
		tested, table := "", ""
		if p.Tested {
			tested = fmt.Sprintf("%.3f", p.P)
		}
		if several {
			table = p.Table
		}
		g.lines = append(g.lines, []string{
			cell(table, p.Settings), units.Amount(p.A.Median), spread(p.A), units.Amount(p.B.Median), spread(p.B),
			p.change(), tested, string(p.Verdict),
		})
	}
	return g
}

// change formats the change of the median; "-" if A's is 0.
func (p Pair) change() string {
	if p.A.Median == 0 && p.B.Median != 0 {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", 100*p.Change)
}

func (c Comparison) slowerText(threshold float64) string {
	var b strings.Builder
	limit := fmt.Sprintf("%.4g %%", 100*threshold)
	slower, broken, uncertain := c.SlowerBy(threshold), c.Broken(), 0
	if len(c.Cells)+len(broken) == 0 {
		return "nothing to compare: no case was measured in both\n"
	}
	if len(slower)+len(broken) == 0 {
		return "no case is slower by more than " + limit + "\n"
	}
	for _, p := range slower {
		fmt.Fprintf(&b, "slower by more than %s: %s, %s", limit, cell(p.Table, p.Settings), p.change())
		if p.Verdict == TooFew {
			uncertain++
			b.WriteString("; " + string(TooFew) + ", so it counts as slower")
		}
		b.WriteString("\n")
	}
	for _, l := range broken {
		fmt.Fprintf(&b, "failed in b: %s\n", cell(l.Table, l.Settings))
	}
	fmt.Fprintf(&b, "%d of %d cases slower by more than %s, %d failed", len(slower), len(c.Cells), limit, len(broken))
	if uncertain > 0 {
		fmt.Fprintf(&b, "; %d of the slower may be noise: 5 pushes on either side would tell", uncertain)
	}
	b.WriteString("\n")
	return b.String()
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

// JSON writes a comparison as one object, with the cases that are slower by more than the threshold. Fields may be
// added under the same schema.
func (c Comparison) JSON(w io.Writer, threshold float64) error {
	out := struct {
		Schema    string  `json:"schema"`
		Threshold float64 `json:"threshold"` // a share; 0 is none
		Slower    []Pair  `json:"slower"`
		Broken    []Lost  `json:"broken"` // measured in a, failed in b
		Comparison
	}{Schema: "terapush.compare/v1", Threshold: threshold, Slower: []Pair{}, Broken: []Lost{}, Comparison: c}
	if threshold > 0 {
		out.Slower, out.Broken = append(out.Slower, c.SlowerBy(threshold)...), append(out.Broken, c.Broken()...)
	}
	text, err := asJSON(out)
	if err != nil {
		return err
	}
	return write(w, "comparison", text)
}
