package chart

import (
	"fmt"
	"html"
	"image"
	"image/color"
	"math"
	"strconv"
	"strings"
	"unicode"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// ink is a colour by the name of its CSS class, so that one drawing serves light and dark.
type ink string

// RGBA makes ink a color.Color. Nothing asks for its value: the canvas writes the class.
func (ink) RGBA() (r, g, b, a uint32) { return color.Black.RGBA() }

const (
	plain ink = "ink"   // text, and lines to be seen first
	quiet ink = "quiet" // text and lines to be seen second
	faint ink = "faint" // the grid
	other ink = "other" // series without a colour of their own
)

// hue is the colour of series number n; those without one of their own are grey.
func hue(n int) ink {
	if n >= hues {
		return other
	}
	return ink("h" + strconv.Itoa(n))
}

// hues is how many colours style.css has.
const hues = 7

// canvas writes what the library draws as SVG. The library's own writer, vgsvg, is not used: it turns the picture upside
// down and every text back, has colours as figures, which CSS cannot change, and knows nothing of where a text is
// anchored, so that labels stand beside their ticks in any font but its own.
type canvas struct {
	out           strings.Builder
	width, height float64
	state         state
	stack         []state
	open          string // the beginning of the path that is being written, without its end
	last          string // the last point of that path
}

type state struct {
	ink    ink
	width  float64
	dashes []vg.Length
	groups int // opened since Push
}

func newCanvas(width, height float64) *canvas {
	c := &canvas{width: width, height: height}
	vg.Initialize(c)
	return c
}

func (c *canvas) Size() (w, h vg.Length)                 { return vg.Length(c.width), vg.Length(c.height) }
func (c *canvas) SetLineWidth(w vg.Length)               { c.state.width = w.Points() }
func (c *canvas) SetLineDash(d []vg.Length, _ vg.Length) { c.state.dashes = d }

func (c *canvas) SetColor(col color.Color) {
	i, ok := col.(ink)
	if !ok {
		i = plain
	}
	c.state.ink = i
}

// The origin of the library is the lower left corner, that of SVG the upper left.

func (c *canvas) Rotate(radians float64) {
	c.group("rotate(%s 0 %s)", number(-radians*180/math.Pi), number(c.height))
}

func (c *canvas) Translate(to vg.Point) {
	c.group("translate(%s %s)", number(to.X.Points()), number(-to.Y.Points()))
}

func (c *canvas) Scale(x, y float64) {
	h := number(c.height)
	c.group("translate(0 %s) scale(%s %s) translate(0 -%s)", h, number(x), number(y), h)
}

func (c *canvas) group(format string, values ...any) {
	c.end()
	fmt.Fprintf(&c.out, `<g transform="`+format+`">`, values...)
	c.state.groups++
}

func (c *canvas) Push() {
	c.stack = append(c.stack, c.state)
	c.state.groups = 0
}

func (c *canvas) Pop() {
	c.end()
	c.out.WriteString(strings.Repeat("</g>", c.state.groups))
	last := len(c.stack) - 1
	c.state, c.stack = c.stack[last], c.stack[:last]
}

func (c *canvas) Stroke(p vg.Path) {
	if c.state.width <= 0 {
		return
	}
	begin := `<path class="line ` + string(c.state.ink) + `"`
	if c.state.width != 1 {
		begin += ` stroke-width="` + number(c.state.width) + `"`
	}
	if len(c.state.dashes) > 0 {
		var dashes []string
		for _, d := range c.state.dashes {
			dashes = append(dashes, number(d.Points()))
		}
		begin += ` stroke-dasharray="` + strings.Join(dashes, " ") + `"`
	}
	c.path(begin, p)
}

func (c *canvas) Fill(p vg.Path) { c.path(`<path class="fill `+string(c.state.ink)+`"`, p) }

// path writes a path, or lengthens the one before if that looks the same.
func (c *canvas) path(begin string, p vg.Path) {
	if c.open != begin {
		c.end()
		c.out.WriteString(begin + ` d="`)
		c.open = begin
	}
	for _, part := range p {
		c.component(part)
	}
}

// end ends the path that is being written, if there is one.
func (c *canvas) end() {
	if c.open != "" {
		c.out.WriteString("\"/>\n")
		c.open = ""
	}
}

func (c *canvas) component(part vg.PathComp) {
	switch part.Type {
	case vg.MoveComp:
		c.point("M", part.Pos)
	case vg.LineComp:
		c.point("L", part.Pos)
	case vg.ArcComp:
		c.arc(part)
	case vg.CurveComp:
		c.out.WriteString([]string{"L", "Q", "C"}[len(part.Control)])
		for _, p := range append(part.Control, part.Pos) {
			c.point(" ", p)
		}
	case vg.CloseComp:
		c.out.WriteString("Z")
	}
}

// point goes on to a point with a command.
func (c *canvas) point(command string, p vg.Point) {
	c.last = c.at(p)
	c.out.WriteString(command + c.last)
}

// arc is a line to the arc's beginning and then two halves of it: SVG draws nothing from a point to itself.
func (c *canvas) arc(part vg.PathComp) {
	on := func(angle float64) vg.Point {
		sin, cos := math.Sincos(angle)
		return vg.Point{X: part.Pos.X + part.Radius*vg.Length(cos), Y: part.Pos.Y + part.Radius*vg.Length(sin)}
	}
	sweep := "0" // as the library's y grows upwards
	if part.Angle < 0 {
		sweep = "1"
	}
	r := number(part.Radius.Points())
	if begin := on(part.Start); c.at(begin) != c.last {
		c.point("L", begin)
	}
	for half := 1.0; half <= 2; half++ {
		c.point("A"+r+" "+r+" 0 0 "+sweep+" ", on(part.Start+part.Angle*half/2))
	}
}

func (c *canvas) at(p vg.Point) string {
	return number(p.X.Points()) + " " + number(c.height-p.Y.Points())
}

// FillString writes text that begins at a point; texts drawn by style go through typesetter.Draw.
func (c *canvas) FillString(_ font.Face, at vg.Point, text string) { c.text(at, "", text) }

func (c *canvas) text(at vg.Point, anchor, text string) {
	c.end()
	x, y, _ := strings.Cut(c.at(at), " ")
	fmt.Fprintf(&c.out, `<text class="%s%s" x="%s" y="%s">%s</text>`+"\n", c.state.ink, anchor, x, y, escape(text))
}

// escape makes text of XML: most control characters cannot be in it, however they are written.
func escape(text string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || unicode.IsSpace(r) && r < unicode.MaxASCII && r != '\v' && r != '\f' {
			return r
		}
		return unicode.ReplacementChar
	}, text))
}

