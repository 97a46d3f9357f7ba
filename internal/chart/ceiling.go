package chart

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Ceiling is a value that nothing drawn can exceed: a dashed line across the whole drawing, with its name on it.
type Ceiling struct {
	Name string
	Y    float64
}

const (
	// farAbove is how many times as high as the largest value a ceiling may lie. One that is higher would press all else to
	// the ground, and stands in the legend instead.
	farAbove = 5
	// mostCeilings is how many are shown, the highest: more would be read as series.
	mostCeilings = 4
)

// ceilings are those of one drawing, the highest first.
type ceilings struct {
	drawn, told []Ceiling
}

// placed tells which of the ceilings are drawn over values up to high.
func placed(all []Ceiling, high float64, log bool) (c ceilings) {
	all = slices.DeleteFunc(slices.Clone(all), func(c Ceiling) bool { return !drawable(c.Y, log) || c.Y == 0 })
	slices.SortStableFunc(all, func(a, b Ceiling) int { return cmp.Compare(b.Y, a.Y) })
	for _, one := range all[:min(len(all), mostCeilings)] {
		if one.Y > farAbove*high {
			c.told = append(c.told, one)
		} else {
			c.drawn = append(c.drawn, one)
		}
	}
	return c
}

// top is the highest that is drawn, or what is higher.
func (c ceilings) top(high float64) float64 {
	for _, one := range c.drawn {
		high = max(high, one.Y)
	}
	return high
}

// near is the share of a ceiling from which on the next one is so near that its name would run into that of the former.
const near = 0.8

// crowded tells whether a drawn ceiling has no room for its name.
func (c ceilings) crowded(n int) bool { return n > 0 && c.drawn[n].Y > near*c.drawn[n-1].Y }

// legend names those that have no line, or no room for their name below it.
func (c ceilings) legend() (entries []entry) {
	for _, one := range c.told {
		entries = append(entries, entry{name: one.Name + ", far above", ink: plain, line: true, dashed: true})
	}
	for n, one := range c.drawn {
		if c.crowded(n) {
			entries = append(entries, entry{name: one.Name, ink: plain, line: true, dashed: true})
		}
	}
	return entries
}

// lines are drawn below all else. A name stands above its line, or below where it would leave the drawing.
func (c ceilings) lines(d *drawing) drawn {
	return func(area draw.Canvas, p *plot.Plot) {
		_, y := p.Transforms(&area)
		for n, one := range c.drawn {
			at := y(one.Y)
			area.StrokeLine2(dashes(plain), area.Min.X, at, area.Max.X, at)
			if c.crowded(n) {
				continue
			}
			base := at + 4
			if base+fontSize > area.Max.Y {
				base = at - fontSize - 1
			}
			area.FillText(d.style(quiet), vg.Point{X: area.Min.X + margin, Y: base}, fit(one.Name, float64(area.Max.X-area.Min.X)-2*margin))
		}
	}
}
