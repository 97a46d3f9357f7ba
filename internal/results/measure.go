package results

import (
	"math"

	"github.com/terapush/terapush/internal/report"
)

const gib = 1 << 30

// Measure is one quantity of a push. It is not known of a push that does not tell it, and then ok is false: 0 is a
// value like any other. A number that is none, as a division of broken figures leaves, is not known either.
type Measure func(*report.Report) (value float64, ok bool)

func known(value float64, is bool) (float64, bool) {
	if !is || math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, false
	}
	return value, true
}

// moved tells whether the push has come as far as moving rows: then it has rates, be they 0.
func moved(r *report.Report) bool { return r.Result.Seconds > 0 }

// RowsPerSecond is the rate of the load, until the rows were visible.
func RowsPerSecond(r *report.Report) (rate float64, ok bool) {
	return known(r.Result.RowsPerSecond, moved(r))
}

// OverallRowsPerSecond is the rate with the time that filling the buffers took, as somebody sees it who makes rows while
// loading.
func OverallRowsPerSecond(r *report.Report) (rate float64, ok bool) {
	return known(r.Result.RowsPerSecond*r.Result.Seconds/(r.Result.Seconds+r.Phases.Fill), moved(r))
}

// BytesPerSecond is the rate of column data.
func BytesPerSecond(r *report.Report) (rate float64, ok bool) {
	return known(r.Result.BytesPerSecond, moved(r))
}

// Seconds is how long the load took, until the rows were visible.
func Seconds(r *report.Report) (s float64, ok bool) { return known(r.Result.Seconds, moved(r)) }

// A phase that took no time did not happen.

func stageSeconds(r *report.Report) (s float64, ok bool) {
	return known(r.Phases.Stage, r.Phases.Stage > 0)
}

func commitSeconds(r *report.Report) (s float64, ok bool) {
	return known(r.Phases.Commit, r.Phases.Commit > 0)
}

// timed tells whether any batch was timed. The longest took some time then, the others may have taken less than counts.
func timed(r *report.Report) bool { return r.Latency.BatchSeconds.Max > 0 }

// P50 is the time of half of the batches.
func P50(r *report.Report) (s float64, ok bool) { return known(r.Latency.BatchSeconds.P50, timed(r)) }

// P99 is the time of 99 batches in 100.
func P99(r *report.Report) (s float64, ok bool) { return known(r.Latency.BatchSeconds.P99, timed(r)) }

func p90(r *report.Report) (s float64, ok bool) { return known(r.Latency.BatchSeconds.P90, timed(r)) }

func longest(r *report.Report) (s float64, ok bool) {
	return known(r.Latency.BatchSeconds.Max, timed(r))
}

// VisibleSeconds is the measure of the time until rows were visible, for pushes of one cell. A report has 0 both where
// that took no time and where nobody waited for it; pushes of a cell do the same, so that one which had to wait tells that
// all have looked. A push that was cut has not.
func VisibleSeconds(pushes []*report.Report) Measure {
	looked := false
	for _, p := range pushes {
		looked = looked || p.Latency.VisibleSeconds > 0
	}
	return func(r *report.Report) (float64, bool) {
		v := r.Latency.VisibleSeconds
		return known(v, v > 0 || looked && r.Result.Outcome != report.Interrupted)
	}
}

// CPUPerGiB is the client's CPU seconds while rows moved, for a GiB of column data.
func CPUPerGiB(r *report.Report) (s float64, ok bool) {
	bytes := r.Result.BytesPerSecond * r.Result.Seconds // of this process: PayloadBytes counts those before it, too
	return known(r.Client.LoadSeconds/(bytes/gib), bytes > 0 && r.Client.LoadSeconds > 0)
}

// BytesPerRow is the room that a row takes in the table.
func BytesPerRow(r *report.Report) (bytes float64, ok bool) {
	return known(r.Stored.BytesPerRow, r.Stored.BytesPerRow > 0)
}