// DrawImage panics: no chart here has an image in it.
func (c *canvas) DrawImage(vg.Rectangle, image.Image) { panic("chart: no images") }

// number has one digit behind the point: a tenth of a pixel.
func number(n float64) string {
	s := strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64)
	if s == "-0" {
		return "0"
	}
	return s
}

// typesetter measures text as Liberation Sans, which is as wide as Arial, with a reserve, and hands its alignment on to
// the canvas: the reader's font is another. Nothing here is rotated.
type typesetter struct {
	text.Plain
	canvas *canvas
}

// Box has the reserve: DejaVu and Verdana are so much wider than Arial.
func (t typesetter) Box(txt string, f font.Font) (width, height, depth vg.Length) {
	width, height, depth = t.Plain.Box(txt, f)
	return width * 1.15, height, depth
}

// Draw writes one line of text.
func (t typesetter) Draw(_ vg.Canvas, txt string, s text.Style, at vg.Point) {
	if txt == "" {
		return
	}
	ascent := t.Extents(s.Font).Ascent
	at.Y += s.Height(txt)*vg.Length(s.YAlign) + s.Font.Size - ascent
	t.canvas.SetColor(s.Color)
	anchor := ""
	switch s.XAlign {
	case text.XCenter:
		anchor = " middle"
	case text.XRight:
		anchor = " end"
	}
	t.canvas.text(at, anchor, txt)
}

// style is text of one ink, in the one size that all charts have.
func (c *canvas) style(i ink) text.Style {
	return text.Style{
		Color:   i,
		Font:    font.From(font.Font{Typeface: plot.DefaultFont.Typeface, Variant: "Sans"}, fontSize),
		Handler: typesetter{text.Plain{Fonts: font.DefaultCache}, c},
	}
}
