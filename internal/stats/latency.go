package stats

import (
	"fmt"
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
	P50, P90, P99, P999, Max float64

	Count int64 // of the batches
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
		values: NewHistogram(),
		fixed:  event.Histogram{Bounds: bounds, Counts: make([]int64, len(bounds)+1)},
	}
}

// NewHistogram returns an empty histogram of latencies in microseconds.
func NewHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(longest/resolution), 3)
}

// Encode writes a histogram as HdrHistogram's libraries do: version 2, compressed, in base64.
func Encode(h *hdrhistogram.Histogram) (string, error) {
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	return string(text), err
}

// Decode reads what Encode has written; "" is empty.
func Decode(text string) (*hdrhistogram.Histogram, error) {
	if text == "" {
		return NewHistogram(), nil
	}
	h, err := hdrhistogram.Decode([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("the histogram of latencies cannot be read: %w", err)
	}
	return h, nil
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

// QuantilesOf returns the quantiles of a histogram of which the largest value is known in seconds.
func QuantilesOf(h *hdrhistogram.Histogram, largest float64) Quantiles {
	at := func(percent float64) float64 {
		units := h.ValueAtQuantile(percent)
		// The upper end of a bucket can exceed its largest value.
		return min(float64(units)*resolution.Seconds(), largest)
	}
	return Quantiles{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: largest, Count: h.TotalCount()}
}

func (l *latency) histogram() event.Histogram {
	return event.Histogram{Bounds: slices.Clone(l.fixed.Bounds), Counts: slices.Clone(l.fixed.Counts), Sum: l.fixed.Sum}
}
