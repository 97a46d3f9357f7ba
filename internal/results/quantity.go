package results

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"golang.org/x/perf/benchmath"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/units"
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
	// The median of ever more pushes lies from MedianLow to MedianHigh with a confidence of 95 %: two of the values,
	// whatever their distribution. Both are 0 with fewer values than that takes, which are LeastTrials.
	MedianLow  float64 `json:"median_low"`
	MedianHigh float64 `json:"median_high"`
}

// LeastTrials is how many values an interval of their median takes: of five, all lie on one side of it in every
// sixteenth case.
const LeastTrials = 6

// Precision returns how far the interval of the median reaches from it, as a share of it; +Inf if that is not known.
func (s Sample) Precision() float64 {
	if s.N < LeastTrials || s.Median <= 0 {
		return math.Inf(1)
	}
	return max(s.MedianHigh-s.Median, s.Median-s.MedianLow) / s.Median
}

// Spread returns the largest distance of a value from the median as a share of the median. It is 0 for fewer than two
// values, whose spread is unknown.
func (s Sample) Spread() float64 {
	if s.N < 2 || s.Median == 0 {
		return 0
	}
	return max(s.High-s.Median, s.Median-s.Low) / s.Median
}

// show formats the median; "" if nothing was measured.
func (s Sample) show(of func(float64) string) string {
	if s.N == 0 {
		return ""
	}
	return of(s.Median)
}

// quantity is one figure of a point. Its name is for scripts and ends with the unit.
type quantity struct {
	name   string
	sample *Sample
}

func (p *Point) quantities() []quantity {
	return []quantity{
		{rowRate, &p.RowsPerSecond}, {overallRate, &p.OverallRowsPerSecond}, {byteRate, &p.BytesPerSecond},
		{seconds, &p.Seconds}, {"stage_seconds", &p.StageSeconds}, {"commit_seconds", &p.CommitSeconds},
		{"visible_seconds", &p.VisibleSeconds}, {"batch_p50_seconds", &p.P50}, {"batch_p90_seconds", &p.P90},
		{"batch_p99_seconds", &p.P99}, {"batch_max_seconds", &p.Max}, {"cpu_seconds_per_gib", &p.CPUPerGiB},
		{"stored_bytes_per_row", &p.BytesPerRow}, {"total_rows", &p.TotalRows}, {"stored_bytes", &p.StoredBytes},
		{"sent_bytes_per_second", &p.SentRate}, {"commit_rows_per_second", &p.CommitRate},
		{"commit_bytes_per_second", &p.CommitByteRate}, {"client_cpu_percent", &p.ClientCPU},
		{"server_cpu_percent", &p.ServerCPU}, {"batch_p999_seconds", &p.P999},
	}
}

func (p *Point) sample(name string) (s Sample) {
	for _, q := range p.quantities() {
		if q.name == name {
			s = *q.sample
		}
	}
	return s
}

func words(quantity string) string { return strings.ReplaceAll(quantity, "_", " ") }

// show formats a value of a quantity, by the unit that its name ends with.
func show(quantity string, v float64) string {
	switch {
	case strings.HasSuffix(quantity, "bytes_per_second"):
		return humanize.IBytesN(uint64(max(v, 0)), 3)
	case strings.HasSuffix(quantity, "seconds"):
		return units.Seconds(v)
	}
	return units.Amount(v)
}

// The quantities that have columns of their own beside what was published.
const (
	rowRate     = "rows_per_second"
	overallRate = "overall_rows_per_second"
	byteRate    = "bytes_per_second"
	seconds     = "seconds"
)

// Quantities are the names of what a fact can hold.
func Quantities() (names []string) {
	for _, q := range (&Point{}).quantities() {
		names = append(names, q.name)
	}
	return names
}

