package results

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results/chart"
	"github.com/terapush/terapush/internal/units"
)

// sketch is a chart with its words.
type sketch struct {
	title, caption string
	wide           bool // worth the width of the page
	draw           func(chart.Frame) []byte
}

// asSVG draws the first chart of the first table as a file of its own.
func asSVG(tables []Table) (string, error) {
	t := tables[0]
	first := throughput(t)[0]
	frame := chart.Frame{ID: "chart", Title: t.title(), Desc: first.caption, Width: chart.Wide, Alone: true}
	return string(first.draw(frame)), nil
}

// sketches returns the charts of a table, most important first.
func sketches(t Table) []sketch {
	if len(t.Points) == 0 {
		return nil
	}
	list := append(throughput(t), latency(t)...)
	if best, ok := t.at(t.Best); ok && best.Typical != nil {
		list = append(list, timeline(t.cellName(best.Settings), best.Typical)...)
	}
	return slices.Concat(list,
		breakdown(t, "Worker-seconds by activity", "Share of the workers' time by what they were doing, ", stateNames,
			func(r *report.Report) map[string]float64 { return r.WorkerSeconds }),
		breakdown(t, "Phases", "Share of a run's time by phase, ", phaseNames, phasesOf))
}

// throughput shows rows per second along every ordered axis, or as bars without one.
func throughput(t Table) (list []sketch) {
	for _, a := range t.varying() {
		if a.ordered() {
			list = append(list, along(t, a, len(list) == 0))
		}
	}
	if len(list) == 0 {
		list = append(list, rateBars(t))
	}
	return list
}

func along(t Table, axis Axis, wide bool) sketch {
	lines, bestOf := lineAxes(t, axis)
	l := chart.Lines{
		X: chart.Axis{Label: axis.Name, Unit: axis.unit()}, Y: chart.Axis{Label: "rows/s"},
		Series: series(t, axis, lines, len(bestOf) == 0),
		Mark:   "first within " + limitText(Near) + " of its line's best",
	}
	for _, c := range t.ceilings() {
		l.Ceilings = append(l.Ceilings, chart.Ceiling{Name: c.name, Y: c.rowsPerSecond})
	}
	var xs, ys []float64
	dashed := false
	for _, s := range l.Series {
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
		dashed = dashed || s.Dashed
	}
	l.X.Log, l.Y.Log = wideRange(xs, 8), wideRange(ys, 30)
	if l.Y.Log {
		l.Y.Label += ", logarithmic"
	}
	if len(bestOf) > 0 { // on a slide there is no caption
		l.X.Label += ", best over " + namesOf(bestOf)
	}
	caption := "Rows per second by " + axis.Name
	if len(lines) > 0 {
		caption += ", a line for each " + namesOf(lines)
	}
	if len(bestOf) > 0 {
		caption += "; each point is the best over " + namesOf(bestOf)
	}
	caption += "."
	l.Note = aboutBars(t)
	caption = units.Join(" ", caption, l.Note)
	if dashed {
		caption += " Dashed lines are published figures, measured elsewhere."
	}
	if len(l.Ceilings) > 0 {
		caption += aboutCeilings
	}
	return sketch{title: "Throughput by " + axis.Name, caption: caption, wide: wide, draw: l.Draw}
}

// aboutBars explains points and their bars, "" if each is one push.
func aboutBars(t Table) string {
	most := 0
	for _, p := range t.Points {
		most = max(most, p.RowsPerSecond.N)
	}
	switch {
	case most < 2:
		return ""
	case most < LeastTrials:
		return "Points are medians; bars reach from the slowest push to the fastest."
	}
	const text = "Points are medians; bars are their 95 %% intervals, or reach from slowest to fastest of fewer than %d pushes."
	return fmt.Sprintf(text, LeastTrials)
}

const aboutCeilings = " This client's line is what calibrate reached into a server that discards."

func (a Axis) unit() chart.Unit {
	switch {
	case strings.Contains(a.Name, "bytes"):
		return chart.Bytes
	case len(a.Values) > 0 && parseValue(a.Values[0]).isDuration:
		return chart.Seconds
	}
	return chart.Count
}

// wideRange reports whether a linear axis would hide the small values: the largest is so many times the smallest.
func wideRange(values []float64, times float64) bool {
	return len(values) > 0 && slices.Min(values) > 0 && slices.Max(values) >= times*slices.Min(values)
}

func namesOf(axes []Axis) string { return strings.Join(axisNames(axes), " and ") }

// lineAxes chooses the axes whose combinations are the lines of a chart along one axis, as many as there is room for,
// text before numbers: readers look for methods. A point is the best over the other axes.
func lineAxes(t Table, axis Axis) (lines, bestOf []Axis) {
	const most = 7 // lines that a reader can tell apart
	var texts, numbers []Axis
	for _, a := range t.varying() {
		switch {
		case a.Name == axis.Name:
		case a.ordered():
			numbers = append(numbers, a)
		default:
			texts = append(texts, a)
		}
	}
	count := 1
	for n, a := range append(texts, numbers...) {
		if n == 0 || count*len(a.Values) <= most {
			count *= len(a.Values)
			lines = append(lines, a)
		} else {
			bestOf = append(bestOf, a)
		}
	}
	return lines, bestOf
}

