// Package chart draws lines, bars, changes and timelines of numbers as SVG.
//
// Drawings have classes instead of colours and fonts, with the rules in Style: they fit light and dark pages, inherit
// the font, and scale to the available width. NaN, infinite and negative numbers are omitted, and so is zero on a
// logarithmic axis. Control characters stay: who writes a drawing removes them, as results does. A drawing of nothing
// says so.
package chart

import (
	_ "embed" // style.css
	"fmt"
	"html"
	"strings"
)

// Style is the CSS of all drawings, needed once a page. Drawings with Frame.Alone include it.
//
//go:embed style.css
var Style string

// Frame describes a drawing's place and words.
type Frame struct {
	ID          string // unique on the page: a letter, then letters, digits and dashes
	Title, Desc string // for screen readers; Desc is a sentence
	Width       float64
	Alone       bool // a file of its own, with title, style and font
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

// drawing has a head of title, legend and unit above a body from top to height.
type drawing struct {
	svg
	frame       Frame
	top, height float64
	aside       float64 // room to the right of a plot
}

// start draws the head over a body of the given height. The unit stands over the y axis.
func (f Frame) start(body float64, unit string, entries []entry) *drawing {
	d := &drawing{frame: f}
	if f.Alone {
		d.text(plain+" title", 0, fontSize, fit(f.Title, f.Width/1.3)) // style.css has it larger and bolder
		d.top += line + margin
	}
	d.legend(entries)
	if unit != "" {
		d.text(quiet, 0, d.top+fontSize, fit(unit, f.Width))
		d.top += line
	}
	d.height = d.top + body
	return d
}

func (d *drawing) nothing() []byte {
	d.text(quiet+" middle", d.frame.Width/2, (d.top+d.height)/2, "nothing measured")
	return d.finish()
}

func (d *drawing) finish() []byte {
	var b strings.Builder
	f, class, border := d.frame, "chart", 0.0
	if f.Alone {
		class, border = "chart alone", 16
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" class="%s" viewBox="%s %s %s %s"`,
		class, number(-border), number(-border), number(f.Width+2*border), number(d.height+2*border))
	fmt.Fprintf(&b, ` role="img" aria-labelledby="%s-t %s-d">`, f.ID, f.ID)
	fmt.Fprintf(&b, "\n<title id=\"%s-t\">%s</title><desc id=\"%s-d\">%s</desc>\n",
		f.ID, html.EscapeString(f.Title), f.ID, html.EscapeString(f.Desc))
	if f.Alone {
		// An image cannot know whether its page is light or dark, so it has a ground of its own.
		fmt.Fprintf(&b, "<style>\n%s</style>\n", Style)
		fmt.Fprintf(&b, `<rect class="ground" x="%s" y="%s" width="100%%" height="100%%" rx="8"/>`+"\n",
			number(-border), number(-border))
	}
	b.WriteString(d.String())
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

// entry is one name in a legend, with a sample of a line, a glyph or both.
type entry struct {
	name  string
	ink   ink // of the glyph
	line  stroke
	glyph glyph
}

const (
	sample = 18.0 // the width of the sample before a name
	apart  = 14.0 // between two entries
)

// legend draws entries in rows as wide as the drawing.
func (d *drawing) legend(entries []entry) {
	x := 0.0
	for _, e := range entries {
		name := fit(e.name, d.frame.Width-sample-4)
		wide := sample + 4 + width(name)
		if x > 0 && x+wide > d.frame.Width {
			x, d.top = 0, d.top+line
		}
		middle := d.top + line/2
		if e.line.width > 0 {
			d.line(e.line, point{x + 1, middle}, point{x + sample - 1, middle})
		}
		if e.glyph != nil {
			e.glyph(&d.svg, e.ink, point{x + sample/2, middle})
		}
		d.text(plain, x+sample+4, middle+4, name)
		x += wide + apart
	}
	if len(entries) > 0 {
		d.top += line + margin
	}
}

// plot is the part of a drawing between two axes.
type plot struct {
	*drawing
	x, y                     scale
	left, right, top, bottom float64
}

const (
	tickLength = 4.0
	below      = 2*line + 4 // the room for the labels of the horizontal axis
)

// plot draws the axes around the rest of the body. The grid is horizontal, or vertical if y has no ticks.
func (d *drawing) plot(x, y scale, label string) plot {
	first, last := x.ticks[0], x.ticks[len(x.ticks)-1]
	p := plot{drawing: d, top: d.top + fontSize/2, bottom: d.height - below}
	p.left, p.right = max(margin, width(first.label)/2), d.frame.Width-margin-d.aside // for a glyph on the edge
	for _, t := range y.ticks {
		p.left = max(p.left, width(t.label)+margin)
	}
	x.from, x.to = p.left, p.right
	if half := width(last.label) / 2; x.at(last.value)+half > d.frame.Width {
		p.right = d.frame.Width - half
	}
	x.to, y.from, y.to = p.right, p.bottom, p.top
	x.thin()
	p.x, p.y = x, y

	for _, t := range y.ticks {
		at := y.at(t.value)
		d.line(solid(faint, 1), point{p.left, at}, point{p.right, at})
		d.text(quiet+" end", p.left-margin+2, at+4, t.label)
	}
	for _, t := range x.ticks {
		at := x.at(t.value)
		if len(y.ticks) == 0 {
			d.line(solid(faint, 1), point{at, p.top}, point{at, p.bottom})
		}
		d.line(solid(quiet, 1), point{at, p.bottom}, point{at, p.bottom + tickLength})
		d.text(quiet+" middle", at, p.bottom+tickLength+fontSize+1, t.label)
	}
	d.line(solid(quiet, 1), point{p.left, p.bottom}, point{p.right, p.bottom})
	d.text(quiet+" middle", (p.left+p.right)/2, p.bottom+tickLength+fontSize+line, fit(label, p.right-p.left))
	return p
}

func (p plot) at(x, y float64) point { return point{p.x.at(x), p.y.at(y)} }
