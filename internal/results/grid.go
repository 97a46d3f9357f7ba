package results

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/terapush/terapush/internal/units"
)

// grid is a table of text. Text and Markdown show what the cells say, pages also their notes and bars.
type grid struct {
	Head []gridCell
	Rows []gridRow

	axes int // of the first columns
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

// column is one column of a grid, by what its rows are made of. One in which no row has a text is left out.
type column[T any] struct {
	head   string
	number bool
	of     func(T) gridCell
}

// gridOf lays out rows in columns.
func gridOf[T any](rows []T, columns []column[T]) grid {
	g := grid{Rows: make([]gridRow, len(rows))}
	for _, c := range columns {
		cells, some := make([]gridCell, len(rows)), false
		for i, row := range rows {
			cells[i] = c.of(row)
			cells[i].Text, cells[i].Number = printable(cells[i].Text), c.number
			some = some || cells[i].Text != ""
		}
		if !some {
			continue
		}
		g.Head = append(g.Head, gridCell{Text: printable(c.head), Number: c.number})
		for i := range rows {
			g.Rows[i].Cells = append(g.Rows[i].Cells, cells[i])
		}
	}
	return g
}

// caseGrid lays out a table: axes, measured and published figures, and notes.
func caseGrid(t Table) grid {
	var columns []column[int]
	best, _ := t.at(t.Best)
	add := func(head string, number bool, of func(Point) string) {
		columns = append(columns, column[int]{head, number, func(i int) gridCell {
			cell := gridCell{Text: of(t.Points[i])}
			if head == rateHead {
				cell.Share = percentOf(t.Points[i].rate(), best.rate())
			}
			return cell
		}})
	}
	axes := t.varying()
	for _, a := range axes {
		add(a.Name, a.ordered(), func(p Point) string { return p.Settings.Value(a.Name) })
	}
	addFigures(add)
	columns = append(columns, column[int]{notesHead, false, func(i int) gridCell { return gridCell{Text: notes(t, i)} }})

	all := make([]int, len(t.Points))
	for i := range all {
		all[i] = i
	}
	g := gridOf(all, columns)
	g.axes = len(axes)
	for i, p := range t.Points {
		g.Rows[i].Class = string(p.Status)
		if i == t.Best {
			g.Rows[i].Class = "best"
		}
	}
	return g
}

const (
	rateHead  = "rows/s" // the column whose figures have bars
	notesHead = "notes"
)

// percentOf returns a rate in per cent of the best; 0 if that is nothing to draw.
func percentOf(rate, best float64) int {
	if share := 100 * rate / best; share >= 1 && share <= 100 {
		return int(share)
	}
	return 0
}

// addFigures adds the columns of measured figures, each followed by the published one, and then one for each other
// quantity, of the cases where it was published: here, and there.
func addFigures(add func(head string, number bool, of func(Point) string)) {
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
		add(f.head, true, func(p Point) string {
			if f.quantity == overallRate && p.published(overallRate) == 0 { // only beside a published one
				return ""
			}
			return p.sample(f.quantity).show(f.show)
		})
		if f.quantity == rowRate {
			add("spread", true, func(p Point) string { return spread(p.RowsPerSecond) })
			add("95 % within", true, func(p Point) string { return interval(p.RowsPerSecond) })
		}
		if f.published == "" {
			continue
		}
		add(f.published, true, func(p Point) string {
			if p.published(f.quantity) == 0 {
				return ""
			}
			return f.show(p.published(f.quantity))
		})
		if f.quantity != seconds { // its ratio is that of the rate
			add("here/published", true, func(p Point) string {
				return times(p.sample(f.quantity).Median, p.published(f.quantity))
			})
		}
	}
	for _, name := range Quantities() {
		if slices.Contains([]string{rowRate, overallRate, byteRate, seconds}, name) {
			continue
		}
		add(words(name)+" (published)", true, func(p Point) string {
			there := p.published(name)
			if there == 0 {
				return ""
			}
			of := func(v float64) string { return show(name, v) }
			return cmp.Or(p.sample(name).show(of), "-") + " (" + of(there) + ")"
		})
	}
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

// fit makes the grid at most so wide, 0 for any width: it removes the last figures, whose names it returns. Axes, the
// first figure and notes stay, however wide they are.
func (g *grid) fit(columns int) (omitted []string) {
	for columns > 0 && g.width() > columns {
		last := len(g.Head) - 1
		if g.Head[last].Text == notesHead {
			last--
		}
		if last <= g.axes {
			break
		}
		omitted = slices.Insert(omitted, 0, g.Head[last].Text)
		g.Head = slices.Delete(g.Head, last, last+1)
		for i, row := range g.Rows {
			g.Rows[i].Cells = slices.Delete(row.Cells, last, last+1)
		}
	}
	return omitted
}

func (g grid) width() int {
	sum := -2
	for _, w := range g.widths() {
		sum += w + 2
	}
	return sum
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
