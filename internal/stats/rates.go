package stats

import (
	"time"

	"github.com/terapush/terapush/pkg/event"
)

const (
	rateWindow = 10 * time.Second
	etaWindow  = 60 * time.Second
	// sampleStep bounds the memory of a Tracker: samples closer to the last one are used but not kept.
	sampleStep = 500 * time.Millisecond
)

// Rates is how fast rows are acknowledged. Those of earlier processes of a resumed run do not count.
type Rates struct {
	Rows, Bytes               float64 // per second over the last 10 s
	OverallRows, OverallBytes float64 // per second since the load began
	// ETA is how long the rest takes at the speed of the last 60 s, ≥ 0. It is known while rows move and their number is
	// planned.
	ETA      time.Duration
	ETAKnown bool
}

// Moving reports whether rows are acknowledged in the phase.
func Moving(p event.Phase) bool { return p == event.Load || p == event.Stage || p == event.Commit }

// Tracker computes rates from snapshots and their times; it reads no clock. The zero value is ready for use, by one
// goroutine.
type Tracker struct {
	samples []sample // ascending, the first at most one older than the longest window
}

type sample struct {
	at          time.Time
	rows, bytes int64
}

// Observe takes the next snapshot, not older than the last, and returns the rates at that time.
func (t *Tracker) Observe(s event.Snapshot) Rates {
	moving := s.PhaseSeconds[event.Load] + s.PhaseSeconds[event.Stage] + s.PhaseSeconds[event.Commit]
	if moving <= 0 {
		return Rates{}
	}
	now := sample{at: s.At, rows: s.Rows - s.ResumedRows, bytes: s.PayloadBytes - s.ResumedBytes}
	if len(t.samples) == 0 {
		// The load began a moment ago, with nothing acknowledged.
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

// over returns the speed from the window's start, or from the load's where that is later, until now.
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

// remaining returns how long n more take. It is not known at no speed, nor where it would be over ten years.
func remaining(n int64, perSecond float64) (time.Duration, bool) {
	const forever = 10 * 365 * 24 * time.Hour
	seconds := float64(max(n, 0)) / perSecond
	if perSecond <= 0 || seconds > forever.Seconds() {
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}
