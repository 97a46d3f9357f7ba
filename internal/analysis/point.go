package analysis

import (
	"cmp"
	"slices"

	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/internal/report"
)

const gib = 1 << 30

// point makes a cell of its entries, warm-ups left out.
func point(settings []record.Setting, entries []record.Entry) Point {
	p := Point{Settings: settings, Status: record.Skipped}
	if p.Settings == nil {
		p.Settings = []record.Setting{} // [] in JSON
	}
	if len(entries) == 0 {
		p.Error = "not begun"
	}
	for _, e := range lastOfEach(entries) {
		if e.Report != nil && e.Report.Verify.Ran && !e.Report.Verify.OK {
			p.unproven = true
		}
		switch {
		case (e.Status == record.Measured || e.Status == record.Limited) && e.Report != nil:
			p.count(e)
			continue
		case e.Status != record.Skipped:
			p.Failed++
			p.Status = atLeast(p.Status, record.Failed)
		}
		if p.Error == "" {
			p.Error = cmp.Or(e.Error, string(e.Status))
		}
	}
	p.summarise()
	return p
}

// lastOfEach keeps the last entry of every repeat: a sweep that goes on does again what was skipped or cut before.
func lastOfEach(entries []record.Entry) []record.Entry {
	last := map[int]record.Entry{}
	for _, e := range entries {
		last[e.Repeat] = e
	}
	kept := make([]record.Entry, 0, len(last))
	for _, e := range last {
		kept = append(kept, e)
	}
	slices.SortFunc(kept, func(a, b record.Entry) int { return cmp.Compare(a.Repeat, b.Repeat) })
	return kept
}

func (p *Point) count(e record.Entry) {
	limited := e.Status == record.Limited
	p.Pushes = append(p.Pushes, Push{Repeat: e.Repeat, Limited: limited, Report: e.Report})
	p.Retries += e.Report.Result.Retries
	p.Status = atLeast(p.Status, e.Status)
	if limited {
		p.Limited++
	}
}

// atLeast is the better of two statuses.
func atLeast(a, b record.Status) record.Status {
	order := []record.Status{record.Skipped, record.Failed, record.Limited, record.Measured}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// summarise makes the samples. What a push does not tell is 0 in its report and no value here.
func (p *Point) summarise() {
	for _, q := range []struct {
		into *Sample
		of   func(*report.Report) float64
	}{
		{&p.RowsPerSecond, func(r *report.Report) float64 { return r.Result.RowsPerSecond }},
		{&p.OverallRowsPerSecond, Overall},
		{&p.BytesPerSecond, func(r *report.Report) float64 { return r.Result.BytesPerSecond }},
		{&p.Seconds, func(r *report.Report) float64 { return r.Result.Seconds }},
		{&p.StageSeconds, func(r *report.Report) float64 { return r.Phases.Stage }},
		{&p.CommitSeconds, func(r *report.Report) float64 { return r.Phases.Commit }},
		{&p.VisibleSeconds, func(r *report.Report) float64 { return r.Latency.VisibleSeconds }},
		{&p.P50, func(r *report.Report) float64 { return r.Latency.BatchSeconds.P50 }},
		{&p.P90, func(r *report.Report) float64 { return r.Latency.BatchSeconds.P90 }},
		{&p.P99, func(r *report.Report) float64 { return r.Latency.BatchSeconds.P99 }},
		{&p.Max, func(r *report.Report) float64 { return r.Latency.BatchSeconds.Max }},
		{&p.CPUPerGiB, CPUPerGiB},
		{&p.BytesPerRow, func(r *report.Report) float64 { return r.Stored.BytesPerRow }},
	} {
		*q.into = sample(p.Pushes, q.of)
	}
	p.Typical = p.typical()
}

// Overall is the rate with the time that filling the buffers took, as somebody sees it who makes rows while loading.
func Overall(r *report.Report) float64 {
	seconds := r.Result.Seconds + r.Phases.Fill
	if seconds <= 0 {
		return 0
	}
	return r.Result.RowsPerSecond * r.Result.Seconds / seconds
}

// CPUPerGiB is the client's CPU seconds while rows moved, for a GiB of column data; 0 when none moved.
func CPUPerGiB(r *report.Report) float64 {
	moved := r.Result.BytesPerSecond * r.Result.Seconds // of this process: PayloadBytes counts those before it, too
	if moved <= 0 {
		return 0
	}
	return r.Client.LoadSeconds / (moved / gib)
}

func sample(pushes []Push, of func(*report.Report) float64) Sample {
	s := Sample{Values: []float64{}}
	for _, p := range pushes {
		if v := of(p.Report); v != 0 {
			s.Values = append(s.Values, v)
		}
	}
	if s.N = len(s.Values); s.N == 0 {
		return s
	}
	sorted := slices.Sorted(slices.Values(s.Values))
	s.Low, s.High = sorted[0], sorted[s.N-1]
	s.Median = (sorted[(s.N-1)/2] + sorted[s.N/2]) / 2
	return s
}

// Spread is how far the values lie from the median, as a share of it: the larger of both sides. It is 0 for fewer than
// two values, of which no spread is known.
func (s Sample) Spread() float64 {
	if s.N < 2 || s.Median == 0 {
		return 0
	}
	return max(s.High-s.Median, s.Median-s.Low) / s.Median
}

// typical is the push whose rate is nearest to the median; of two as near the first.
func (p *Point) typical() *report.Report {
	var found *report.Report
	nearest := 0.0
	for _, push := range p.Pushes {
		off := push.Report.Result.RowsPerSecond - p.RowsPerSecond.Median
		if off = max(off, -off); found == nil || off < nearest {
			found, nearest = push.Report, off
		}
	}
	return found
}
