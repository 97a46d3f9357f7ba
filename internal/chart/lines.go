package chart

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Lines is a quantity over another, a line for each series.
type Lines struct {
	X, Y   Axis
	Series []Series
	// Mark is what a marked point is, for the legend.
	Mark string
	// Dashed is what dashed series are, for the legend, where they have no names of their own.
	Dashed string
	// Ceilings lie over all series.
	Ceilings []Ceiling
}

// Axis is one of a drawing's two. A vertical axis that is not logarithmic begins at 0.
type Axis struct {
	Label string // what it counts
	Unit  Unit
	Log   bool
}

// Series is one line. Two of the same name have one colour: what was published and what was measured.
type Series struct {
	Name   string
	Points []Point
	Dashed bool // published by somebody else: no glyphs, and not in the legend
}

// Point is one value with what it was spread over: Low and High are 0 when it was measured once.
type Point struct {
	X, Y, Low, High float64
	Marked          bool
}

func (p Point) spread() bool {
	return p.Low < p.High && drawable(p.Low, true) && drawable(p.High, true)
}

// named is how many series have a colour and a name; the rest is there in grey, so that all of the field is seen.
const named = hues

const linesHeight = 200

// Draw draws the lines. Where there are more than seven, those that get highest keep their colours.
func (l Lines) Draw(f Frame) []byte {
	series := l.drawable()
	names := l.names(series)
	height := float64(linesHeight)
	if f.Width > Narrow {
		height = 1.4 * linesHeight
	}
	over := placed(l.Ceilings, highest(series), l.Y.Log)
	d := f.start(height, l.Y.Label, append(l.legend(series, names), over.legend()...))
	if len(series) == 0 {
		return d.nothing()
	}
	p := d.plot()
	l.scale(p, series, over, d)
	p.Add(horizontalGrid(), over.lines(d))
	for _, s := range slices.Backward(series) { // the first is drawn last, over the others
		l.add(p, s, slices.Index(names, s.Name))
	}
	p.Draw(d.body)
	return d.finish()
}

// drawable is the series with the points that have a place; those without any are left out.
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

// names are those of the series with colours, in the order of the legend.
func (l Lines) names(series []Series) (names []string) {
	best := map[string]float64{}
	for _, s := range series {
		if !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
		for _, p := range s.Points {
			best[s.Name] = max(best[s.Name], p.Y)
		}
	}
	if len(names) <= named {
		return names
	}
	highest := slices.SortedStableFunc(slices.Values(names), func(a, b string) int { return cmp.Compare(best[b], best[a]) })[:named]
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(highest, name) })
}

func (l Lines) legend(series []Series, names []string) (entries []entry) {
	for n, name := range names {
		if name != "" {
			entries = append(entries, entry{name: name, ink: hue(n), line: true, glyph: glyph(n)})
		}
	}
	more := map[string]bool{}
	marked, dashed := false, false
	for _, s := range series {
		if !slices.Contains(names, s.Name) {
			more[s.Name] = true
		}
		dashed = dashed || s.Dashed
		marked = marked || slices.ContainsFunc(s.Points, func(p Point) bool { return p.Marked })
	}
	if len(more) > 0 {
		entries = append(entries, entry{name: strconv.Itoa(len(more)) + " more", ink: other, line: true})
	}
	if dashed {
		entries = append(entries, entry{name: l.Dashed, ink: quiet, line: true, dashed: true})
	}
	if marked {
		entries = append(entries, entry{name: l.Mark, ink: plain, glyph: mark{}})
	}
	return entries
}

// highest is the largest value of all series.
func highest(series []Series) (high float64) {
	for _, s := range series {
		for _, v := range s.Points {
			high = max(high, v.Y)
		}
	}
	return high
}

// scale sets both axes.
func (l Lines) scale(p *plot.Plot, series []Series, over ceilings, d *drawing) {
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
	ticks := linear(l.Y.Unit, high, 5)
	if l.Y.Log {
		ticks = decades(l.Y.Unit, low, high)
		p.Y.Scale = plot.LogScale{}
	}
	p.Y.Tick.Marker = ticks
	p.Y.Min, p.Y.Max = ticks[0].Value, ticks[len(ticks)-1].Value

	d.across(p, l.X, slices.Min(xs), slices.Max(xs))
	p.X.Tick.Marker = at(l.X.Unit, xs, d.width-70, p.X.Norm)
}

func (l Lines) add(p *plot.Plot, s Series, n int) {
	i, shape, thick := other, draw.GlyphDrawer(nil), vg.Length(1)
	if n >= 0 {
		i, shape, thick = hue(n), glyph(n), 2
	}
	style := stroke(i, thick)
	if s.Dashed {
		style, shape = dashes(i), nil
	}
	var xys plotter.XYs
	var marked plotter.XYs
	var spread spreads
	for _, v := range s.Points {
		at := plotter.XY{X: v.X, Y: v.Y}
		xys = append(xys, at)
		if v.Marked {
			marked = append(marked, at)
		}
		if v.spread() {
			spread.XYs = append(spread.XYs, at)
			spread.YErrors = append(spread.YErrors, struct{ Low, High float64 }{v.Y - v.Low, v.High - v.Y})
		}
	}
	p.Add(&plotter.Line{XYs: xys, LineStyle: style})
	if shape == nil && len(xys) == 1 {
		shape = draw.CircleGlyph{} // a line of one point is not seen
	}
	if n >= 0 && len(spread.XYs) > 0 {
		p.Add(&plotter.YErrorBars{XYs: spread.XYs, YErrors: spread.YErrors, LineStyle: stroke(i, 1), CapWidth: 5})
	}
	if shape != nil {
		p.Add(&plotter.Scatter{XYs: xys, GlyphStyle: draw.GlyphStyle{Color: i, Radius: radius, Shape: shape}})
	}
	if n >= 0 && len(marked) > 0 {
		p.Add(&plotter.Scatter{XYs: marked, GlyphStyle: draw.GlyphStyle{Color: plain, Radius: radius, Shape: mark{}}})
	}
}

type spreads struct {
	plotter.XYs
	plotter.YErrors
}
