package results

import (
	"cmp"
	_ "embed" // the page
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/results/chart"
)

//go:embed compare.tmpl
var compareTemplate string

// HTML writes a comparison as one page, as asHTML does. The threshold is a share of A's rate, 0 without one.
func (c Comparison) HTML(w io.Writer, threshold float64) error {
	t, err := template.New("page").Parse(compareTemplate)
	if err == nil {
		_, err = t.New("tables").Parse(pageTemplate) // for its table
	}
	if err != nil {
		return fmt.Errorf("the page of a comparison: %w", err)
	}
	c = c.judged(threshold)
	limit := margin
	if threshold > 0 {
		limit = threshold
	}
	page := struct {
		Title, A, B, Verdict string
		Style                template.CSS
		Tiles                []tile
		Warnings             []string
		Figure               figure
		Cells                grid
		Only                 []Input
		Inputs               []Difference
	}{
		Title: c.headline(), A: c.A, B: c.B, Style: template.CSS(chart.Style + pageStyle), Tiles: c.tiles(),
		Warnings: c.Unlike, Figure: c.figure(limit), Cells: c.grid(), Inputs: c.Inputs,
		Verdict: c.conclusion(threshold), Only: c.only(),
	}
	var b strings.Builder
	if err := t.Execute(&b, page); err != nil {
		return fmt.Errorf("the page of a comparison: %w", err)
	}
	return write(w, "comparison", b.String())
}

// count returns how many cases have the verdict.
func (c Comparison) count(v Verdict) (n int) {
	for _, p := range c.Cells {
		if p.Verdict == v {
			n++
		}
	}
	return n
}

// verdicts in the order of what a reader has to know first.
var verdicts = []Verdict{Slower, Inconclusive, OtherRows, Same, Faster}

// caseName names a case, with its table if there are several.
func (c Comparison) caseName(p Pair) string {
	if slices.ContainsFunc(c.Cells, func(o Pair) bool { return o.Table != p.Table }) {
		return cell(p.Table, p.Settings)
	}
	return cell("", p.Settings)
}

func (c Comparison) headline() string {
	var parts []string
	for _, v := range verdicts {
		i := slices.IndexFunc(c.Cells, func(p Pair) bool { return p.Verdict == v })
		if i >= 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.count(v), c.Cells[i].verdictText()))
		}
	}
	if n := len(c.Broken()); n > 0 {
		parts = append(parts, fmt.Sprintf("%d failed in B", n))
	}
	if len(parts) == 0 {
		return "Nothing to compare"
	}
	return fmt.Sprintf("B against A: %s", strings.Join(parts, ", "))
}

func (c Comparison) tiles() (list []tile) {
	of := "of " + many(len(c.Cells), "case")
	for _, v := range verdicts {
		var which []string
		for _, p := range c.Cells {
			if p.Verdict == v {
				which = append(which, cell("", p.Settings)+" "+p.changeText())
			}
		}
		if len(which) > 0 {
			name, note := strings.ToUpper(string(v[:1]))+string(v[1:]), firstFew(which)
			if v == Same {
				note = ""
			}
			list = append(list, tile{name, fmt.Sprint(len(which)), of, note})
		}
	}
	if n := len(c.Broken()); n > 0 {
		list = append(list, tile{"Failed in B", fmt.Sprint(n), "", "measured in A"})
	}
	if n := len(c.Missing()); n > 0 {
		list = append(list, tile{"Not measured in B", fmt.Sprint(n), "", "measured in A"})
	}
	return list
}

// figure shows the changes, those of the largest losses first if there are too many.
func (c Comparison) figure(limit float64) figure {
	const most = 40
	shown := slices.Clone(c.Cells)
	caption := "The change of the median rate from A to B, with its 99 % interval. " +
		"A case is decided if the whole interval is on one side of 0, or within the shaded margin."
	if len(shown) > most {
		slices.SortStableFunc(shown, func(a, b Pair) int { return cmp.Compare(a.Change, b.Change) })
		shown = shown[:most]
		caption += fmt.Sprintf(" The %d cases with the largest losses of %d are shown.", most, len(c.Cells))
	}
	changes := chart.Changes{Margin: limit}
	kinds := map[Verdict]chart.ChangeKind{
		Slower: chart.Less, Faster: chart.More, Same: chart.Unchanged, Inconclusive: chart.Open, OtherRows: chart.Open,
	}
	for _, p := range shown {
		row := chart.Change{
			Name: c.caseName(p), Note: p.changeText() + ", " + p.verdictText(), Value: p.Change, Kind: kinds[p.Verdict],
		}
		if p.within() != "" {
			row.Low, row.High = p.low, p.high
		}
		changes.Rows = append(changes.Rows, row)
	}
	const title = "Change of rows/s by case"
	frame := chart.Frame{ID: "c1", Title: title, Desc: caption, Width: chart.Narrow}
	f := figure{Title: title, Caption: caption, Narrow: template.HTML(changes.Draw(frame))}
	frame.ID, frame.Width = "c1w", chart.Wide
	f.Wide = template.HTML(changes.Draw(frame))
	return f
}
