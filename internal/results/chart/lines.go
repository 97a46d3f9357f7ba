package chart

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Lines shows one quantity over another, a line for each series.
type Lines struct {
	X, Y     Axis
	Series   []Series
	Mark     string // names marked points in the legend
	Note     string // explains points and ranges where there is no caption beside the drawing
	Ceilings []Ceiling
}

// Series is one line. Series of the same name have the same colour: published and measured ones.
type Series struct {
	Name   string
	Points []Point
	Dashed bool // published by others: without glyphs
}

// Point is one value with its range; Low and High are 0 if it was measured once.
type Point struct {
	X, Y, Low, High float64
	Marked          bool
}

func (p Point) spread() bool {
	return p.Low < p.High && drawable(p.Low, true) && drawable(p.High, true)
}

const linesHeight = 200.0

// Draw returns the drawing. Of more than seven series the highest have colours and names, the others are grey.
func (l Lines) Draw(f Frame) []byte {
	series := l.drawable()
	names := l.names(series)
	height := linesHeight
	if f.Width > Narrow {
		height = 1.4 * linesHeight
	}
	over := placed(l.Ceilings, highest(series), l.Y.Log)
	labels := l.labels(series, names)
	if f.Width <= Narrow {
		labels = nil
	}
	d := f.start(height, l.Y.Label, append(l.legend(series, names, labels == nil), over.legend()...))
	if len(series) == 0 {
		return d.nothing()
	}
	for _, label := range labels {
		d.aside = max(d.aside, min(labelled+width(label.name), f.Width/3))
	}
	x, y := l.scales(series, over)
	p := d.plot(x, y, l.X.Label)
	over.draw(p)
	published := slices.ContainsFunc(series, func(s Series) bool { return s.Dashed })
	for _, s := range slices.Backward(series) { // the first over the others
		s.draw(p, slices.Index(names, s.Name), min(len(names), hues), !published)
	}
	p.labels(labels)
	if f.Alone && l.Note != "" {
		d.text(quiet, 0, d.height+fontSize, fit(l.Note, f.Width))
		d.height += line
	}
	return d.finish()
}

// label is the name of a line, beside its last point.
type label struct {
	name string
	hue  int
	last Point
}

const (
	labelled  = 3 * margin // from the plot's edge to the name, with the glyph between them
	labelLine = 15.0
)

// labels returns a label for each line that has a colour and a name; nil for a single one without.
func (l Lines) labels(series []Series, names []string) (all []label) {
	for n, name := range names[:min(len(names), hues)] {
		i := slices.IndexFunc(series, func(s Series) bool { return s.Name == name && !s.Dashed })
		if i < 0 || name == "" { // only published: the legend has it
			return nil
		}
		all = append(all, label{name, n, series[i].Points[len(series[i].Points)-1]})
	}
	return all
}

// labels writes the names to the right of the plot, as near to the ends of their lines as there is room.
func (p plot) labels(all []label) {
	all = slices.SortedStableFunc(slices.Values(all), func(a, b label) int { return cmp.Compare(b.last.Y, a.last.Y) })
	y := make([]float64, len(all))
	for i, label := range all {
		if y[i] = p.at(label.last.X, label.last.Y).y; i > 0 {
			y[i] = max(y[i], y[i-1]+labelLine)
		}
	}
	for i := range slices.Backward(y) { // what is below the plot moves up
		lowest := p.bottom - float64(len(all)-1-i)*labelLine
		y[i] = min(y[i], lowest)
	}
	for i, label := range all {
		end := p.at(label.last.X, label.last.Y)
		p.line(solid(quiet, 0.5), point{end.x + radius + 2, end.y}, point{p.right + margin, y[i]})
		shape(label.hue)(&p.svg, hue(label.hue), point{p.right + margin + radius + 2, y[i]})
		p.text(plain, p.right+labelled, y[i]+4, fit(label.name, p.aside-labelled+margin))
	}
}

// drawable returns the series that have points within the axes, with these points only.
func (l Lines) drawable() (kept []Series) {
	for _, s := range l.Series {
		s.Points = slices.DeleteFunc(slices.Clone(s.Points), func(p Point) bool {
			return !drawable(p.X, l.X.Log) || !drawable(p.Y, l.Y.Log)
		})
		slices.SortStableFunc(s.Points, func(a, b Point) int { return cmp.Compare(a.X, b.X) })
		if len(s.Points) > 0 {
			kept = append(kept, s)
		}
	}
	return kept
}

// names returns the names of the series. If they are more than there are colours the highest come first.
func (l Lines) names(series []Series) (names []string) {
	best := map[string]float64{}
	for _, s := range series {
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
		best[s.Name] = max(best[s.Name], highest([]Series{s}))
	}
	if len(names) > hues {
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(best[b], best[a]) })
	}
	return names
}

func (l Lines) legend(series []Series, names []string, named bool) (entries []entry) {
	for n, name := range names[:min(len(names), hues)] {
		if name != "" && named {
			entries = append(entries, entry{name: name, ink: hue(n), line: solid(hue(n), 2), glyph: shape(n)})
		}
	}
	marked, dashed := false, false
	for _, s := range series {
		dashed = dashed || s.Dashed
		marked = marked || slices.ContainsFunc(s.Points, func(p Point) bool { return p.Marked })
	}
	if more := len(names) - hues; more > 0 {
		entries = append(entries, entry{name: strconv.Itoa(more) + " more", line: solid(other, 2)})
	}
	if dashed {
		entries = append(entries, entry{name: "published", line: dashes(quiet)})
	}
	if marked {
		entries = append(entries, entry{name: l.Mark, ink: plain, glyph: mark})
	}
	return entries
}

