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
	Values []float64 `json:"values"` // in the order of repeats, without unknown ones
}

// Spread returns the largest distance of a value from the median as a share of the median. It is 0 for fewer than two
// values, whose spread is unknown.
func (s Sample) Spread() float64 {
	if s.N < 2 || s.Median == 0 {
		return 0
	}
	return max(s.High-s.Median, s.Median-s.Low) / s.Median
}

// quantity is one figure of a push.
type quantity struct {
	name   string // for scripts; it ends with the unit
	sample func(*Point) *Sample
	of     func(*report.Report) float64 // NaN if unknown; 0 is a value
}

func quantities() []quantity {
	type push = *report.Report
	moving := func(r push, v float64) float64 { return known(r.Result.Seconds > 0, v) }
	// Batches other than the longest may have taken no time that counts.
	timed := func(r push, v float64) float64 { return known(r.Latency.BatchSeconds.Max > 0, v) }
	positive := func(v float64) float64 { return known(v > 0, v) }
	return []quantity{
		{"rows_per_second", func(p *Point) *Sample { return &p.RowsPerSecond },
			func(r push) float64 { return moving(r, r.Result.RowsPerSecond) }},
		{"overall_rows_per_second", func(p *Point) *Sample { return &p.OverallRowsPerSecond },
			func(r push) float64 {
				return moving(r, r.Result.RowsPerSecond*r.Result.Seconds/(r.Result.Seconds+r.Phases.Fill))
			}},
		{"bytes_per_second", func(p *Point) *Sample { return &p.BytesPerSecond },
			func(r push) float64 { return moving(r, r.Result.BytesPerSecond) }},
		{"seconds", func(p *Point) *Sample { return &p.Seconds },
			func(r push) float64 { return moving(r, r.Result.Seconds) }},
		{"stage_seconds", func(p *Point) *Sample { return &p.StageSeconds },
			func(r push) float64 { return positive(r.Phases.Stage) }},
		{"commit_seconds", func(p *Point) *Sample { return &p.CommitSeconds },
			func(r push) float64 { return positive(r.Phases.Commit) }},
		{"visible_seconds", func(p *Point) *Sample { return &p.VisibleSeconds },
			func(r push) float64 { // an interrupted push has not checked
				v := r.Latency.VisibleSeconds
				return known(v > 0 || r.Result.Outcome != report.Interrupted, v)
			}},
		{"batch_p50_seconds", func(p *Point) *Sample { return &p.P50 },
			func(r push) float64 { return timed(r, r.Latency.BatchSeconds.P50) }},
		{"batch_p90_seconds", func(p *Point) *Sample { return &p.P90 },
			func(r push) float64 { return timed(r, r.Latency.BatchSeconds.P90) }},
		{"batch_p99_seconds", func(p *Point) *Sample { return &p.P99 },
			func(r push) float64 { return timed(r, r.Latency.BatchSeconds.P99) }},
		{"batch_max_seconds", func(p *Point) *Sample { return &p.Max },
			func(r push) float64 { return timed(r, r.Latency.BatchSeconds.Max) }},
		{"cpu_seconds_per_gib", func(p *Point) *Sample { return &p.CPUPerGiB },
			func(r push) float64 { // PayloadBytes includes earlier processes, the rate does not
				return positive(r.Client.LoadSeconds / (r.Result.BytesPerSecond * r.Result.Seconds / gib))
			}},
		{"stored_bytes_per_row", func(p *Point) *Sample { return &p.BytesPerRow },
			func(r push) float64 { return positive(r.Stored.BytesPerRow) }},
	}
}

// known returns v, or NaN if it is not known.
func known(is bool, v float64) float64 {
	if !is {
		return math.NaN()
	}
	return v
}

// finite reports whether v is a number.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// summarise computes the samples of the pushes.
func (p *Point) summarise() {
	for _, q := range quantities() {
		*q.sample(p) = sampleOf(p.Pushes, q)
	}
	// A report has 0 both where rows were visible at once and where visibility was not checked. All pushes of a cell do
	// the same, so one that had to wait shows that all have checked.
	if p.VisibleSeconds.High <= 0 {
		p.VisibleSeconds = Sample{Values: []float64{}}
	}
	p.Typical = p.typical()
}

func sampleOf(pushes []*report.Report, q quantity) Sample {
	s := Sample{Values: []float64{}}
	for _, push := range pushes {
		if v := q.of(push); finite(v) && v >= 0 { // a record may hold anything
			s.Values = append(s.Values, v)
		}
	}
	if s.N = len(s.Values); s.N > 0 {
		s.Low, s.High, s.Median = slices.Min(s.Values), slices.Max(s.Values), median(s.Values)
	}
	return s
}

// median returns the median of values, 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	// Halves first: the sum of two numbers may overflow.
	return sorted[(len(sorted)-1)/2]/2 + sorted[len(sorted)/2]/2
}

// typical returns the first push whose rate is nearest to the median.
func (p *Point) typical() *report.Report {
	var typical *report.Report
	nearest := 0.0
	for _, push := range p.Pushes {
		distance := math.Abs(push.Result.RowsPerSecond - p.rate())
		if typical == nil || distance < nearest {
			typical, nearest = push, distance
		}
	}
	return typical
}
