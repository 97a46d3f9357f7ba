package results

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/results/chart"
)

// html writes a comparison as one page, as asHTML does.
func (c Comparison) html() (string, error) {
	page := struct {
		Comparison
		Title, Verdict string
		Style          template.CSS
		Tiles          []tile
		Figure         figure
		Table          grid
		Only           []Input
	}{c, c.headline(), c.conclusion(), style(), c.tiles(), c.changes().figure("c1"), c.grid(), c.only()}
	return executed("compare.tmpl", page)
}

// verdicts in the order of what a reader has to know first.
var verdicts = []Verdict{Slower, Inconclusive, OtherRows, Same, Faster}

// with returns the cases of a verdict.
func (c Comparison) with(v Verdict) []Pair {
	return those(c.Cells, func(p Pair) bool { return p.Verdict == v })
}

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
		if cases := c.with(v); len(cases) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", len(cases), cases[0].verdictText()))
		}
	}
	if n := len(c.Broken); n > 0 {
		parts = append(parts, fmt.Sprintf("%d failed in B", n))
	}
	if len(parts) == 0 {
		return "Nothing to compare"
	}
	return fmt.Sprintf("B against A: %s", strings.Join(parts, ", "))
}

func (c Comparison) tiles() (list []tile) {
	of := "of " + english.Plural(len(c.Cells), "case", "")
	for _, v := range verdicts {
		var which []string
		for _, p := range c.with(v) {
			which = append(which, cell("", p.Settings)+" "+p.changeText())
		}
		one := tile{strings.ToUpper(string(v[:1])) + string(v[1:]), fmt.Sprint(len(which)), of, firstFew(which)}
		if v == Same {
			one.Note = ""
		}
		if len(which) > 0 {
			list = append(list, one)
		}
	}
	if n := len(c.Broken); n > 0 {
		list = append(list, tile{"Failed in B", fmt.Sprint(n), "", "measured in A"})
	}
	if n := len(c.Missing); n > 0 {
		list = append(list, tile{"Not measured in B", fmt.Sprint(n), "", "measured in A"})
	}
	return list
}

// changes shows the changes, those of the largest losses first if there are too many.
func (c Comparison) changes() sketch {
	const most = 40
	shown := slices.Clone(c.Cells)
	caption := "The change of the median rate from A to B, with its 99 % interval. " +
		"A case is decided if the whole interval is on one side of 0, or within the shaded margin."
	if len(shown) > most {
		slices.SortStableFunc(shown, func(a, b Pair) int { return cmp.Compare(a.Change, b.Change) })
		shown = shown[:most]
		caption += fmt.Sprintf(" The %d cases with the largest losses of %d are shown.", most, len(c.Cells))
	}
	drawn := chart.Changes{Margin: cmp.Or(c.Threshold, margin)}
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
		drawn.Rows = append(drawn.Rows, row)
	}
	return sketch{title: "Change of rows/s by case", caption: caption, wide: true, draw: drawn.Draw}
}
