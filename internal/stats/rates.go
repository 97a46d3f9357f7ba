package stats

import (
	"time"

	"github.com/terapush/terapush/pkg/event"
)

const (
	rateWindow = 10 * time.Second
	etaWindow  = 60 * time.Second
	// sampleStep bounds the memory of a Tracker: samples closer to the last one are not kept.
	sampleStep = 500 * time.Millisecond
)

// Rates is how fast rows are acknowledged, without those of earlier processes.
type Rates struct {
	Rows, Bytes               float64       // per second over the last 10 s
	OverallRows, OverallBytes float64       // per second since the load began
	ETA                       time.Duration // of the planned rest at the speed of the last 60 s
	ETAKnown                  bool
}

// Moving reports whether rows are acknowledged in the phase.
func Moving(p event.Phase) bool { return p == event.Load || p == event.Stage || p == event.Commit }

// Tracker computes rates from snapshots and their times. The zero value is ready for use by one goroutine.
type Tracker struct {
	samples []sample // ascending; at most one is older than the longest window
}

type sample struct {
	at          time.Time
	rows, bytes int64
}

// Observe adds a snapshot, which must not be older than the last, and returns the rates at that time.
func (t *Tracker) Observe(s event.Snapshot) Rates {
	moving := s.PhaseSeconds[event.Load] + s.PhaseSeconds[event.Stage] + s.PhaseSeconds[event.Commit]
	if moving <= 0 {
		return Rates{}
	}
	now := sample{at: s.At, rows: s.Rows - s.ResumedRows, bytes: s.PayloadBytes - s.ResumedBytes}
	if len(t.samples) == 0 {
		// The load began without rows.
		began := s.At.Add(-time.Duration(moving * float64(time.Second)))
		t.samples = append(t.samples, sample{at: began})
	}
	t.keep(now)

	r := Rates{OverallRows: float64(now.rows) / moving, OverallBytes: float64(now.bytes) / moving}
	r.Rows, r.Bytes = t.over(rateWindow, now)
	if Moving(s.Phase) {
		rows, bytes := t.over(etaWindow, now)
		if s.PlannedRows > 0 {
			r.ETA, r.ETAKnown = remaining(s.PlannedRows-s.Rows, rows)
		} else if s.PlannedBytes > 0 {
			r.ETA, r.ETAKnown = remaining(s.PlannedBytes-s.PayloadBytes, bytes)
		}
	}
	return r
}

func (t *Tracker) keep(now sample) {
	if now.at.Sub(t.samples[len(t.samples)-1].at) >= sampleStep {
		t.samples = append(t.samples, now)
	}
	old := 0
	for old+1 < len(t.samples) && now.at.Sub(t.samples[old+1].at) >= etaWindow {
		old++
	}
	t.samples = t.samples[:copy(t.samples, t.samples[old:])]
}

// over returns the rates since the start of the window, or of the load if that is later.
func (t *Tracker) over(window time.Duration, now sample) (rows, bytes float64) {
	from := t.samples[0]
	for _, s := range t.samples {
		if now.at.Sub(s.at) < window {
			break
		}
		from = s
	}
	seconds := now.at.Sub(from.at).Seconds()
	if seconds <= 0 {
		return 0, 0
	}
	return float64(now.rows-from.rows) / seconds, float64(now.bytes-from.bytes) / seconds
}

// remaining returns how long n more take. It is unknown without progress, and beyond ten years.
func remaining(n int64, perSecond float64) (time.Duration, bool) {
	const forever = 10 * 365 * 24 * time.Hour
	seconds := float64(max(n, 0)) / perSecond
	if perSecond <= 0 || seconds > forever.Seconds() {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}
