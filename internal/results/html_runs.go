package results

import (
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results/chart"
)

// timeline is one run, moment by moment; nothing if it has none but its end.
func timeline(cell string, r *report.Report) []sketch {
	moments := r.Timeline.Moments
	if len(moments) < 2 {
		return nil
	}
	staged := moments[len(moments)-1].StoredBytes > 0
	line := chart.Timeline{Y: chart.Axis{Label: "rows/s"}, Mark: "retries"}
	acknowledged, stored := chart.Series{}, chart.Series{Name: "into the object store"}
	if staged { // rows arrive in a few large commits, so that bytes under way say more
		line.Y = chart.Axis{Label: "bytes/s", Unit: chart.Bytes}
		acknowledged.Name = "into the table"
	}
	retries := int64(0)
	var before report.Moment
	for _, m := range moments {
		took := m.At - before.At
		if took <= 0 {
			continue
		}
		y := float64(max(m.Rows-before.Rows, 0)) // a server may have lost some
		if staged {
			y = float64(max(m.PayloadBytes-before.PayloadBytes, 0))
		}
		acknowledged.Points = append(acknowledged.Points, chart.Point{X: m.At, Y: y / took})
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
	ceiling, calibrated := Point{Typical: r}.Ceiling()
	if calibrated = calibrated && !staged; calibrated {
		line.Ceilings = []chart.Ceiling{{Name: ceiling.Name, Y: ceiling.RowsPerSecond}}
	}
	caption := "The typical push of the best cell"
	if cell != "" {
		caption += " (" + cell + ")"
	}
	caption += " over time: acknowledged rows a second"
	if staged {
		line.Rates = append(line.Rates, stored)
		caption = strings.TrimSuffix(caption, "acknowledged rows a second") + "bytes a second into the table and into the object store"
	}
	caption += ", above its phases."
	if retries > 0 {
		caption += " Triangles are intervals with retries, " + humanize.Comma(retries) + " in all."
	}
	if calibrated {
		caption += " " + aboutCeilings
	}
	return []sketch{{Title: "A run over time", Caption: caption, draw: line.Draw}}
}

// share is one part of a whole, by the names of reports and of people.
type share struct{ key, name string }

// states are event.State's names, phases event.Phase's: what is busy first, and idle last, in grey.
func states() []share {
	return []share{
		{"send", "sending"}, {"wait_ack", "waiting for the answer"}, {"wait_buffer", "waiting for a buffer"},
		{"wait_rate", "held back by --max-rate"}, {"connect", "connecting"}, {"backoff", "between attempts"},
		{"resolve", "finding out an attempt's outcome"}, {"wait_commit", "waiting for commits"}, {"idle", "idle"},
	}
}

func phases() []share {
	return []share{
		{"prepare", "prepare"}, {"fill", "fill"}, {"load", "load"}, {"stage", "stage"}, {"commit", "commit"},
		{"finish", "finish"}, {"verify", "verify"},
	}
}

// breakdowns are where the time of workers went, and where the time of runs went.
func breakdowns(t Table) []sketch {
	return append(
		breakdown(t, "Where the workers' time went", "Share of the workers' time by what they were doing, ", states(),
			func(r *report.Report) map[string]float64 { return r.WorkerSeconds }),
		breakdown(t, "Where the run's time went", "Share of a run's time by phase, ", phases(), phaseSeconds)...)
}

func breakdown(t Table, title, caption string, shares []share, of func(*report.Report) map[string]float64) []sketch {
	total := func(r *report.Report) (sum float64) {
		for _, s := range shares {
			sum += max(of(r)[s.key], 0)
		}
		return sum
	}
	picked, which := picks(t, func(p Point) bool { return p.Typical != nil && total(p.Typical) > 0 })
	if len(picked) == 0 {
		return nil
	}
	var b chart.Bars
	for _, s := range shares {
		b.Parts = append(b.Parts, s.name)
	}
	for _, n := range picked {
		r := t.Points[n].Typical
		bar := chart.Bar{Name: cellName(t, t.Points[n].Settings), Note: seconds(total(r))}
		for _, s := range shares {
			bar.Parts = append(bar.Parts, max(of(r)[s.key], 0)/total(r))
		}
		b.Rows = append(b.Rows, bar)
	}
	return []sketch{{Title: title, Caption: caption + which + " On the right the whole.", draw: b.Draw}}
}

func phaseSeconds(r *report.Report) map[string]float64 {
	p := r.Phases
	return map[string]float64{
		"prepare": p.Prepare, "fill": p.Fill, "load": p.Load, "stage": p.Stage, "commit": p.Commit, "finish": p.Finish, "verify": p.Verify,
	}
}
