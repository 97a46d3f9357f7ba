package results

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/terapush/terapush/internal/units"
)

// grid is a table of text. Numbers stand to the right.
type grid struct {
	head  []string
	right []bool
	rows  [][]string
	axes  int  // of the first columns
	notes bool // the last column has notes
}

// column is one column of a table of points. One in which no point has a value is left out.
type column struct {
	head  string
	right bool
	of    func(i int, p Point) string
}

// gridOf lays out a table: axes, measured and published figures, and notes.
func gridOf(t Table, notes func(i int) string) grid {
	var columns []column
	for _, a := range t.varying() {
		value := func(_ int, p Point) string { return p.Settings.Value(a.Name) }
		columns = append(columns, column{a.Name, a.ordered(), value})
	}
	axes := len(columns)
	columns = append(columns, figures()...)
	columns = append(columns, alsoPublished()...)
	columns = append(columns, column{"notes", false, func(i int, _ Point) string { return notes(i) }})

	g := grid{rows: make([][]string, len(t.Points))}
	for n, c := range columns {
		cells, some := make([]string, len(t.Points)), false
		for i, p := range t.Points {
			cells[i] = printable(c.of(i, p))
			some = some || cells[i] != ""
		}
		if !some {
			continue
		}
		if n < axes {
			g.axes++
		}
		g.notes = n == len(columns)-1
		g.head, g.right = append(g.head, printable(c.head)), append(g.right, c.right)
		for i, text := range cells {
			g.rows[i] = append(g.rows[i], text)
		}
	}
	return g
}

// figures returns the columns of measured figures, each followed by the published one.
func figures() (columns []column) {
	inMiB := func(n float64) string { return units.Amount(n / mib) }
	later := func(s float64) string { return "+" + units.Seconds(s) }
	overall := func(p Point) Sample { // only to compare it with a published one
		if p.published(overallRate) == 0 {
			return Sample{}
		}
		return p.OverallRowsPerSecond
	}
	for _, f := range []struct {
		head      string
		of        func(Point) Sample
		show      func(float64) string
		seed      string
		published string // quantity; "" never
	}{
		{"rows/s", func(p Point) Sample { return p.RowsPerSecond }, units.Amount,
			"seed rows/s", rowRate},
		{"overall rows/s", overall, units.Amount,
			"seed overall", overallRate},
		{"MiB/s", func(p Point) Sample { return p.BytesPerSecond }, inMiB,
			"seed MiB/s", byteRate},
		{"time", func(p Point) Sample { return p.Seconds }, units.Seconds,
			"seed time", seconds},
		{"p50", func(p Point) Sample { return p.P50 }, units.Seconds, "", ""},
		{"p99", func(p Point) Sample { return p.P99 }, units.Seconds, "", ""},
		{"visible", func(p Point) Sample { return p.VisibleSeconds }, later, "", ""},
		{"stored B/row", func(p Point) Sample { return p.BytesPerRow }, units.Amount, "", ""},
		{"CPU s/GiB", func(p Point) Sample { return p.CPUPerGiB }, units.Amount, "", ""},
	} {
		add := func(head string, of func(Point) string) {
			columns = append(columns, column{head, true, func(_ int, p Point) string { return of(p) }})
		}
		add(f.head, func(p Point) string {
			if f.of(p).N == 0 {
				return ""
			}
			return f.show(f.of(p).Median)
		})
		if f.head == "rows/s" {
			add("spread", func(p Point) string { return spread(p.RowsPerSecond) })
		}
		if f.published == "" {
			continue
		}
		add(f.seed, func(p Point) string {
			if p.published(f.published) == 0 {
				return ""
			}
			return f.show(p.published(f.published))
		})
		if f.head != "time" { // its ratio is that of the rate
			add("here/seed", func(p Point) string { return times(f.of(p).Median, p.published(f.published)) })
		}
	}
	return columns
}

// alsoPublished returns a column for each other quantity, of the cells where it was published: here, and there.
func alsoPublished() (columns []column) {
	for i, q := range (&Point{}).quantities() {
		if slices.Contains([]string{rowRate, overallRate, byteRate, seconds}, q.name) {
			continue
		}
		columns = append(columns, column{q.words() + " (seed)", true, func(_ int, p Point) string {
			there := p.published(q.name)
			if there == 0 {
				return ""
			}
			here := "-"
			if s := p.quantities()[i].sample; s.N > 0 {
				here = q.show(s.Median)
			}
			return here + " (" + q.show(there) + ")"
		}})
	}
	return columns
}

// times formats the ratio of two figures.
func times(here, there float64) string {
	ratio := here / there
	if !finite(ratio) || ratio == 0 {
		return ""
	}
	return "×" + units.Amount(ratio)
}

// spread is "?" for a single push, whose spread is unknown.
func spread(s Sample) string {
	switch s.N {
	case 0:
		return ""
	case 1:
		return "?"
	}
	return "±" + units.Percent(s.Spread())
}

// widths returns the width of each column.
func (g grid) widths() []int {
	widths := make([]int, len(g.head))
	for _, line := range append([][]string{g.head}, g.rows...) {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// minNotes is the width to which notes are cut before figures are left out.
const minNotes = 12

// fit returns the grid in at most so many columns, 0 for any number: notes are cut, and the last figures are left out,
// whose heads it also returns. Axes and the first figure stay, however wide they are.
func (g grid) fit(columns int) (narrow grid, omitted []string) {
	for {
		widths := g.widths()
		over := -columns - 2
		for _, w := range widths {
			over += w + 2
		}
		if columns == 0 || over <= 0 {
			return g, omitted
		}
		last := len(g.head) - 1
		if g.notes {
			if w := max(widths[last]-over, minNotes); w < widths[last] {
				g = g.cut(last, w)
				continue
			}
			last--
		}
		if last <= g.axes {
			return g, omitted
		}
		omitted = slices.Insert(omitted, 0, g.head[last])
		g = g.without(last)
	}
}

// cut shortens the texts of a column.
func (g grid) cut(column, width int) grid {
	g.rows = slices.Clone(g.rows)
	for i, row := range g.rows {
		if text := []rune(row[column]); len(text) > width {
			g.rows[i] = slices.Clone(row)
			g.rows[i][column] = string(text[:width-1]) + "…"
		}
	}
	return g
}

// without leaves a column out.
func (g grid) without(column int) grid {
	g.rows = slices.Clone(g.rows)
	for i, row := range g.rows {
		g.rows[i] = slices.Delete(slices.Clone(row), column, column+1)
	}
	g.head = slices.Delete(slices.Clone(g.head), column, column+1)
	g.right = slices.Delete(slices.Clone(g.right), column, column+1)
	return g
}

// text lays the grid out in columns of one width, with two spaces between.
func (g grid) text() string {
	widths := g.widths()
	lines := append([][]string{g.head}, g.rows...)
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
	rule := make([]string, len(g.head))
	for i, right := range g.right {
		if rule[i] = ":--"; right {
			rule[i] = "--:"
		}
	}
	for i, row := range append([][]string{g.head}, g.rows...) {
		cells := make([]string, len(row))
		for n, cell := range row {
			cells[n] = escape(cell)
		}
		if line(cells); i == 0 {
			line(rule)
		}
	}
	return b.String()
}

var markup = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`)

// escape keeps a text from ending a cell or becoming markup: an error text may hold anything.
func escape(s string) string { return markup.Replace(oneLine(s)) }
