package chart

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Timeline is rates over the seconds of a run, above its phases.
type Timeline struct {
	Y      Axis
	Rates  []Series // X is the end of the interval that Y is the rate of, in seconds
	Phases []Phase
	Marks  []float64 // seconds at which something happened
	Mark   string    // what
	// Ceilings lie over all rates.
	Ceilings []Ceiling
}

// Phase is a part of the run.
type Phase struct {
	Name     string
	From, To float64 // seconds
}

const phaseHeight = 14.0

// Draw draws the time line: rates as steps, since each is the mean of an interval.
func (t Timeline) Draw(f Frame) []byte {
	series := Lines{Series: t.Rates}.drawable()
	end, high := 0.0, 0.0
	for _, s := range series {
		for _, p := range s.Points {
			end, high = max(end, p.X), max(high, p.Y)
		}
	}
	t.Phases = slices.DeleteFunc(slices.Clone(t.Phases), func(p Phase) bool { return !drawable(p.From, false) || !drawable(p.To, false) })
	for _, p := range t.Phases {
		end = max(end, p.To)
	}
	t.Marks = slices.DeleteFunc(slices.Clone(t.Marks), func(at float64) bool { return !drawable(at, false) || at > end })
	height := float64(linesHeight)
	if f.Width > Narrow {
		height = 1.2 * linesHeight
	}
	over := placed(t.Ceilings, high, false)
	d := f.start(height, t.Y.Label, append(t.legend(series), over.legend()...))
	if end == 0 || len(series) == 0 {
		return d.nothing()
	}
	p := d.plot()
	if high = over.top(high); high == 0 {
		high = 1
	}
	room := 1.15 // for the names of the phases
	if len(over.drawn) > 0 {
		room = 1.3 // and for a ceiling's
	}
	ticks := linear(t.Y.Unit, high*room, 5)
	p.Y.Tick.Marker, p.Y.Min, p.Y.Max = ticks, 0, ticks[len(ticks)-1].Value
	d.across(p, Axis{Label: "since the run began"}, 0, end)
	seconds := linear(Seconds, end, 5)
	p.X.Tick.Marker = thinned(seconds[:len(seconds)-1], d.width-60, p.X.Norm)
	if seconds[len(seconds)-1].Value <= end {
		p.X.Tick.Marker = thinned(seconds, d.width-60, p.X.Norm)
	}
	p.Add(t.bands(d), horizontalGrid(), over.lines(d))
	for n, s := range series {
		var xys plotter.XYs
		for _, v := range s.Points {
			xys = append(xys, plotter.XY{X: v.X, Y: v.Y})
		}
		p.Add(&plotter.Line{XYs: xys, StepStyle: plotter.PreStep, LineStyle: stroke(hue(n), 1.5)})
	}
	p.Add(drawn(t.marks))
	p.Draw(d.body)
	return d.finish()
}

func (t Timeline) legend(series []Series) (entries []entry) {
	for n, s := range series {
		if s.Name != "" {
			entries = append(entries, entry{name: s.Name, ink: hue(n), line: true})
		}
	}
	if len(t.Marks) > 0 {
		entries = append(entries, entry{name: t.Mark, ink: hue(1), glyph: draw.PyramidGlyph{}})
	}
	return entries
}

// bands tints every other phase, and names at its upper end each that has room for its name.
func (t Timeline) bands(d *drawing) drawn {
	return func(c draw.Canvas, p *plot.Plot) {
		x, _ := p.Transforms(&c)
		for n, phase := range t.Phases {
			from, to := x(phase.From), x(phase.To)
			if n%2 == 1 {
				rectangle(c, other+" band", from, c.Min.Y, to, c.Max.Y)
			}
			if float64(to-from) > width(phase.Name)+4 {
				s := d.style(quiet)
				s.XAlign = draw.XCenter
				c.FillText(s, vg.Point{X: (from + to) / 2, Y: c.Max.Y - phaseHeight}, phase.Name)
			}
		}
	}
}

// marks stand on the lower axis.
func (t Timeline) marks(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, at := range t.Marks {
		c.DrawGlyph(draw.GlyphStyle{Color: hue(1), Radius: radius, Shape: draw.PyramidGlyph{}}, vg.Point{X: x(at), Y: c.Min.Y + radius})
	}
}
