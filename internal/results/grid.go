package results

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/terapush/terapush/internal/units"
)

// grid is a table of text. Text and Markdown show what the cells say, pages also their notes and bars.
type grid struct {
	Head []gridCell
	Rows []gridRow

	axes  int  // of the first columns
	notes bool // the last column has notes
}

// gridRow is a line of a grid. Class is the case's status, or best.
type gridRow struct {
	Class string
	Cells []gridCell
}

// gridCell is one cell. Numbers stand to the right. Note is for pages, as is Share, the length in per cent of the bar
// behind the text.
type gridCell struct {
	Text, Note string
	Number     bool
	Share      int
}

// Long reports whether the text may wrap.
func (c gridCell) Long() bool { return len(c.Text) > 24 }

// addColumn adds a column to a grid that has its rows.
func (g *grid) addColumn(head gridCell, cells []gridCell) {
	g.Head = append(g.Head, head)
	for i, c := range cells {
		c.Number = head.Number
		g.Rows[i].Cells = append(g.Rows[i].Cells, c)
	}
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

	g := grid{Rows: make([]gridRow, len(t.Points))}
	for i, p := range t.Points {
		g.Rows[i].Class = string(p.Status)
		if i == t.Best {
			g.Rows[i].Class = "best"
		}
	}
	for n, c := range columns {
		cells, some := make([]gridCell, len(t.Points)), false
		for i, p := range t.Points {
			cells[i].Text = printable(c.of(i, p))
			if c.head == rateHead {
				cells[i].Share = t.share(p)
			}
			some = some || cells[i].Text != ""
		}
		if !some {
			continue
		}
		if n < axes {
			g.axes++
		}
		g.notes = n == len(columns)-1
		g.addColumn(gridCell{Text: printable(c.head), Number: c.right}, cells)
	}
	return g
}

// rateHead is the column whose figures have bars.
const rateHead = "rows/s"

// share returns a point's rate in per cent of the best; 0 if that is nothing to draw.
func (t Table) share(p Point) int {
	best, measured := t.at(t.Best)
	share := 100 * p.rate() / best.rate()
	if measured && share >= 1 && share <= 100 {
		return int(share)
	}
	return 0
}

// figures returns the columns of measured figures, each followed by the published one.
func figures() (columns []column) {
	inMiB := func(n float64) string { return units.Amount(n / mib) }
	later := func(s float64) string { return "+" + units.Seconds(s) }
	for _, f := range []struct {
		quantity, head string
		show           func(float64) string
		published      string // the head of the published figure, "" without such a column
	}{
		{rowRate, rateHead, units.Amount, "published rows/s"},
		{overallRate, "overall rows/s", units.Amount, "published overall"},
		{byteRate, "MiB/s", inMiB, "published MiB/s"},
		{seconds, "time", units.Seconds, "published time"},
		{"batch_p50_seconds", "p50", units.Seconds, ""},
		{"batch_p99_seconds", "p99", units.Seconds, ""},
		{"visible_seconds", "visible", later, ""},
		{"stored_bytes_per_row", "stored B/row", units.Amount, ""},
		{"cpu_seconds_per_gib", "CPU s/GiB", units.Amount, ""},
	} {
		add := func(head string, of func(Point) string) {
			columns = append(columns, column{head, true, func(_ int, p Point) string { return of(p) }})
		}
		add(f.head, func(p Point) string {
			s := p.sample(f.quantity)
			if s.N == 0 || f.quantity == overallRate && p.published(overallRate) == 0 { // only beside a published one
				return ""
			}
			return f.show(s.Median)
		})
		if f.quantity == rowRate {
			add("spread", func(p Point) string { return spread(p.RowsPerSecond) })
			add("95 % within", func(p Point) string { return interval(p.RowsPerSecond) })
		}
		if f.published == "" {
			continue
		}
		add(f.published, func(p Point) string {
			if p.published(f.quantity) == 0 {
				return ""
			}
			return f.show(p.published(f.quantity))
		})
		if f.quantity != seconds { // its ratio is that of the rate
			add("here/published", func(p Point) string { return times(p.sample(f.quantity).Median, p.published(f.quantity)) })
		}
	}
	return columns
}

