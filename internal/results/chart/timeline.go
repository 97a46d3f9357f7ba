package chart

import "slices"

// Timeline shows rates over the seconds of a run, with its phases.
type Timeline struct {
	Y        Axis
	Rates    []Series // Y is the mean rate of the interval that ends at X; the first begins at 0
	Phases   []Phase
	Marks    []float64 // times of events
	Mark     string    // names them in the legend
	Ceilings []Ceiling
}

// Phase is a part of the run.
type Phase struct {
	Name     string
	From, To float64 // seconds
}

// Draw returns the drawing. Rates are steps: each is the mean of an interval.
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
	room := 1.15 // for the names of phases above the rates
	if len(over.drawn) > 0 {
		room = 1.3 // and for the name of a ceiling
	}
	if high = over.top(high); high == 0 {
		high = 1
	}
	seconds := linear(Seconds, end)
	if last := len(seconds) - 1; seconds[last].value > end {
		seconds = seconds[:last]
	}
	p := d.plot(scale{high: end, ticks: seconds}, around(linear(t.Y.Unit, high*room), false), "since the run began")
	t.phases(p)
	over.draw(p)
	for n, s := range series {
		p.steps(solid(hue(n), 1.5), s.Points)
	}
	for _, at := range t.Marks {
		shape(2)(&d.svg, hue(1), point{p.x.at(at), p.bottom - radius})
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
		entries = append(entries, entry{name: t.Mark, ink: hue(1), glyph: shape(2)})
	}
	return entries
}

// phases tints every other phase and names those with enough room.
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

// steps draws each value over the interval that it ends.
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
