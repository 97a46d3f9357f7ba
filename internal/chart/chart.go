// Package chart draws figures as SVG: lines, ranges, bars and a time line, of plain numbers and by gonum's plot.
//
// A drawing has no colours and no fonts of its own but classes, for which Style has the rules: so it is right in light and
// dark, inherits the page's font, and is as wide as its place. Numbers that cannot be drawn are left out (NaN, infinite,
// and what is not positive on a logarithmic axis); with none left the drawing says so.
package chart

import (
	_ "embed" // style.css
	"fmt"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Style is the rules of CSS for all drawings, once a page. Drawings with Frame.Alone have them inside.
//
//go:embed style.css
var Style string

// Frame is what is around a drawing.
type Frame struct {
	ID          string // unique on the page: a letter, then letters, digits and dashes
	Title, Desc string // for those who listen; Desc says in a sentence what the drawing shows
	Width       float64
	Alone       bool // a file of its own: the title is drawn, the style and the font are inside
}

// Widths in units of the drawing. Text is 12 units high.
const (
	Narrow = 360 // beside others, and on a phone
	Wide   = 760 // of two columns, or a file of its own
)

const (
	fontSize = 12
	line     = 18.0 // of text, from baseline to baseline
	margin   = 8.0  // between things
)

// drawing is a canvas with a head of title, legend and unit, and a body below it.
type drawing struct {
	*canvas
	frame Frame
	body  draw.Canvas
}

// start makes a canvas with room for a body of the given height, and draws the head. The unit stands over the y axis.
func (f Frame) start(body float64, unit string, entries []entry) *drawing {
	rows := layOut(entries, f.Width)
	head := float64(len(rows)) * line
	if f.Alone {
		head += line + margin
	}
	if len(rows) > 0 {
		head += margin
	}
	if unit != "" {
		head += line
	}
	d := &drawing{canvas: newCanvas(f.Width, head+body), frame: f}
	whole := draw.New(d.canvas)
	y := vg.Length(d.height)
	write := func(i ink, s string) {
		whole.FillText(d.style(i), vg.Point{Y: y - fontSize}, fit(s, f.Width))
		y -= vg.Length(line)
	}
	if f.Alone {
		write(plain+" title", f.Title)
		y -= vg.Length(margin)
	}
	for _, row := range rows {
		for _, e := range row {
			e.draw(d, whole, y-vg.Length(line/2))
		}
		y -= vg.Length(line)
	}
	if len(rows) > 0 {
		y -= vg.Length(margin)
	}
	if unit != "" {
		write(quiet, unit)
	}
	d.body = draw.Crop(whole, 1, -1, 0, y-vg.Length(d.height))
	return d
}

// nothing writes that there is nothing to draw.
func (d *drawing) nothing() []byte {
	s := d.style(quiet)
	s.XAlign = draw.XCenter
	d.body.FillText(s, d.body.Center(), "nothing measured")
	return d.finish()
}

// finish is the SVG.
func (d *drawing) finish() []byte {
	d.end()
	var b strings.Builder
	id := d.frame.ID
	class, border := "chart", 0.0
	if d.frame.Alone {
		class, border = "chart alone", 16
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="%s" viewBox="%s %s %s %s" role="img" aria-labelledby="%s-t %s-d">`,
		class, number(-border), number(-border), number(d.width+2*border), number(d.height+2*border), id, id)
	fmt.Fprintf(&b, "\n<title id=\"%s-t\">%s</title><desc id=\"%s-d\">%s</desc>\n",
		id, escape(d.frame.Title), id, escape(d.frame.Desc))
	if d.frame.Alone {
		// The ground is its own: an image does not know whether its page is as light or dark as the reader's system.
		fmt.Fprintf(&b, "<style>\n%s</style>\n<rect class=\"ground\" x=\"%s\" y=\"%s\" width=\"100%%\" height=\"100%%\" rx=\"8\"/>\n",
			Style, number(-border), number(-border))
	}
	b.WriteString(d.out.String())
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// width of a text, in units.
func width(s string) float64 { return (*canvas)(nil).style(plain).Width(s).Points() }

// fit shortens a text that is wider than its room.
func fit(s string, room float64) string {
	if width(s) <= room {
		return s
	}
	runes := []rune(s)
	for n := min(len(runes), int(room/3)); n > 0; n-- {
		if short := strings.TrimRight(string(runes[:n]), " ") + "…"; width(short) <= room {
			return short
		}
	}
	return "…"
}

// drawable tells whether a number has a place on an axis. What is larger or smaller than any rate or time is a mistake of
// whoever measured it, and would make ticks without number.
func drawable(v float64, log bool) bool {
	const smallest, largest = 1e-12, 1e18
	return v == 0 && !log || v >= smallest && v <= largest
}
