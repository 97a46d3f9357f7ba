package chart

import (
	"cmp"
	"slices"
)

// Ceiling is a value that nothing drawn can exceed: a dashed line across the whole drawing, with its name on it.
type Ceiling struct {
	Name string
	Y    float64
}

const (
	// farAbove is how many times as high as the largest value a ceiling may lie. One that is higher would press all else
	// to the ground, and stands in the legend instead.
	farAbove = 5
	// mostCeilings is how many are shown, the highest: more would be read as series.
	mostCeilings = 4
)

// ceilings are those of one drawing, the highest first.
type ceilings struct {
	drawn, told []Ceiling
}

// placed decides which of the ceilings are drawn over values up to high, and which are only in the legend.
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

// top returns the highest that is drawn, or high if that is higher.
func (c ceilings) top(high float64) float64 {
	for _, one := range c.drawn {
		high = max(high, one.Y)
	}
	return high
}

// near is the share of a ceiling from which on the next one is so near that its name would run into that of the former.
const near = 0.8

// crowded reports whether a drawn ceiling has no room for its name.
func (c ceilings) crowded(n int) bool { return n > 0 && c.drawn[n].Y > near*c.drawn[n-1].Y }

// legend names those that have no line, or no room for their name below it.
func (c ceilings) legend() (entries []entry) {
	add := func(name string) {
		entries = append(entries, entry{name: name, line: dashes(plain)})
	}
	for _, one := range c.told {
		add(one.Name + ", far above")
	}
	for n, one := range c.drawn {
		if c.crowded(n) {
			add(one.Name)
		}
	}
	return entries
}

// draw draws the lines. A name stands above its line, or below it where it would leave the plot.
func (c ceilings) draw(p plot) {
	for n, one := range c.drawn {
		y := p.y.at(one.Y)
		p.line(dashes(plain), point{p.left, y}, point{p.right, y})
		if c.crowded(n) {
			continue
		}
		base := y - 4
		if base-fontSize < p.top {
			base = y + fontSize + 1
		}
		p.text(quiet+" over", p.left+margin, base, fit(one.Name, p.right-p.left-2*margin))
	}
}
