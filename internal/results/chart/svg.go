package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// ink is the CSS class of a colour.
type ink string

const (
	plain ink = "ink"   // text and main lines
	quiet ink = "quiet" // other text and lines
	faint ink = "faint" // the grid
	other ink = "other" // series without a colour of their own
)

// hues is the number of colours for series in style.css.
const hues = 7

// hue returns the colour of series number n, grey after the last colour.
func hue(n int) ink {
	if n >= hues {
		return other
	}
	return ink("h" + strconv.Itoa(n))
}

// point is a place in a drawing; y grows downwards, as in SVG.
type point struct{ x, y float64 }

// stroke is the style of a line; without a width there is no line.
type stroke struct {
	ink    ink
	width  float64
	dashes string // as of stroke-dasharray, "" for a solid line
}

func solid(i ink, width float64) stroke { return stroke{ink: i, width: width} }

// dashes is the stroke of ceilings and of published figures.
func dashes(i ink) stroke { return stroke{ink: i, width: 1.5, dashes: "4 3"} }

// pattern returns the dashes of series number n, for readers who do not see colours.
func pattern(n int) string {
	patterns := [...]string{"", "8 3", "2 2", "8 3 2 3", "5 2", "2 4", "12 3"}
	return patterns[n%len(patterns)]
}

type svg struct{ strings.Builder }

func (s *svg) line(look stroke, points ...point) {
	fmt.Fprintf(s, `<path class="line %s"%s d="%s"/>`+"\n", look.ink, look.attributes(), joined(points))
}

func (s *svg) fill(i ink, corners ...point) {
	fmt.Fprintf(s, `<path class="fill %s" d="%sZ"/>`+"\n", i, joined(corners))
}

func (s *svg) rectangle(i ink, left, top, right, bottom float64) {
	s.fill(i, point{left, top}, point{right, top}, point{right, bottom}, point{left, bottom})
}

func (s *svg) circle(class ink, attributes string, at point, r float64) {
	fmt.Fprintf(s, `<circle class="%s"%s cx="%s" cy="%s" r="%s"/>`+"\n",
		class, attributes, number(at.x), number(at.y), number(r))
}

func (look stroke) attributes() (s string) {
	if look.width != 1 {
		s = ` stroke-width="` + number(look.width) + `"`
	}
	if look.dashes != "" {
		s += ` stroke-dasharray="` + look.dashes + `"`
	}
	return s
}

// joined returns the data of a path through points.
func joined(points []point) string {
	var b strings.Builder
	command := "M"
	for _, p := range points {
		b.WriteString(command + number(p.x) + " " + number(p.y))
		command = "L"
	}
	return b.String()
}

// text writes a line of text with its baseline at y. The class is an ink and other classes of style.css; "middle" and
// "end" are alignments at x.
func (s *svg) text(class ink, x, y float64, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(s, `<text class="%s" x="%s" y="%s">%s</text>`+"\n", class, number(x), number(y), html.EscapeString(text))
}

// number formats a coordinate to a tenth of a pixel.
func number(n float64) string {
	return strconv.FormatFloat(math.Round(n*10)/10+0, 'f', -1, 64) // + 0 makes -0 a 0
}

// glyph draws the mark of a value.
type glyph func(s *svg, i ink, at point)

const radius = 3.5 // of glyphs

// shape returns the glyph of series number n, for readers who do not see colours.
func shape(n int) glyph {
	polygons := [...][]point{
		nil, // a disc
		{{-.87, -.87}, {.87, -.87}, {.87, .87}, {-.87, .87}},
		{{0, -1.24}, {1.08, .62}, {-1.08, .62}},
		{{0, -1.4}, {1.4, 0}, {0, 1.4}, {-1.4, 0}},
		{{-1.2, -1}, {1.2, -1}, {0, 1.2}},
		{{-1.3, -.6}, {1.3, -.6}, {1.3, .6}, {-1.3, .6}},
		{{-.6, -1.3}, {.6, -1.3}, {.6, 1.3}, {-.6, 1.3}},
	}
	corners := polygons[n%len(polygons)]
	return func(s *svg, i ink, at point) {
		if corners == nil {
			s.circle("fill "+i, "", at, radius)
			return
		}
		var placed []point
		for _, c := range corners {
			placed = append(placed, point{at.x + radius*c.x, at.y + radius*c.y})
		}
		s.fill(i, placed...)
	}
}

// mark draws a ring around another glyph.
func mark(s *svg, i ink, at point) { s.circle("line "+i, solid(i, 1.5).attributes(), at, radius+3.5) }

// upright draws a stroke as high as a line of text.
func upright(s *svg, i ink, at point) {
	s.line(solid(i, 2), point{at.x, at.y - 2*radius}, point{at.x, at.y + 2*radius})
}

// box draws the sample of a bar.
func box(s *svg, i ink, at point) { s.rectangle(i, at.x-5, at.y-5, at.x+5, at.y+5) }

// width estimates the width of a text. The reader's font is unknown; these are about the widths of DejaVu Sans, which
// is 15 % wider than Arial.
func width(text string) (w float64) {
	for _, r := range text {
		switch {
		case strings.ContainsRune("ijl'", r):
			w += .28
		case strings.ContainsRune(" .,:;/|IJ·", r):
			w += .33
		case strings.ContainsRune("frt-()[]!", r):
			w += .4
		case strings.ContainsRune("ckosvxyz", r):
			w += .58
		case r > unicode.MaxLatin1, strings.ContainsRune("mwMW@%+<=>~#", r):
			w += .95
		case unicode.IsUpper(r):
			w += .72
		default:
			w += .63
		}
	}
	return w * fontSize
}

// fit shortens a text to the room it has.
func fit(text string, room float64) string {
	if width(text) <= room {
		return text
	}
	room -= width("…")
	end := strings.IndexFunc(text, func(r rune) bool {
		room -= width(string(r))
		return room < 0
	})
	return strings.TrimRight(text[:end], " ") + "…"
}
