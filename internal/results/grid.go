package results

import (
	"strings"
	"unicode/utf8"
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

// gridOf lays out a table: its axes, what was measured, what was published, and notes as a function makes them.
func gridOf(t Table, notes func(t Table, i int) string) grid {
	var columns []column
	for _, a := range varying(t) {
		columns = append(columns, column{a.Name, Ordered(a), func(_ int, p Point) string { return p.Settings.Value(a.Name) }})
	}
	columns = append(columns, measured()...)
	columns = append(columns, column{"notes", false, func(i int, _ Point) string { return notes(t, i) }})

	var g grid
	for _, c := range columns {
		cells, some := make([]string, len(t.Points)), false
		for i, p := range t.Points {
			cells[i] = c.of(i, p)
			some = some || cells[i] != ""
		}
		if some {
			g.add(c, cells)
		}
	}
	return g
}

func measured() []column {
	median := func(of func(Point) Sample, show func(float64) string) func(int, Point) string {
		return func(_ int, p Point) string {
			if s := of(p); s.N > 0 {
				return show(s.Median)
			}
			return ""
		}
	}
	// published shows a fact, and beside shows how the figure here stands to it.
	published := func(of func(*Fact) float64) func(int, Point) string {
		return func(_ int, p Point) string {
			if p.Fact == nil || of(p.Fact) == 0 {
				return ""
			}
			return amount(of(p.Fact))
		}
	}
	beside := func(here func(Point) Sample, there func(*Fact) float64) func(int, Point) string {
		return func(_ int, p Point) string {
			if p.Fact == nil {
				return ""
			}
			return times(here(p).Median, there(p.Fact))
		}
	}
	rate := func(p Point) Sample { return p.RowsPerSecond }
	overall := func(p Point) Sample { return p.OverallRowsPerSecond }
	bytes := func(p Point) Sample { return p.BytesPerSecond }
	time := func(p Point) Sample { return p.Seconds }
	inMiB := func(n float64) string { return amount(n / mib) }
	return []column{
		{"rows/s", true, median(rate, amount)},
		{"spread", true, func(_ int, p Point) string { return spread(p.RowsPerSecond) }},
		{"seed rows/s", true, published(func(f *Fact) float64 { return f.RowsPerSecond })},
		{"here/seed", true, beside(rate, func(f *Fact) float64 { return f.RowsPerSecond })},
		{"overall rows/s", true, withFact(median(overall, amount), func(f *Fact) bool { return f.OverallRowsPerSecond > 0 })},
		{"seed overall", true, published(func(f *Fact) float64 { return f.OverallRowsPerSecond })},
		{"here/seed", true, beside(overall, func(f *Fact) float64 { return f.OverallRowsPerSecond })},
		{"MiB/s", true, median(bytes, inMiB)},
		{"seed MiB/s", true, published(func(f *Fact) float64 { return f.BytesPerSecond / mib })},
		{"here/seed", true, beside(bytes, func(f *Fact) float64 { return f.BytesPerSecond })},
		{"time", true, median(time, seconds)},
		{"seed time", true, func(_ int, p Point) string {
			if p.Fact == nil || p.Fact.Seconds == 0 {
				return ""
			}
			return seconds(p.Fact.Seconds)
		}},
		{"p50", true, median(func(p Point) Sample { return p.P50 }, seconds)},
		{"p99", true, median(func(p Point) Sample { return p.P99 }, seconds)},
		{"visible", true, median(func(p Point) Sample { return p.VisibleSeconds }, func(s float64) string { return "+" + seconds(s) })},
		{"stored B/row", true, median(func(p Point) Sample { return p.BytesPerRow }, amount)},
		{"CPU s/GiB", true, median(func(p Point) Sample { return p.CPUPerGiB }, amount)},
	}
}

// withFact shows a figure only where somebody published one to compare it with.
func withFact(show func(int, Point) string, has func(*Fact) bool) func(int, Point) string {
	return func(i int, p Point) string {
		if p.Fact == nil || !has(p.Fact) {
			return ""
		}
		return show(i, p)
	}
}

// spread is "?" for a single push: no spread is known, which is not the same as none.
func spread(s Sample) string {
	switch s.N {
	case 0:
		return ""
	case 1:
		return "?"
	}
	return plusMinus(s.Spread())
}

func (g *grid) add(c column, cells []string) {
	g.head, g.right = append(g.head, c.head), append(g.right, c.right)
	if g.rows == nil {
		g.rows = make([][]string, len(cells))
	}
	for i, text := range cells {
		g.rows[i] = append(g.rows[i], text)
	}
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
		var row strings.Builder
		for i, cell := range line {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				row.WriteString("  ")
			}
			if g.right[i] {
				row.WriteString(gap + cell)
			} else {
				row.WriteString(cell + gap)
			}
		}
		b.WriteString(strings.TrimRight(row.String(), " ") + "\n")
	}
	return b.String()
}

// markdown is the grid as GitHub's tables.
func (g grid) markdown() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	escaped := make([]string, len(g.head))
	rule := make([]string, len(g.head))
	for i, h := range g.head {
		escaped[i], rule[i] = escape(h), ":--"
		if g.right[i] {
			rule[i] = "--:"
		}
	}
	line(escaped)
	line(rule)
	for _, row := range g.rows {
		for i, cell := range row {
			escaped[i] = escape(cell)
		}
		line(escaped)
	}
	return b.String()
}

// escape keeps a text from ending a cell or becoming markup: an error text may hold anything.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`).Replace(oneLine(s))
}
