package chart

import "slices"

// Timeline is rates over the seconds of a run, above its phases.
type Timeline struct {
	Y      Axis
	Rates  []Series // X is the end of the interval that Y is the rate of, in seconds; the first begins with the run
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

// Draw returns the drawing. Rates are steps, since each is the mean of an interval.
func (t Timeline) Draw(f Frame) []byte {
	series := Lines{Series: t.Rates}.drawable()
	end, high := 0.0, highest(series)
	for _, s := range series {
		end = max(end, s.Points[len(s.Points)-1].X)
	}
	t.Phases = slices.DeleteFunc(slices.Clone(t.Phases), func(p Phase) bool {
		return !drawable(p.From, false) || !drawable(p.To, false)
	})
	for _, p := range t.Phases {
		end = max(end, p.To)
	}
	t.Marks = slices.DeleteFunc(slices.Clone(t.Marks), func(at float64) bool { return !drawable(at, false) || at > end })
	height := linesHeight
	if f.Width > Narrow {
		height = 1.2 * linesHeight
	}
	over := placed(t.Ceilings, high, false)
	d := f.start(height, t.Y.Label, append(t.legend(series), over.legend()...))
	if end == 0 || len(series) == 0 {
		return d.nothing()
	}
	room := 1.15 // above the rates, for the names of phases
	if len(over.drawn) > 0 {
		room = 1.3 // and for a ceiling's
	}
	if high = over.top(high); high == 0 {
		high = 1
	}
	seconds := linear(Seconds, end, 5)
	if last := len(seconds) - 1; seconds[last].value > end {
		seconds = seconds[:last]
	}
	p := d.plot(scale{high: end, ticks: seconds}, around(linear(t.Y.Unit, high*room, 5), false), "since the run began")
	t.phases(p)
	over.draw(p)
	for n, s := range series {
		p.steps(solid(hue(n), 1.5), s.Points)
	}
	for _, at := range t.Marks {
		triangle(&d.svg, hue(1), point{p.x.at(at), p.bottom - radius})
	}
	return d.finish()
}

func (t Timeline) legend(series []Series) (entries []entry) {
	for n, s := range series {
		if s.Name != "" {
			entries = append(entries, entry{name: s.Name, line: solid(hue(n), 2)})
		}
	}
	if len(t.Marks) > 0 {
		entries = append(entries, entry{name: t.Mark, ink: hue(1), glyph: triangle})
	}
	return entries
}

// phases tints every other phase, and names at its upper end each that has room for its name.
func (t Timeline) phases(p plot) {
	for n, phase := range t.Phases {
		from, to := p.x.at(phase.From), p.x.at(phase.To)
		if n%2 == 1 {
			p.rectangle(other+" band", from, p.top, to, p.bottom)
		}
		if to-from > width(phase.Name)+4 {
			p.text(quiet+" middle", (from+to)/2, p.top+fontSize+2, phase.Name)
		}
	}
}

// steps draws each value as the mean of the interval that it ends.
func (p plot) steps(look stroke, values []Point) {
	var line []point
	x := p.left
	for _, v := range values {
		to := p.at(v.X, v.Y)
		line = append(line, point{x, to.y}, to)
		x = to.x
	}
	p.line(look, line...)
}
