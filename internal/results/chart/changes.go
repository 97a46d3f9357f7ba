package chart

import (
	"fmt"
	"math"
	"strings"
)

// Changes shows by how much each of several quantities has changed, with the range in which the change lies.
type Changes struct {
	Margin float64 // a change by less than this share does not matter
	Rows   []Change
}

// Change is one row. Value, Low and High are finite shares: -0.05 is 5 % less. Without a range Low equals High.
type Change struct {
	Name, Note       string // the note stands at the right, as far as its first comma if there is little room
	Value, Low, High float64
	Kind             ChangeKind
}

// ChangeKind decides the colour and the glyph of a change.
type ChangeKind int

// The kinds.
const (
	Unchanged ChangeKind = iota
	Less
	More
	Open // that is not decided
)

const (
	mostChange = 2 // as a share; beyond it a range is cut off
	changeRow  = 2*line + 2
)

// Draw returns the drawing.
func (c Changes) Draw(f Frame) []byte {
	if len(c.Rows) == 0 {
		return f.start(2*line, "", nil).nothing()
	}
	widest := c.Margin * 1.5
	for _, r := range c.Rows {
		for _, v := range []float64{r.Value, r.Low, r.High} {
			widest = max(widest, min(math.Abs(v), mostChange))
		}
	}
	d := f.start(float64(len(c.Rows))*changeRow+2*line+margin, "", nil)
	x := around(bothWays(100*widest), false)
	p := d.plot(x, scale{}, "change of rows/s; shaded: ±"+percent(100*c.Margin))

	within := func(v float64) float64 { return p.x.at(100 * min(max(v, -widest), widest)) }
	p.rectangle(other+" band", within(-c.Margin), p.top, within(c.Margin), p.bottom)
	p.line(solid(quiet, 1.5), point{p.x.at(0), p.top}, point{p.x.at(0), p.bottom})
	for n, r := range c.Rows {
		middle := p.top + float64(n)*changeRow + 27
		look, dot := r.Kind.look()
		note := r.Note
		if width(r.Name)+width(note)+2*margin > p.right-p.left { // the glyph has the verdict, too
			note, _, _ = strings.Cut(note, ", ")
		}
		p.text(plain+" over end", p.right, middle-9, note)
		p.text(plain+" over", p.left, middle-9, fit(r.Name, p.right-p.left-width(note)-2*margin))
		if r.Low < r.High {
			p.line(solid(look, 2), point{within(r.Low), middle}, point{within(r.High), middle})
			for _, end := range []float64{within(r.Low), within(r.High)} {
				p.line(solid(look, 2), point{end, middle - 4}, point{end, middle + 4})
			}
		}
		dot(&d.svg, look, point{within(r.Value), middle})
	}
	return d.finish()
}

func (k ChangeKind) look() (ink, glyph) {
	switch k {
	case Less:
		return hue(1), shape(4)
	case More:
		return hue(0), shape(2)
	case Open:
		return quiet, shape(3)
	}
	return hue(2), shape(0)
}

// bothWays returns ticks from about -end to end, in per cent.
func bothWays(end float64) (ticks []tick) {
	step := Count.step(end / 3)
	most := math.Ceil(end/step-1e-9) * step
	for v := -min(most, 100); v <= most+step/2; v += step { // no rate falls by more than all of it
		label := percent(v)
		if math.Round(v/step) == 0 {
			v, label = 0, "0"
		}
		ticks = append(ticks, tick{v, label})
	}
	return ticks
}

func percent(v float64) string {
	if v < 0 {
		return fmt.Sprintf("−%.3g %%", -v)
	}
	return fmt.Sprintf("%.3g %%", v)
}
