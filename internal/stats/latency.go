package stats

import (
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/terapush/terapush/pkg/event"
)

// The range of the quantiles. Longer batches count as an hour; Max and the sum are exact.
const (
	resolution = time.Microsecond
	longest    = time.Hour
)

// bucketBounds are the upper bounds of the histogram's buckets in seconds. The library's defaults end at 10 s, which a
// batch of 256 MiB may well take.
func bucketBounds() []float64 {
	return []float64{
		.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600,
	}
}

// Quantiles are quantiles of the latency of batches in seconds, 0 without a batch. Latency is the time from handing a
// batch to its session until the answer; with --max-rate from the intended start, which includes the wait for a worker.
type Quantiles struct {
	P50, P90, P99, Max float64
}

// latency keeps durations in an HDR histogram for quantiles within 0.1 %, and in a few fixed buckets, which can be
// added up over clients. Together they take about 200 KiB.
type latency struct {
	values *hdrhistogram.Histogram // in units of resolution
	fixed  event.Histogram
	max    float64
}

func newLatency() latency {
	bounds := bucketBounds()
	return latency{
		values: hdrhistogram.New(1, int64(longest/resolution), 3),
		fixed:  event.Histogram{Bounds: bounds, Counts: make([]int64, len(bounds)+1)},
	}
}

func (l *latency) record(seconds float64) {
	units := min(seconds, longest.Seconds()) * float64(time.Second/resolution)
	// RecordValue fails only for values outside of the histogram's range.
	_ = l.values.RecordValue(max(int64(units), 1))
	i, _ := slices.BinarySearch(l.fixed.Bounds, seconds)
	l.fixed.Counts[i]++
	l.fixed.Sum += seconds
	l.max = max(l.max, seconds)
}

func (l *latency) quantiles() Quantiles {
	at := func(percent float64) float64 {
		units := l.values.ValueAtQuantile(percent)
		// The upper end of a bucket can exceed its largest value.
		return min(float64(units)*resolution.Seconds(), l.max)
	}
	return Quantiles{P50: at(50), P90: at(90), P99: at(99), Max: l.max}
}

func (l *latency) histogram() event.Histogram {
	return event.Histogram{Bounds: slices.Clone(l.fixed.Bounds), Counts: slices.Clone(l.fixed.Counts), Sum: l.fixed.Sum}
}