// alsoPublished returns a column for each other quantity, of the cells where it was published: here, and there.
func alsoPublished() (columns []column) {
	for _, name := range Quantities() {
		if slices.Contains([]string{rowRate, overallRate, byteRate, seconds}, name) {
			continue
		}
		columns = append(columns, column{words(name) + " (published)", true, func(_ int, p Point) string {
			there := p.published(name)
			if there == 0 {
				return ""
			}
			here := "-"
			if s := p.sample(name); s.N > 0 {
				here = show(name, s.Median)
			}
			return here + " (" + show(name, there) + ")"
		}})
	}
	return columns
}

func times(here, there float64) string {
	ratio := here / there
	if !finite(ratio) || ratio == 0 {
		return ""
	}
	return "×" + units.Amount(ratio)
}

// spread is "" for a single push, whose spread is unknown.
func spread(s Sample) string {
	if s.N < 2 {
		return ""
	}
	return "±" + units.Percent(s.Spread())
}

// interval is where the median of ever more pushes lies, "" if that is not known.
func interval(s Sample) string {
	if s.N < LeastTrials {
		return ""
	}
	return units.Amount(s.MedianLow) + " … " + units.Amount(s.MedianHigh)
}

// lines returns the head and the rows.
func (g grid) lines() [][]gridCell {
	all := [][]gridCell{g.Head}
	for _, row := range g.Rows {
		all = append(all, row.Cells)
	}
	return all
}

func (g grid) widths() []int {
	widths := make([]int, len(g.Head))
	for _, line := range g.lines() {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell.Text))
		}
	}
	return widths
}

// minNotes is the width to which notes are cut before figures are left out.
const minNotes = 12

// fit makes the grid at most so wide, 0 for any width: it cuts notes, and removes the last figures, whose names it
// returns. Axes and the first figure stay, however wide they are.
func (g *grid) fit(columns int) (omitted []string) {
	for {
		widths := g.widths()
		over := -columns - 2
		for _, w := range widths {
			over += w + 2
		}
		if columns == 0 || over <= 0 {
			return omitted
		}

		last := len(widths) - 1
		if g.notes {
			if w := max(widths[last]-over, minNotes); w < widths[last] {
				g.cut(last, w)
				continue
			}
			last--
		}
		if last <= g.axes {
			return omitted
		}
		omitted = slices.Insert(omitted, 0, g.Head[last].Text)
		g.remove(last)
	}
}

func (g grid) cut(column, width int) {
	for _, line := range g.lines() {
		if text := []rune(line[column].Text); len(text) > width {
			line[column].Text = string(text[:width-1]) + "…"
		}
	}
}

func (g *grid) remove(column int) {
	g.Head = slices.Delete(g.Head, column, column+1)
	for i, row := range g.Rows {
		g.Rows[i].Cells = slices.Delete(row.Cells, column, column+1)
	}
}

// text lays the grid out in columns of one width, with two spaces between.
func (g grid) text() string {
	widths := g.widths()
	var b strings.Builder
	for _, line := range g.lines() {
		padded := make([]string, len(line))
		for i, cell := range line {
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell.Text))
			if padded[i] = cell.Text + gap; cell.Number {
				padded[i] = gap + cell.Text
			}
		}
		b.WriteString(strings.TrimRight(strings.Join(padded, "  "), " ") + "\n")
	}
	return b.String()
}

func (g grid) markdown() string {
	rule := "|"
	for _, head := range g.Head {
		if head.Number {
			rule += " --: |"
		} else {
			rule += " :-- |"
		}
	}
	var b strings.Builder
	for i, line := range g.lines() {
		b.WriteString("|")
		for _, cell := range line {
			b.WriteString(" " + escape(cell.Text) + " |")
		}
		b.WriteString("\n")
		if i == 0 {
			b.WriteString(rule + "\n")
		}
	}
	return b.String()
}

var markup = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "<", "&lt;", ">", "&gt;", "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`)

// escape keeps a text from ending a cell or becoming markup: an error text may hold anything.
func escape(s string) string { return markup.Replace(units.OneLine(s)) }
