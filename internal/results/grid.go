package results

import (
	"strings"
	"unicode/utf8"

	"github.com/terapush/terapush/internal/units"
)

// grid is a table of text. Numbers stand to the right.
type grid struct {
	head  []string
	right []bool
	rows  [][]string
}

// column is one column of a table of points. One in which no point has a value is left out.
type column struct {
	head  string
	right bool
	of    func(i int, p Point) string
}

// gridOf lays out a table: its axes, what was measured, what was published, and notes.
func gridOf(t Table, notes func(i int) string) grid {
	var columns []column
	for _, a := range t.varying() {
		value := func(_ int, p Point) string { return p.Settings.Value(a.Name) }
		columns = append(columns, column{a.Name, a.ordered(), value})
	}
	columns = append(columns, figures()...)
	columns = append(columns, column{"notes", false, func(i int, _ Point) string { return notes(i) }})

	g := grid{rows: make([][]string, len(t.Points))}
	for _, c := range columns {
		cells, some := make([]string, len(t.Points)), false
		for i, p := range t.Points {
			cells[i] = printable(c.of(i, p))
			some = some || cells[i] != ""
		}
		if !some {
			continue
		}
		g.head, g.right = append(g.head, printable(c.head)), append(g.right, c.right)
		for i, text := range cells {
			g.rows[i] = append(g.rows[i], text)
		}
	}
	return g
}

// figures are the columns of what was measured here, each beside what was published of it.
func figures() []column {
	type sample = func(Point) Sample
	type fact = func(Fact) float64
	inMiB := func(n float64) string { return units.Amount(n / mib) }
	median := func(of sample, show func(float64) string) func(int, Point) string {
		return func(_ int, p Point) string {
			if of(p).N == 0 {
				return ""
			}
			return show(of(p).Median)
		}
	}
	published := func(of fact, show func(float64) string) func(int, Point) string {
		return func(_ int, p Point) string {
			if p.Fact == nil || of(*p.Fact) == 0 {
				return ""
			}
			return show(of(*p.Fact))
		}
	}
	beside := func(here sample, there fact) func(int, Point) string {
		return func(_ int, p Point) string {
			if p.Fact == nil {
				return ""
			}
			return times(here(p).Median, there(*p.Fact))
		}
	}
	rate, rateThere := func(p Point) Sample { return p.RowsPerSecond }, func(f Fact) float64 { return f.RowsPerSecond }
	bytes, bytesThere := func(p Point) Sample { return p.BytesPerSecond }, func(f Fact) float64 { return f.BytesPerSecond }
	overallThere := func(f Fact) float64 { return f.OverallRowsPerSecond }
	overall := func(p Point) Sample { // only where somebody published one to compare it with
		if p.Fact == nil || p.Fact.OverallRowsPerSecond <= 0 {
			return Sample{}
		}
		return p.OverallRowsPerSecond
	}
	return []column{
		{"rows/s", true, median(rate, units.Amount)},
		{"spread", true, func(_ int, p Point) string { return spread(p.RowsPerSecond) }},
		{"seed rows/s", true, published(rateThere, units.Amount)},
		{"here/seed", true, beside(rate, rateThere)},
		{"overall rows/s", true, median(overall, units.Amount)},
		{"seed overall", true, published(overallThere, units.Amount)},
		{"here/seed", true, beside(overall, overallThere)},
		{"MiB/s", true, median(bytes, inMiB)},
		{"seed MiB/s", true, published(bytesThere, inMiB)},
		{"here/seed", true, beside(bytes, bytesThere)},
		{"time", true, median(func(p Point) Sample { return p.Seconds }, units.Seconds)},
		{"seed time", true, published(func(f Fact) float64 { return f.Seconds }, units.Seconds)},
		{"p50", true, median(func(p Point) Sample { return p.P50 }, units.Seconds)},
		{"p99", true, median(func(p Point) Sample { return p.P99 }, units.Seconds)},
		{"visible", true, median(func(p Point) Sample { return p.VisibleSeconds },
			func(s float64) string { return "+" + units.Seconds(s) })},
		{"stored B/row", true, median(func(p Point) Sample { return p.BytesPerRow }, units.Amount)},
		{"CPU s/GiB", true, median(func(p Point) Sample { return p.CPUPerGiB }, units.Amount)},
	}
}

// times is how a figure here stands to a published one.
func times(here, there float64) string {
	ratio, known := finite(here/there, here != 0 && there != 0)
	if !known || ratio == 0 {
		return ""
	}
	return "×" + units.Amount(ratio)
}

// spread is "?" for a single push: no spread is known, which is not the same as none.
func spread(s Sample) string {
	switch s.N {
	case 0:
		return ""
	case 1:
		return "?"
	}
	return "±" + units.Percent(s.Spread())
}

// text lays the grid out in columns of one width, with two spaces between.
func (g grid) text() string {
	widths := make([]int, len(g.head))
	lines := append([][]string{g.head}, g.rows...)
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, line := range lines {
		padded := make([]string, len(line))
		for i, cell := range line {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if padded[i] = cell + gap; g.right[i] {
				padded[i] = gap + cell
			}
		}
		b.WriteString(strings.TrimRight(strings.Join(padded, "  "), " ") + "\n")
	}
	return b.String()
}

// markdown is the grid as GitHub's tables.
func (g grid) markdown() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	escaped := func(cells []string) []string {
		clean := make([]string, len(cells))
		for i, cell := range cells {
			clean[i] = escape(cell)
		}
		return clean
	}
	rule := make([]string, len(g.head))
	for i, right := range g.right {
		if rule[i] = ":--"; right {
			rule[i] = "--:"
		}
	}
	line(escaped(g.head))
	line(rule)
	for _, row := range g.rows {
		line(escaped(row))
	}
	return b.String()
}

var markup = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`)

// escape keeps a text from ending a cell or becoming markup: an error text may hold anything.
func escape(s string) string { return markup.Replace(oneLine(s)) }
