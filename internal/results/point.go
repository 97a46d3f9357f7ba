package results

import (
	"cmp"
	"slices"

	"github.com/terapush/terapush/internal/report"
)

// point makes a cell of its entries, warm-ups left out.
func point(settings Settings, entries []Entry) Point {
	p := Point{Settings: settings, Status: Skipped}
	if p.Settings == nil {
		p.Settings = Settings{} // [] in JSON
	}
	if len(entries) == 0 {
		p.Error = "not begun"
	}
	for _, e := range lastOfEach(entries) {
		if e.Report != nil && e.Report.Verify.Ran && !e.Report.Verify.OK {
			p.unproven = true
		}
		switch {
		case (e.Status == Measured || e.Status == Limited) && e.Report != nil:
			p.count(e)
			continue
		case e.Status != Skipped:
			p.Failed++
			p.Status = atLeast(p.Status, Failed)
		}
		if p.Error == "" {
			p.Error = cmp.Or(e.Error, string(e.Status))
		}
	}
	p.summarise()
	return p
}

// lastOfEach keeps the last entry of every repeat: a sweep that goes on does again what was skipped or cut before.
func lastOfEach(entries []Entry) []Entry {
	last := map[int]Entry{}
	for _, e := range entries {
		last[e.Repeat] = e
	}
	kept := make([]Entry, 0, len(last))
	for _, e := range last {
		kept = append(kept, e)
	}
	slices.SortFunc(kept, func(a, b Entry) int { return cmp.Compare(a.Repeat, b.Repeat) })
	return kept
}

func (p *Point) count(e Entry) {
	p.Pushes = append(p.Pushes, e.Report)
	p.Retries += e.Report.Result.Retries
	p.Status = atLeast(p.Status, e.Status)
	if e.Status == Limited {
		p.Limited++
	}
}

// atLeast is the better of two statuses.
func atLeast(a, b Status) Status {
	order := []Status{Skipped, Failed, Limited, Measured}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// summarise makes the samples.
func (p *Point) summarise() {
	for _, q := range []struct {
		into *Sample
		of   Measure
	}{
		{&p.RowsPerSecond, RowsPerSecond}, {&p.OverallRowsPerSecond, OverallRowsPerSecond}, {&p.BytesPerSecond, BytesPerSecond},
		{&p.Seconds, Seconds}, {&p.StageSeconds, stageSeconds}, {&p.CommitSeconds, commitSeconds},
		{&p.VisibleSeconds, VisibleSeconds(p.Pushes)},
		{&p.P50, P50}, {&p.P90, p90}, {&p.P99, P99}, {&p.Max, longest},
		{&p.CPUPerGiB, CPUPerGiB}, {&p.BytesPerRow, BytesPerRow},
	} {
		*q.into = sample(p.Pushes, q.of)
	}
	p.Typical = p.typical()
}

func sample(pushes []*report.Report, of Measure) Sample {
	s := Sample{Values: []float64{}}
	for _, p := range pushes {
		if v, ok := of(p); ok {
			s.Values = append(s.Values, v)
		}
	}
	if s.N = len(s.Values); s.N == 0 {
		return s
	}
	sorted := slices.Sorted(slices.Values(s.Values))
	s.Low, s.High = sorted[0], sorted[s.N-1]
	s.Median = sorted[(s.N-1)/2]/2 + sorted[s.N/2]/2 // halves first: the sum of two numbers may be too large for one
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
		off := push.Result.RowsPerSecond - p.RowsPerSecond.Median
		if off = max(off, -off); found == nil || off < nearest {
			found, nearest = push, off
		}
	}
	return found
}
