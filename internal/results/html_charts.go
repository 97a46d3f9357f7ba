package results

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/results/chart"
)

// sketch is a chart that is not drawn yet.
type sketch struct {
	Title, Caption string
	Wide           bool // worth the width of the page
	draw           func(chart.Frame) []byte
}

// sketches are the charts of a table, most important first.
func sketches(t Table) []sketch {
	if len(t.Points) == 0 {
		return nil
	}
	list := throughput(t)
	list = append(list, latency(t)...)
	if best, ok := pointAt(t, t.Best); ok && best.Typical != nil {
		list = append(list, timeline(cellName(t, best.Settings), best.Typical)...)
	}
	return append(list, breakdowns(t)...)
}

// throughput is rows per second along every axis that has an order, or bar by bar where none has.
func throughput(t Table) (list []sketch) {
	for _, a := range varying(t) {
		if Ordered(a) {
			list = append(list, along(t, a, len(list) == 0))
		}
	}
	if len(list) == 0 {
		list = append(list, rateBars(t))
	}
	return list
}

// along is rows per second by one axis.
func along(t Table, axis Axis, wide bool) sketch {
	f := fold(t, axis)
	l := chart.Lines{
		X: chart.Axis{Label: axis.Name, Unit: unitOf(axis)}, Y: chart.Axis{Label: "rows/s"},
		Series: f.series(t), Mark: "first within " + near() + " of its line's best", Dashed: "published",
	}
	for _, c := range t.Ceilings() {
		l.Ceilings = append(l.Ceilings, chart.Ceiling{Name: c.Name, Y: c.RowsPerSecond})
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
	caption := "Rows per second by " + axis.Name
	if len(f.names) > 0 {
		caption += ", a line for each " + strings.Join(f.names, " and ")
	}
	if len(f.bestOf) > 0 {
		caption += "; each point is the best over " + strings.Join(f.bestOf, " and ")
	}
	caption += "."
	if slices.ContainsFunc(t.Points, func(p Point) bool { return p.RowsPerSecond.N > 1 }) {
		caption += " A point is the median of a cell's pushes, its bar reaches from the slowest to the fastest."
	}
	if dashed {
		caption += " Dashed is what was published, measured elsewhere."
	}
	if len(l.Ceilings) > 0 {
		caption += " " + aboutCeilings
	}
	return sketch{Title: "Throughput by " + axis.Name, Caption: caption, Wide: wide, draw: l.Draw}
}

const aboutCeilings = "This client's line is what calibrate measured on it, into a server that forgets."

// unitOf is what an axis is measured in.
func unitOf(a Axis) chart.Unit {
	switch {
	case strings.Contains(a.Name, "bytes"):
		return chart.Bytes
	case len(a.Values) > 0 && IsDuration(a.Values[0]):
		return chart.Seconds
	}
	return chart.Count
}

// wideRange tells whether values reach so far that a linear axis would hide the small ones.
func wideRange(values []float64, times float64) bool {
	values = slices.DeleteFunc(values, func(v float64) bool { return v < 0 || math.IsNaN(v) })
	return len(values) > 0 && slices.Min(values) > 0 && slices.Max(values) >= times*slices.Min(values)
}

// Bars and rows of charts are bounded: of more cells the fastest are shown.
const (
	maxBars = 24
	maxRows = 8
)

// rateBars are the cells where no axis has an order.
func rateBars(t Table) sketch {
	var b chart.Bars
	picked := fastestOf(t, measuredPoints(t), maxBars)
	for _, n := range picked {
		p := t.Points[n]
		bar := chart.Bar{Name: cellName(t, p.Settings), Note: amount(p.RowsPerSecond.Median), Parts: []float64{p.RowsPerSecond.Median}}
		if p.Fact != nil {
			bar.Published = p.Fact.RowsPerSecond
		}
		if c, ok := p.Ceiling(); ok {
			bar.Ceiling = c.RowsPerSecond
		}
		b.Rows = append(b.Rows, bar)
	}
	caption := "Rows per second of each cell." + ofAll(len(picked), len(measuredPoints(t)))
	if slices.ContainsFunc(b.Rows, func(r chart.Bar) bool { return r.Published > 0 }) {
		caption += " The upright stroke is what was published, measured elsewhere."
	}
	for i, c := range t.Ceilings() {
		if i == 0 {
			caption += " What calibrate measured, into a server that forgets:"
		}
		caption += map[bool]string{true: " ", false: ", "}[i == 0] + printable(c.Name)
	}
	return sketch{Title: "Throughput", Caption: caption, draw: b.Draw}
}

func ofAll(shown, of int) string {
	if shown == of {
		return ""
	}
	return fmt.Sprintf(" The fastest %d of %d are shown.", shown, of)
}

// latency is the percentiles of batches in the best cells.
func latency(t Table) []sketch {
	picked, caption := picks(t, func(p Point) bool { return p.P50.N > 0 })
	if len(picked) == 0 {
		return nil
	}
	r := chart.Ranges{X: chart.Axis{Label: "time of a batch", Unit: chart.Seconds, Log: true}, Values: []string{"p50", "p90", "p99", "longest"}}
	for _, n := range picked {
		p := t.Points[n]
		r.Rows = append(r.Rows, chart.Range{Name: cellName(t, p.Settings), Values: []float64{p.P50.Median, p.P90.Median, p.P99.Median, p.Max.Median}})
	}
	caption = "How long a batch took from being sent to its answer, " + caption
	if loop := input(t, "loop"); loop != "" {
		caption += " The loop is " + loop + "."
	}
	return []sketch{{Title: "Latency of batches", Caption: caption, draw: r.Draw}}
}
