package chart

import "math"

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

// Draw returns the drawing, each range below its name.
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
		entries = append(entries, entry{name: name, ink: hue(n), glyph: shape(n)})
	}
	d := f.start(float64(len(r.Rows))*rangeRow+2*line+margin, "", entries)
	ticks := linear(r.X.Unit, high, 4)
	if r.X.Log {
		ticks = decades(r.X.Unit, low, high)
	}
	p := d.plot(around(ticks, r.X.Log), scale{}, r.X.Label)
	for n, row := range r.Rows {
		row.draw(p, p.top+float64(n)*rangeRow+27)
	}
	return d.finish()
}

func (row Range) draw(p plot, middle float64) {
	p.text(plain+" over", p.left, middle-9, fit(row.Name, p.right-p.left))
	first, last := math.Inf(1), 0.0
	for _, v := range row.Values {
		if drawable(v, true) {
			first, last = min(first, p.x.at(v)), max(last, p.x.at(v))
		}
	}
	if last > 0 {
		p.line(solid(other, 2), point{first, middle}, point{last, middle})
	}
	for n, v := range row.Values {
		if drawable(v, true) {
			shape(n)(&p.svg, hue(n), point{p.x.at(v), middle})
		}
	}
}
