package results

import (
	"strings"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results/chart"
	"github.com/terapush/terapush/internal/units"
)

// timeline shows one run over time; nothing if it has fewer than two moments.
func timeline(cell string, r *report.Report) []sketch {
	moments := r.Timeline.Moments
	if len(moments) < 2 {
		return nil
	}
	line := chart.Timeline{Y: chart.Axis{Label: "rows/s"}, Mark: "retries"}
	acknowledged, stored := chart.Series{}, chart.Series{Name: "into the object store"}
	what := "acknowledged rows a second"
	staged := moments[len(moments)-1].StoredBytes > 0
	if staged { // rows arrive in a few large commits; bytes under way show more
		line.Y = chart.Axis{Label: "bytes/s", Unit: chart.Bytes}
		acknowledged.Name = "into the table"
		what = "bytes a second into the table and into the object store"
	}
	retries := int64(0)
	var before report.Moment
	for _, m := range moments {
		took := m.At - before.At
		if took <= 0 {
			continue
		}
		arrived := m.Rows - before.Rows
		if staged {
			arrived = m.PayloadBytes - before.PayloadBytes
		}
		arrived = max(arrived, 0) // a server may have lost some
		acknowledged.Points = append(acknowledged.Points, chart.Point{X: m.At, Y: float64(arrived) / took})
		stored.Points = append(stored.Points, chart.Point{X: m.At, Y: float64(m.StoredBytes-before.StoredBytes) / took})
		if m.Retries > before.Retries {
			line.Marks = append(line.Marks, m.At)
			retries += m.Retries - before.Retries
		}
		if last := len(line.Phases) - 1; last >= 0 && line.Phases[last].Name == m.Phase {
			line.Phases[last].To = m.At
		} else {
			line.Phases = append(line.Phases, chart.Phase{Name: m.Phase, From: before.At, To: m.At})
		}
		before = m
	}
	line.Rates = []chart.Series{acknowledged}
	if staged {
		line.Rates = append(line.Rates, stored)
	}
	caption := strings.ToUpper(what[:1]) + what[1:] + ", above the run's phases" +
		around(", in the typical push of the best case (", cell, ")") + "."
	if retries > 0 {
		caption += " Triangles are intervals with retries, " + units.Count(retries) + " in all."
	}
	if top, calibrated := (Point{Typical: r}).ceiling(); calibrated && !staged {
		line.Ceilings = []chart.Ceiling{{Name: top.name, Y: top.rowsPerSecond}}
		caption += aboutCeilings
	}
	return []sketch{{title: "Throughput over time", caption: caption, draw: line.Draw}}
}

// stateNames are the workers' states, by the names of event.State: busy ones first, and idle last, in grey.
var stateNames = []share{
	{"send", "sending"}, {"wait_ack", "waiting for the answer"}, {"wait_buffer", "waiting for a buffer"},
	{"wait_rate", "held back by --max-rate"}, {"connect", "connecting"}, {"backoff", "between attempts"},
	{"resolve", "finding out an attempt's outcome"}, {"wait_commit", "waiting for commits"}, {"idle", "idle"},
}

// phaseNames are the phases in their order.
var phaseNames = []share{
	{"prepare", "prepare"}, {"fill", "fill"}, {"load", "load"}, {"stage", "stage"}, {"commit", "commit"}, {"finish", "finish"},
	{"verify", "verify"},
}

func phasesOf(r *report.Report) map[string]float64 {
	p := r.Phases
	return map[string]float64{
		"prepare": p.Prepare, "fill": p.Fill, "load": p.Load, "stage": p.Stage, "commit": p.Commit, "finish": p.Finish,
		"verify": p.Verify,
	}
}

// share is one part of a whole: its name in reports, and for people.
type share struct{ key, name string }

// breakdown shows where the time of the typical pushes of some cases went.
func breakdown(t Table, title, caption string, shares []share, of func(*report.Report) map[string]float64) []sketch {
	total := func(r *report.Report) (sum float64) {
		for _, s := range shares {
			sum += max(of(r)[s.key], 0)
		}
		return sum
	}
	picked, which := picks(t, func(p Point) bool { return p.Typical != nil && total(p.Typical) > 0 })
	return stacked(t, title, caption+which+" Total at right.", shares, picked, func(p Point) chart.Bar {
		bar := chart.Bar{Note: units.Seconds(total(p.Typical))}
		for _, s := range shares {
			bar.Parts = append(bar.Parts, max(of(p.Typical)[s.key], 0)/total(p.Typical))
		}
		return bar
	})
}

// stacked draws a bar of several parts for each of some points; nothing without any.
func stacked(t Table, title, caption string, parts []share, points []int, bar func(Point) chart.Bar) []sketch {
	var b chart.Bars
	for _, s := range parts {
		b.Parts = append(b.Parts, s.name)
	}
	for _, n := range points {
		row := bar(t.Points[n])
		row.Name = t.cellName(t.Points[n].Settings)
		b.Rows = append(b.Rows, row)
	}
	if len(points) == 0 {
		return nil
	}
	return []sketch{{title: title, caption: caption, draw: b.Draw}}
}
