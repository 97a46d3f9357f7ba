package chart

// plot is the part of a drawing where values are, between two axes.
type plot struct {
	*drawing
	x, y                     scale
	left, right, top, bottom float64
}

const (
	tickLength = 4.0
	below      = 2*line + 4 // the room for the labels of the horizontal axis
)

// plot draws the axes around what is left of the body. The grid is horizontal, or vertical where y has no ticks.
func (d *drawing) plot(x, y scale, label string) plot {
	first, last := x.ticks[0], x.ticks[len(x.ticks)-1]
	p := plot{drawing: d, top: d.top + fontSize/2, bottom: d.height - below}
	p.left, p.right = max(margin, width(first.label)/2), d.frame.Width-margin // for a glyph on the edge
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

// at returns the place of a value.
func (p plot) at(x, y float64) point { return point{p.x.at(x), p.y.at(y)} }
