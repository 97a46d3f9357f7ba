package report

import (
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// AddFailures lists failed attempts.
func (r *Report) AddFailures(all []event.Event) {
	for _, e := range all {
		r.Result.Failures = append(r.Result.Failures, Failure{e.Start, e.Batch, e.Members, e.Attempt, string(e.Class), e.Error})
	}
}

// Measure fills in the counters: Result without Outcome and Error, Phases, Rates, Latency.BatchSeconds, WorkerSeconds,
// Client without LoadSeconds, Measured, and Run.ResumedRows. warm is the snapshot of the end of the warm-up; zero
// without one.
func (r *Report) Measure(s, warm event.Snapshot, q stats.Quantiles, u stats.Usage) {
	r.Run.ResumedRows = s.ResumedRows
	seconds := func(p event.Phase) float64 { return s.PhaseSeconds[p] }
	r.Phases = Phases{
		Prepare: seconds(event.Prepare), Fill: seconds(event.Fill), Load: seconds(event.Load),
		Stage: seconds(event.Stage), Commit: seconds(event.Commit), Finish: seconds(event.Finish),
		Verify: seconds(event.Verify),
	}
	moving := r.Phases.Stage + r.Phases.Load + r.Phases.Commit + r.Phases.Finish
	// The server may have lost rows of earlier processes, or of the warm-up.
	rows, payload := max(s.Rows-max(s.ResumedRows, warm.Rows), 0), max(s.PayloadBytes-max(s.ResumedBytes, warm.PayloadBytes), 0)
	measured := func(all ...event.Phase) (sum float64) {
		for _, p := range all {
			sum += s.PhaseSeconds[p] - warm.PhaseSeconds[p]
		}
		return sum
	}
	now, over := float64(rows), measured(event.Stage, event.Load, event.Commit, event.Finish)
	if !warm.At.IsZero() {
		r.Measured = &Measured{From: warm.At.Sub(r.Run.ProcessStarted).Seconds(), Seconds: over, Rows: rows, PayloadBytes: payload}
	}
	r.Rates = Rates{
		Load: ratio(now, measured(event.Load)), Stage: ratio(float64(s.StoredRows-warm.StoredRows), measured(event.Stage)),
		Verify: ratio(float64(s.Verification.FoundRows), r.Phases.Verify),
	}
	if r.Phases.Stage > 0 {
		r.Rates.Commit = ratio(now, measured(event.Stage, event.Commit))
	}
	outcome, why := r.Result.Outcome, r.Result.Error
	r.Result = Result{
		Outcome: outcome, Error: why,
		Rows: s.Rows, Batches: s.Batches, PayloadBytes: s.PayloadBytes, EncodedBytes: s.EncodedBytes, WireBytes: s.WireBytes,
		StoredBytes: s.StoredBytes,
		Seconds:     moving, RowsPerSecond: ratio(now, over), BytesPerSecond: ratio(float64(payload), over),
		Tries: Tries{
			Attempts: s.Attempts, Retries: s.Retries, Refills: s.Refills,
			Duplicates: s.Outcomes[event.Already], Unknown: s.UnknownBatches, GivenUp: s.FailedBatches,
			Missing: s.MissingRows, Errors: map[string]int64{},
		},
	}
	for class, n := range s.Errors {
		if n > 0 {
			r.Result.Errors[string(class)] = n
		}
	}
	r.Latency.BatchSeconds = Quantiles(q)
	r.WorkerSeconds = secondsByState(s.WorkerSeconds)
	for state, seconds := range warm.WorkerSeconds {
		r.WorkerSeconds[state.String()] -= seconds
	}
	r.Client = Client{Cores: u.Cores, UserSeconds: u.UserSeconds, SystemSeconds: u.SystemSeconds, PeakRSSBytes: u.PeakRSSBytes}
}

func secondsByState(all map[event.State]float64) map[string]float64 {
	named := make(map[string]float64)
	for _, state := range event.States() {
		named[state.String()] = all[state]
	}
	return named
}

// NewTimeline converts the moments of a stats.Timeline.
func NewTimeline(interval float64, moments []stats.Moment) Timeline {
	t := Timeline{Interval: interval, Moments: make([]Moment, len(moments))}
	for i, m := range moments {
		t.Moments[i] = Moment(m)
	}
	return t
}

func ratio(n, by float64) float64 {
	if by <= 0 {
		return 0
	}
	return n / by
}
