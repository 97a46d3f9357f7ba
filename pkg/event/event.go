// Package event defines what a run records: an event for each attempt, and snapshots of its counters. All progress,
// metrics, reports and charts are made of the two. The journal has the events that a resume needs.
package event

import (
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// Outcome is how an attempt ended.
type Outcome string

// The outcomes.
const (
	Applied    Outcome = "applied"
	Already    Outcome = "already"     // an earlier attempt had applied it
	NotApplied Outcome = "not_applied" // not in
	Unknown    Outcome = "unknown"     // may be in
	// Stored is the end of a good attempt of a staged method: the batch is in the store, not in the table.
	Stored Outcome = "stored"
	// Started is on disk before an attempt is sent if no claim row shows its outcome, so that a resume resolves it. It is
	// not the end of an attempt and is not counted.
	Started Outcome = "started"
)

// Outcomes lists the ends of attempts, so that a metric has all series from the first scrape.
func Outcomes() []Outcome { return []Outcome{Applied, Already, Stored, NotApplied, Unknown} }

// Event is the record of one attempt.
type Event struct {
	Batch   int64 `json:"batch"`
	Attempt int   `json:"attempt"` // 1 for the first
	Worker  int   `json:"worker"`  // 0 … workers−1; −1 for a commit group
	// Members is the number of batches in a commit group whose first is Batch; 0 for an attempt at a batch.
	Members int64     `json:"members,omitempty"`
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds"` // from handing the batch to the session until its answer
	// Intended is when the batch was due by a schedule, the same for all attempts of a process; zero without a schedule.
	Intended time.Time `json:"intended,omitzero"`

	Rows    int64 `json:"rows"`              // acknowledged
	Missing int64 `json:"missing,omitempty"` // sent, but not counted by a successful answer
	Payload int64 `json:"payload"`           // bytes of column data sent
	Encoded int64 `json:"encoded"`           // bytes of the body

	Outcome Outcome      `json:"outcome"`
	Class   loader.Class `json:"class,omitempty"`
	Error   string       `json:"error,omitempty"`
	Detail  []string     `json:"detail,omitempty"` // the server's own words
}

// Latency returns the seconds until the attempt's answer, since its start or since the batch was due. The latter
// includes earlier attempts.
func (e Event) Latency() float64 {
	if e.Intended.IsZero() {
		return e.Seconds
	}
	return max(e.Start.Sub(e.Intended).Seconds(), 0) + e.Seconds
}

// Done reports whether the batch is in after this attempt.
func (e Event) Done() bool { return e.Outcome == Applied || e.Outcome == Already }
