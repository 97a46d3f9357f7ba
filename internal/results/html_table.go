package results

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// htmlTable is a table as the page has it.
type htmlTable struct {
	Head []htmlCell
	Rows []htmlRow
}

type htmlRow struct {
	Class string // the cell's status, or best
	Cells []htmlCell
}

// htmlCell is one field. Share is the length of the bar behind it, in per cent; 0 is none.
type htmlCell struct {
	Text, Note string
	Number     bool
	Share      int
}

// Long tells whether a text may be broken into lines.
func (c htmlCell) Long() bool { return len(c.Text) > 24 }

// cellTable is the table of all reports, with a bar behind each rate that shows how it stands to the best.
func cellTable(t Table) htmlTable {
	g := gridOf(t, func(t Table, i int) string { // why a push failed is told below
		return Joined(", ", marks(t, i), ending(t.Points[i]))
	})
	rate := slices.Index(g.head, "rows/s")
	best, measured := pointAt(t, t.Best)
	var h htmlTable
	for i, head := range g.head {
		h.Head = append(h.Head, htmlCell{Text: head, Number: g.right[i]})
	}
	for n, texts := range g.rows {
		p := t.Points[n]
		row := htmlRow{Class: string(p.Status)}
		if n == t.Best {
			row.Class = "best"
		}
		for i, text := range texts {
			cell := htmlCell{Text: text, Number: g.right[i]}
			if share := 100 * p.RowsPerSecond.Median / best.RowsPerSecond.Median; i == rate && measured && share >= 1 && share <= 100 {
				cell.Share = int(share)
			}
			row.Cells = append(row.Cells, cell)
		}
		h.Rows = append(h.Rows, row)
	}
	return h
}

// measurements is every quantity of each measured cell, with the smallest and the largest of its pushes.
func measurements(t Table) htmlTable {
	h := htmlTable{Head: []htmlCell{{Text: "cell"}, {Text: "pushes", Number: true}}}
	var points []Point
	for _, p := range t.Points {
		if p.RowsPerSecond.N > 0 {
			points = append(points, p)
			h.Rows = append(h.Rows, htmlRow{Cells: []htmlCell{{Text: cellName(t, p.Settings)}, {Text: strconv.Itoa(p.RowsPerSecond.N), Number: true}}})
		}
	}
	for _, q := range quantities() {
		if !slices.ContainsFunc(points, func(p Point) bool { return q.of(p).N > 0 }) {
			continue
		}
		h.Head = append(h.Head, htmlCell{Text: strings.ReplaceAll(q.name, "_", " "), Number: true})
		for n, p := range points {
			h.Rows[n].Cells = append(h.Rows[n].Cells, q.cell(p))
		}
	}
	return h
}

func (q quantity) cell(p Point) htmlCell {
	s := q.of(p)
	if s.N == 0 {
		return htmlCell{Number: true}
	}
	cell := htmlCell{Text: q.show(s.Median), Number: true}
	if low, high := q.show(s.Low), q.show(s.High); s.N > 1 && low != high {
		cell.Note = low + " … " + high
	}
	return cell
}

func (q quantity) show(v float64) string {
	switch {
	case q.name == "bytes_per_second":
		return humanize.IBytesN(uint64(max(v, 0)), 3)
	case strings.HasSuffix(q.name, "seconds"):
		return seconds(v)
	}
	return amount(v)
}

// pointAt is a point that was measured.
func pointAt(t Table, n int) (Point, bool) {
	if n < 0 || n >= len(t.Points) || t.Points[n].RowsPerSecond.N == 0 {
		return Point{}, false
	}
	return t.Points[n], true
}

// cellName is a cell by what makes it differ from others: words by themselves, numbers with their axis.
func cellName(t Table, settings Settings) string {
	var words []string
	for _, a := range varying(t) {
		value := settings.Value(a.Name)
		switch {
		case value == "":
		case Ordered(a):
			words = append(words, a.Name+" "+value)
		default:
			words = append(words, value)
		}
	}
	if len(words) == 0 {
		return settings.String()
	}
	return strings.Join(words, ", ")
}
