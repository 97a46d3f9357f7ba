package results

import (
	"math"
	"slices"

	"github.com/terapush/terapush/internal/report"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// Sample is one quantity of a point's pushes.
type Sample struct {
	N      int       `json:"n"` // 0: not measured
	Median float64   `json:"median"`
	Low    float64   `json:"low"` // the smallest
	High   float64   `json:"high"`
	Values []float64 `json:"values"` // of the pushes that have it, in the order of their repeats
}

// Spread returns how far the values lie from the median, as a share of it: the larger of both sides. It is 0 for fewer
// than two values, of which no spread is known.
func (s Sample) Spread() float64 {
	if s.N < 2 || s.Median == 0 {
		return 0
	}
	return max(s.High-s.Median, s.Median-s.Low) / s.Median
}

// quantity is one figure of a push. known is false for a push whose report does not tell it: 0 is a value like any
// other.
type quantity struct {
	name   string // that scripts know it by; it ends with the unit
	sample func(*Point) *Sample
	of     func(*report.Report) (value float64, known bool)
}

// moved reports whether a push has come as far as moving rows: then it has rates, be they 0.
func moved(r *report.Report) bool { return r.Result.Seconds > 0 }

// timed reports whether any batch was timed. The longest took some time then; the others may have taken less than
// counts.
func timed(r *report.Report) bool { return r.Latency.BatchSeconds.Max > 0 }

func quantities() []quantity {
	type push = *report.Report
	return []quantity{
		{"rows_per_second", func(p *Point) *Sample { return &p.RowsPerSecond },
			func(r push) (float64, bool) { return r.Result.RowsPerSecond, moved(r) }},
		{"overall_rows_per_second", func(p *Point) *Sample { return &p.OverallRowsPerSecond },
			func(r push) (float64, bool) {
				return r.Result.RowsPerSecond * r.Result.Seconds / (r.Result.Seconds + r.Phases.Fill), moved(r)
			}},
		{"bytes_per_second", func(p *Point) *Sample { return &p.BytesPerSecond },
			func(r push) (float64, bool) { return r.Result.BytesPerSecond, moved(r) }},
		{"seconds", func(p *Point) *Sample { return &p.Seconds },
			func(r push) (float64, bool) { return r.Result.Seconds, moved(r) }},
		// A phase that took no time did not happen.
		{"stage_seconds", func(p *Point) *Sample { return &p.StageSeconds },
			func(r push) (float64, bool) { return r.Phases.Stage, r.Phases.Stage > 0 }},
		{"commit_seconds", func(p *Point) *Sample { return &p.CommitSeconds },
			func(r push) (float64, bool) { return r.Phases.Commit, r.Phases.Commit > 0 }},
		// A push that was cut has not looked whether its rows are visible.
		{"visible_seconds", func(p *Point) *Sample { return &p.VisibleSeconds },
			func(r push) (float64, bool) {
				v := r.Latency.VisibleSeconds
				return v, v > 0 || r.Result.Outcome != report.Interrupted
			}},
		{"batch_p50_seconds", func(p *Point) *Sample { return &p.P50 },
			func(r push) (float64, bool) { return r.Latency.BatchSeconds.P50, timed(r) }},
		{"batch_p90_seconds", func(p *Point) *Sample { return &p.P90 },
			func(r push) (float64, bool) { return r.Latency.BatchSeconds.P90, timed(r) }},
		{"batch_p99_seconds", func(p *Point) *Sample { return &p.P99 },
			func(r push) (float64, bool) { return r.Latency.BatchSeconds.P99, timed(r) }},
		{"batch_max_seconds", func(p *Point) *Sample { return &p.Max },
			func(r push) (float64, bool) { return r.Latency.BatchSeconds.Max, timed(r) }},
		{"cpu_seconds_per_gib", func(p *Point) *Sample { return &p.CPUPerGiB },
			func(r push) (float64, bool) {
				bytes := r.Result.BytesPerSecond * r.Result.Seconds // of this process: PayloadBytes counts those before it, too
				return r.Client.LoadSeconds / (bytes / gib), bytes > 0 && r.Client.LoadSeconds > 0
			}},
		{"stored_bytes_per_row", func(p *Point) *Sample { return &p.BytesPerRow },
			func(r push) (float64, bool) { return r.Stored.BytesPerRow, r.Stored.BytesPerRow > 0 }},
	}
}

// finite returns a value, and false for what a division of broken figures leaves, which is no number.
func finite(value float64, known bool) (float64, bool) {
	if !known || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, false
	}
	return value, true
}

// summarise fills in the samples of the pushes.
func (p *Point) summarise() {
	for _, q := range quantities() {
		*q.sample(p) = sampleOf(p.Pushes, q)
	}
	// A report has 0 both where rows were visible at once and where nobody waited for them. Pushes of a cell do the
	// same, so that one which had to wait shows that all have looked.
	if p.VisibleSeconds.High <= 0 {
		p.VisibleSeconds = Sample{Values: []float64{}}
	}
	p.Typical = p.typical()
}

func sampleOf(pushes []*report.Report, q quantity) Sample {
	s := Sample{Values: []float64{}}
	for _, push := range pushes {
		if v, ok := finite(q.of(push)); ok && v >= 0 { // a record may hold anything
			s.Values = append(s.Values, v)
		}
	}
	if s.N = len(s.Values); s.N == 0 {
		return s
	}
	s.Low, s.High, s.Median = slices.Min(s.Values), slices.Max(s.Values), Median(s.Values)
	return s
}

// Median returns the median of some values, and 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	// Halves first: the sum of two numbers may be too large for one.
	return sorted[(len(sorted)-1)/2]/2 + sorted[len(sorted)/2]/2
}

// typical returns the push whose rate is nearest to the median; of two as near the first.
func (p *Point) typical() *report.Report {
	var found *report.Report
	nearest := 0.0
	for _, push := range p.Pushes {
		off := math.Abs(push.Result.RowsPerSecond - p.rate())
		if found == nil || off < nearest {
			found, nearest = push, off
		}
	}
	return found
}