func highest(series []Series) (high float64) {
	for _, s := range series {
		for _, v := range s.Points {
			high = max(high, v.Y)
		}
	}
	return high
}

// scales returns the scales of both axes. The ticks of x are the values themselves.
func (l Lines) scales(series []Series, over ceilings) (x, y scale) {
	var xs []float64
	low, high := math.Inf(1), over.top(0)
	for _, s := range series {
		for _, v := range s.Points {
			xs = append(xs, v.X)
			low, high = min(low, v.Y), max(high, v.Y)
			if v.spread() {
				low, high = min(low, v.Low), max(high, v.High)
			}
		}
	}
	for _, c := range over.drawn {
		low = min(low, c.Y)
	}
	if high == 0 {
		high = 1
	}
	ticks := linear(l.Y.Unit, high)
	if l.Y.Log {
		ticks = decades(l.Y.Unit, low, high)
	}
	x = scale{low: slices.Min(xs), high: slices.Max(xs), log: l.X.Log, ticks: each(l.X.Unit, xs)}
	switch { // a single value is centred
	case x.high == 0:
		x.low, x.high = -1, 1
	case x.low == x.high:
		x.low, x.high = x.low/2, x.high*1.5
	}
	return x, around(ticks, l.Y.Log)
}

// draw draws a series in colour number n of several. Those without a colour are thin and without glyphs. Series side by
// side are apart by a little, so that their ranges can be told from each other, and with patterns they also differ in
// their dashes.
func (s Series) draw(p plot, n, of int, patterns bool) {
	coloured := n < hues
	look, dot := solid(other, 1), glyph(nil)
	if coloured {
		look, dot = solid(hue(n), 2), shape(n)
	}
	if coloured && patterns {
		look.dashes = pattern(n)
	}
	aside := 0.0
	if coloured && !s.Dashed {
		aside = 2.5 * (float64(n) - float64(of-1)/2)
	}
	at := func(x, y float64) point { return point{p.at(x, y).x + aside, p.at(x, y).y} }
	if s.Dashed {
		look, dot = dashes(look.ink), nil
	}
	var line []point
	for _, v := range s.Points {
		line = append(line, at(v.X, v.Y))
	}
	if len(line) == 1 && s.Dashed { // a line of one point cannot be seen
		line = []point{{line[0].x - 12, line[0].y}, {line[0].x + 12, line[0].y}}
	} else if len(line) == 1 && dot == nil {
		dot = shape(0)
	}
	if len(line) > 1 {
		p.line(look, line...)
	}
	for _, v := range s.Points {
		middle := at(v.X, v.Y)
		if coloured && v.spread() {
			for _, end := range []point{at(v.X, v.Low), at(v.X, v.High)} {
				p.line(solid(look.ink, 1.5), middle, end, point{end.x - 3, end.y}, point{end.x + 3, end.y})
			}
		}
		if dot != nil {
			dot(&p.svg, look.ink, middle)
		}
		if coloured && v.Marked {
			mark(&p.svg, plain, middle)
		}
	}
}

// Ceiling is a value that no series can exceed: a dashed line across the drawing, with its name.
type Ceiling struct {
	Name string
	Y    float64
}

const (
	// farAbove is how many times as high as the largest value a ceiling may be. A higher one would flatten everything
	// else, and is named in the legend instead.
	farAbove     = 5
	mostCeilings = 4 // the highest; more would look like series
)

// ceilings are the ceilings of one drawing, the highest first: those drawn, and those only named in the legend.
type ceilings struct {
	drawn, named []Ceiling
}

// placed divides the ceilings over values up to high.
func placed(all []Ceiling, high float64, log bool) (c ceilings) {
	all = slices.DeleteFunc(slices.Clone(all), func(c Ceiling) bool { return !drawable(c.Y, log) || c.Y == 0 })
	slices.SortStableFunc(all, func(a, b Ceiling) int { return cmp.Compare(b.Y, a.Y) })
	for _, one := range all[:min(len(all), mostCeilings)] {
		if one.Y > farAbove*high {
			c.named = append(c.named, one)
		} else {
			c.drawn = append(c.drawn, one)
		}
	}
	return c
}

// top returns the highest drawn one, or high if that is higher.
func (c ceilings) top(high float64) float64 {
	for _, one := range c.drawn {
		high = max(high, one.Y)
	}
	return high
}

// crowded reports whether the name of a drawn ceiling would overlap that of the one above.
func (c ceilings) crowded(n int) bool { return n > 0 && c.drawn[n].Y > 0.8*c.drawn[n-1].Y }

// legend names the ceilings without a name in the drawing.
func (c ceilings) legend() (entries []entry) {
	for _, one := range c.named {
		entries = append(entries, entry{name: one.Name + ", far above", line: dashes(plain)})
	}
	for n, one := range c.drawn {
		if c.crowded(n) {
			entries = append(entries, entry{name: one.Name, line: dashes(plain)})
		}
	}
	return entries
}

// draw draws the lines. A name is above its line, or below it at the top of the plot.
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
