package chart

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Ranges is some values of one quantity for each of several rows, as percentiles are, on one axis.
type Ranges struct {
	X      Axis
	Values []string // their names, from the smallest
	Rows   []Range
}

// Range is one row; what is not positive is left out.
type Range struct {
	Name   string
	Values []float64 // one for each of Ranges.Values
}

const rangeRow = 2*line + 2

// Draw draws the ranges, each below its name.
func (r Ranges) Draw(f Frame) []byte {
	low, high := math.Inf(1), 0.0
	for _, row := range r.Rows {
		for _, v := range row.Values {
			if drawable(v, true) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if high == 0 {
		return f.start(2*line, "", nil).nothing()
	}
	var entries []entry
	for n, name := range r.Values {
		entries = append(entries, entry{name: name, ink: hue(n), glyph: glyph(n)})
	}
	d := f.start(float64(len(r.Rows))*rangeRow+2*line+margin, "", entries)
	p := d.plot()
	p.Y.Tick.Marker = plot.ConstantTicks{}
	p.Y.Min, p.Y.Max = 0, float64(len(r.Rows))
	ticks := linear(r.X.Unit, high, 4)
	if r.X.Log {
		ticks = decades(r.X.Unit, low, high)
	}
	d.across(p, r.X, ticks[0].Value, ticks[len(ticks)-1].Value)
	p.X.Tick.Marker = thinned(ticks, d.width, p.X.Norm)
	p.Add(verticalGrid(), drawn(func(c draw.Canvas, p *plot.Plot) { r.rows(d, c, p) }))
	p.Draw(draw.Crop(d.body, 2*margin, 0, 0, 0)) // the library makes room for the last label only
	return d.finish()
}

func (r Ranges) rows(d *drawing, c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for n, row := range r.Rows {
		middle := y(float64(len(r.Rows)-n) - 0.72)
		c.FillText(d.style(plain), vg.Point{X: c.Min.X, Y: middle + 7}, fit(row.Name, d.width-margin))
		first, last := vg.Length(math.Inf(1)), vg.Length(0)
		for _, v := range row.Values {
			if drawable(v, true) {
				first, last = min(first, x(v)), max(last, x(v))
			}
		}
		c.StrokeLine2(stroke(other, 2), first, middle, last, middle)
		for n, v := range row.Values {
			if drawable(v, true) {
				c.DrawGlyph(draw.GlyphStyle{Color: hue(n), Radius: radius + 0.5, Shape: glyph(n)}, vg.Point{X: x(v), Y: middle})
			}
		}
	}
}