// figuresOf returns the known quantities of a push by name. 0 is a value like any other.
func figuresOf(r *report.Report) map[string]float64 {
	result, batches, phases, server := r.Result, r.Latency.BatchSeconds, r.Phases, r.BoundBy.Evidence.Server
	all := map[string]float64{}
	if m := r.Measured; m != nil {
		wire := r.BoundBy.Evidence.WirePerPayload * float64(m.PayloadBytes)
		result.Seconds, result.WireBytes = m.Seconds, int64(wire)
	}
	if result.Seconds > 0 { // it has moved rows
		all[rowRate], all[byteRate] = result.RowsPerSecond, result.BytesPerSecond
		all[overallRate] = result.RowsPerSecond * result.Seconds / (result.Seconds + phases.Fill)
		all[seconds] = result.Seconds
	}
	if n := batches.Count; n > 0 {
		all["batch_max_seconds"] = batches.Max
		for name, q := range map[string]struct{ of, seconds float64 }{
			"batch_p50_seconds": {0.5, batches.P50}, "batch_p90_seconds": {0.9, batches.P90}, "batch_p99_seconds": {0.99, batches.P99},
			"batch_p999_seconds": {0.999, batches.P999},
		} {
			if report.Has(q.of, n) {
				all[name] = q.seconds // perhaps no time that counts
			}
		}
	}
	if visible := r.Latency.VisibleSeconds; visible > 0 || result.Outcome != report.Interrupted { // else unchecked
		all["visible_seconds"] = visible
	}
	// Result's rows and bytes include earlier processes, its rates do not.
	rows, payload := result.RowsPerSecond*result.Seconds, result.BytesPerSecond*result.Seconds
	for name, v := range map[string]float64{
		"stage_seconds": phases.Stage, "commit_seconds": phases.Commit, "total_rows": math.Round(rows),
		"commit_rows_per_second": rows / phases.Commit, "commit_bytes_per_second": payload / phases.Commit,
		"stored_bytes": float64(r.Stored.Bytes), "stored_bytes_per_row": r.Stored.BytesPerRow,
		"sent_bytes_per_second": float64(result.WireBytes) / result.Seconds,
		"cpu_seconds_per_gib":   r.Client.LoadSeconds / (payload / gib),
		"client_cpu_percent":    100 * r.Client.LoadSeconds / (result.Seconds * float64(r.Client.Cores)),
		"server_cpu_percent":    100 * server.CPU * min(float64(server.Cores), 1), // 0 if their number is unknown
	} {
		if v > 0 {
			all[name] = v
		}
	}
	// A record may hold anything.
	maps.DeleteFunc(all, func(_ string, v float64) bool { return !finite(v) || v < 0 })
	return all
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (p *Point) summarise() {
	values := map[string][]float64{}
	for _, push := range p.Pushes {
		for name, v := range figuresOf(push) {
			values[name] = append(values[name], v)
		}
	}
	for _, q := range p.quantities() {
		*q.sample = SampleOf(values[q.name])
	}
	// A report has 0 both where rows were visible at once and where visibility was not checked. All pushes of a case do
	// the same, so one that had to wait shows that all have checked.
	if p.VisibleSeconds.High <= 0 {
		p.VisibleSeconds = SampleOf(nil)
	}
	distance := func(push *report.Report) float64 { return math.Abs(push.Result.RowsPerSecond - p.rate()) }
	if len(p.Pushes) > 0 {
		p.Typical = slices.MinFunc(p.Pushes, func(a, b *report.Report) int { return cmp.Compare(distance(a), distance(b)) })
	}
}

// SampleOf summarises values.
func SampleOf(values []float64) Sample {
	s := Sample{N: len(values), Values: append([]float64{}, values...)} // [] in JSON
	if s.N > 0 {
		s.Low, s.High, s.Median = slices.Min(values), slices.Max(values), Median(values)
	}
	if s.N >= LeastTrials {
		thresholds := benchmath.DefaultThresholds // for the library's warnings only
		of := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(values), &thresholds), 1-alpha)
		s.MedianLow, s.MedianHigh = of.Lo, of.Hi
	}
	return s
}

// Median returns the median of values, 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	// Halves first: the sum of two numbers may overflow.
	return sorted[(len(sorted)-1)/2]/2 + sorted[len(sorted)/2]/2
}
