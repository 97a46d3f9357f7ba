package results

import (
	"maps"
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

// quantity is one figure of a point. Its name is for scripts and ends with the unit.
type quantity struct {
	name   string
	sample *Sample
}

func (p *Point) quantities() []quantity {
	return []quantity{
		{"rows_per_second", &p.RowsPerSecond}, {"overall_rows_per_second", &p.OverallRowsPerSecond},
		{"bytes_per_second", &p.BytesPerSecond}, {"seconds", &p.Seconds}, {"stage_seconds", &p.StageSeconds},
		{"commit_seconds", &p.CommitSeconds}, {"visible_seconds", &p.VisibleSeconds}, {"batch_p50_seconds", &p.P50},
		{"batch_p90_seconds", &p.P90}, {"batch_p99_seconds", &p.P99}, {"batch_max_seconds", &p.Max},
		{"cpu_seconds_per_gib", &p.CPUPerGiB}, {"stored_bytes_per_row", &p.BytesPerRow},
	}
}

// figuresOf returns the known quantities of a push by name. 0 is a value like any other.
func figuresOf(r *report.Report) map[string]float64 {
	result, batches, phases := r.Result, r.Latency.BatchSeconds, r.Phases
	all := map[string]float64{}
	if result.Seconds > 0 { // it has moved rows
		all["rows_per_second"], all["bytes_per_second"] = result.RowsPerSecond, result.BytesPerSecond
		all["overall_rows_per_second"] = result.RowsPerSecond * result.Seconds / (result.Seconds + phases.Fill)
		all["seconds"] = result.Seconds
	}
	if batches.Max > 0 { // the others may have taken no time that counts
		all["batch_p50_seconds"], all["batch_p90_seconds"] = batches.P50, batches.P90
		all["batch_p99_seconds"], all["batch_max_seconds"] = batches.P99, batches.Max
	}
	if visible := r.Latency.VisibleSeconds; visible > 0 || result.Outcome != report.Interrupted { // else unchecked
		all["visible_seconds"] = visible
	}
	for name, v := range map[string]float64{
		"stage_seconds": phases.Stage, "commit_seconds": phases.Commit, "stored_bytes_per_row": r.Stored.BytesPerRow,
		// PayloadBytes includes earlier processes, the rate does not.
		"cpu_seconds_per_gib": r.Client.LoadSeconds / (result.BytesPerSecond * result.Seconds / gib),
	} {
		if v > 0 {
			all[name] = v
		}
	}
	// A record may hold anything.
	maps.DeleteFunc(all, func(_ string, v float64) bool { return !finite(v) || v < 0 })
	return all
}

// finite reports whether v is a number.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// summarise computes the samples of the pushes.
func (p *Point) summarise() {
	values := map[string][]float64{}
	for _, push := range p.Pushes {
		for name, v := range figuresOf(push) {
			values[name] = append(values[name], v)
		}
	}
	for _, q := range p.quantities() {
		*q.sample = sampleOf(values[q.name])
	}
	// A report has 0 both where rows were visible at once and where visibility was not checked. All pushes of a cell do
	// the same, so one that had to wait shows that all have checked.
	if p.VisibleSeconds.High <= 0 {
		p.VisibleSeconds = sampleOf(nil)
	}
	p.Typical = p.typical()
}

func sampleOf(values []float64) Sample {
	s := Sample{N: len(values), Values: append([]float64{}, values...)} // [] in JSON
	if s.N > 0 {
		s.Low, s.High, s.Median = slices.Min(values), slices.Max(values), median(values)
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
