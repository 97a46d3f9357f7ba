package results

import (
	"fmt"
	"io"
	"strings"
)

// CompareSchema names the form of CompareJSON. Fields may be added under the same name.
const CompareSchema = "terapush.compare/v1"

// CompareText writes a comparison for people: the cells, those of one record only, and every input that differs. With a
// threshold above 0, a share of A's rate, it ends with the cells that are slower by more.
func CompareText(w io.Writer, c Comparison, threshold float64) error {
	c = legibleComparison(c)
	var b strings.Builder
	fmt.Fprintf(&b, "a %s\nb %s\n", c.A, c.B)
	if len(c.Cells) > 0 {
		b.WriteString("\n" + gridOfPairs(c).text())
	}
	if len(c.Lost) > 0 {
		b.WriteString("\n")
	}
	for _, l := range c.Lost {
		b.WriteString(lost(l) + "\n")
	}
	b.WriteString("\n")
	if len(c.Inputs) == 0 {
		b.WriteString("no input differs\n")
	}
	for _, d := range c.Inputs {
		fmt.Fprintf(&b, "%-17s a %s\n%-17s b %s\n", d.Name, orNone(d.A), "", orNone(d.B))
	}
	if threshold > 0 {
		b.WriteString("\n" + failing(c, threshold))
	}
	return write(w, "comparison", b.String())
}

func gridOfPairs(c Comparison) grid {
	tables := map[string]bool{}
	for _, p := range c.Cells {
		tables[p.Table] = true
	}
	g := grid{
		head:  []string{"cell", "a rows/s", "spread", "b rows/s", "spread", "change", "p", ""},
		right: []bool{false, true, true, true, true, true, true, false},
	}
	for _, p := range c.Cells {
		tested := ""
		if p.Tested {
			tested = fmt.Sprintf("%.3f", p.P)
		}
		g.rows = append(g.rows, []string{
			cell(p.Table, p.Settings, len(tables) > 1), amount(p.A.Median), spread(p.A), amount(p.B.Median), spread(p.B),
			change(p), tested, string(p.Verdict),
		})
	}
	return g
}

// change is that of the median; "-" where there is nothing that it could be a share of.
func change(p Pair) string {
	if p.A.Median == 0 && p.B.Median != 0 {
		return "-"
	}
	return fmt.Sprintf("%+.1f %%", 100*p.Change)
}

func lost(l Lost) string {
	text := fmt.Sprintf("only in %s: %s", l.In, cell(l.Table, l.Settings, l.Table != ""))
	if l.Other != "" {
		text += "; in the other " + Joined(": ", string(l.Other), oneLine(l.Error))
	}
	return text
}

func failing(c Comparison, threshold float64) string {
	var b strings.Builder
	limit := inPercent(threshold)
	slower, broken, untold := c.SlowerBy(threshold), c.Broken(), 0
	if len(c.Cells)+len(broken) == 0 {
		return "nothing to compare: no cell was measured in both\n"
	}
	if len(slower)+len(broken) == 0 {
		return "no cell is slower by more than " + limit + "\n"
	}
	for _, p := range slower {
		fmt.Fprintf(&b, "slower by more than %s: %s, %s", limit, cell(p.Table, p.Settings, p.Table != ""), change(p))
		if p.Verdict == TooFew {
			untold++
			b.WriteString("; " + string(TooFew) + ", so it counts as slower")
		}
		b.WriteString("\n")
	}
	for _, l := range broken {
		fmt.Fprintf(&b, "failed in b: %s\n", cell(l.Table, l.Settings, l.Table != ""))
	}
	fmt.Fprintf(&b, "%d of %d cells slower by more than %s, %d failed", len(slower), len(c.Cells), limit, len(broken))
	if untold > 0 {
		fmt.Fprintf(&b, "; of %d of the slower nobody can say whether it is noise: 5 pushes on either side would tell", untold)
	}
	b.WriteString("\n")
	return b.String()
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return oneLine(s)
}

// cell names a cell, with its table where there are several.
func cell(table string, settings Settings, several bool) string {
	if !several {
		table = ""
	}
	text := Joined(": ", table, settings.String())
	if text == "" {
		return "the run"
	}
	return text
}

// CompareJSON writes a comparison as one object, with the cells that are slower by more than the threshold.
func CompareJSON(w io.Writer, c Comparison, threshold float64) error {
	out := struct {
		Schema    string  `json:"schema"`
		Threshold float64 `json:"threshold"` // a share; 0 is none
		Slower    []Pair  `json:"slower"`
		Broken    []Lost  `json:"broken"` // measured in a, failed in b
		Comparison
	}{Schema: CompareSchema, Threshold: threshold, Slower: []Pair{}, Broken: []Lost{}, Comparison: c}
	if threshold > 0 {
		out.Slower, out.Broken = append(out.Slower, c.SlowerBy(threshold)...), append(out.Broken, c.Broken()...)
	}
	return writeJSON(w, out)
}