// series returns the lines, published ones last.
func series(t Table, axis Axis, lines []Axis, knees bool) []chart.Series {
	var here, there []chart.Series
	named := slices.DeleteFunc(t.varying(), func(a Axis) bool {
		return !slices.ContainsFunc(lines, func(n Axis) bool { return n.Name == a.Name })
	})
	for _, p := range t.Points {
		x := parseValue(p.Settings.Value(axis.Name))
		if s := p.RowsPerSecond; !x.isText && s.N > 0 {
			point := chart.Point{X: x.amount, Y: s.Median, Marked: knees && t.isKnee(p) && t.Knees[0].Axis == axis.Name}
			switch {
			case s.N >= LeastTrials:
				point.Low, point.High = s.MedianLow, s.MedianHigh
			case s.N > 1:
				point.Low, point.High = s.Low, s.High
			}
			here = withPoint(here, chart.Series{Name: nameBy(named, p.Settings.Value)}, point)
		}
	}
	if t.Facts != nil {
		for _, fact := range t.Facts.Points {
			if x := parseValue(fact.Value(axis.Name)); !x.isText && fact.Figures[rowRate] > 0 {
				line := chart.Series{Name: nameBy(named, fact.Value), Dashed: true}
				there = withPoint(there, line, chart.Point{X: x.amount, Y: fact.Figures[rowRate]})
			}
		}
	}
	return append(here, there...)
}

// withPoint adds a point to the series of a name. Of several points with the same X the highest stays.
func withPoint(all []chart.Series, of chart.Series, p chart.Point) []chart.Series {
	i := slices.IndexFunc(all, func(s chart.Series) bool { return s.Name == of.Name })
	if i < 0 {
		of.Points = []chart.Point{p}
		return append(all, of)
	}
	points := all[i].Points
	n := slices.IndexFunc(points, func(had chart.Point) bool { return had.X == p.X })
	switch {
	case n < 0:
		all[i].Points = append(points, p)
	case p.Y > points[n].Y:
		points[n] = p
	}
	return all
}

func rateBars(t Table) sketch {
	const most = 24
	var b chart.Bars
	picked := fastestOf(t, t.measured(), most)
	for _, n := range picked {
		p := t.Points[n]
		bar := chart.Bar{
			Name: t.cellName(p.Settings), Note: units.Amount(p.rate()), Parts: []float64{p.rate()}, Published: p.published(rowRate),
		}
		if c, ok := p.ceiling(); ok {
			bar.Ceiling = c.rowsPerSecond
		}
		b.Rows = append(b.Rows, bar)
	}
	caption := "Rows per second of each case." + ofAll(len(picked), len(t.measured()))
	if slices.ContainsFunc(b.Rows, func(r chart.Bar) bool { return r.Published > 0 }) {
		caption += " Upright strokes are published figures, measured elsewhere."
	}
	var ceilings []string
	for _, c := range t.ceilings() {
		ceilings = append(ceilings, c.name)
	}
	if len(ceilings) > 0 {
		caption += " What calibrate reached into a server that discards: " + strings.Join(ceilings, ", ")
	}
	return sketch{title: "Throughput", caption: caption, draw: b.Draw}
}

func ofAll(shown, of int) string {
	if shown == of {
		return ""
	}
	return fmt.Sprintf(" The fastest %d of %d are shown.", shown, of)
}

func latency(t Table) []sketch {
	picked, which := picks(t, func(p Point) bool { return p.P50.N > 0 })
	caption := "Time within which so many batches had their answer, " + which + loopInWords(t.input("loop"))
	percentiles := latencyNames[:len(latencyNames)-1] // the longest would leave no room for the others
	return stacked(t, "Latency of batches", caption, percentiles, picked, func(p Point) chart.Bar {
		p99 := around("p99 ", p.P99.show(units.Seconds), "")
		bar := chart.Bar{Note: units.Join(" · ", "p50 "+p.P50.show(units.Seconds), p99)}
		reached := 0.0
		for _, q := range percentiles {
			bar.Parts = append(bar.Parts, max(p.sample(q.key).Median-reached, 0))
			reached = max(reached, p.sample(q.key).Median)
		}
		return bar
	})
}

// fastestOf returns the fastest of some points, of equals the first, in their own order.
func fastestOf(t Table, among []int, most int) []int {
	byRate := slices.SortedStableFunc(slices.Values(among), func(a, b int) int {
		return cmp.Compare(t.Points[b].rate(), t.Points[a].rate())
	})
	return slices.Sorted(slices.Values(byRate[:min(len(byRate), most)]))
}

// picks returns the cases whose details are shown, and a description of them: the fastest case of each combination of
// text axes, such as the method, or of each value of the first axis if all are numbers.
func picks(t Table, fit func(Point) bool) (points []int, which string) {
	const most = 8
	axes := slices.DeleteFunc(t.varying(), Axis.ordered)
	if len(axes) == 0 && len(t.varying()) > 0 {
		axes = t.varying()[:1]
	}
	best := map[string]int{}
	for _, n := range t.measured() {
		p := t.Points[n]
		if !fit(p) {
			continue
		}
		name := ""
		for _, a := range axes {
			name += p.Settings.Value(a.Name) + "\x00"
		}
		if had, ok := best[name]; !ok || p.rate() > t.Points[had].rate() {
			best[name] = n
		}
	}
	all := slices.Sorted(maps.Values(best))
	points = fastestOf(t, all, most)
	if which = "by case."; len(axes) > 0 && len(axes) < len(t.varying()) {
		which = "in the fastest case of each " + namesOf(axes) + "."
	}
	return points, which + ofAll(len(points), len(all))
}
