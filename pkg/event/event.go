// Package event defines what a run records: one event an attempt, in the run's journal, and one snapshot an instant
// for observers. Everything a person sees later (progress, metrics, report, chart) is a reader of the two.
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
	NotApplied Outcome = "not_applied" // certainly not in
	Unknown    Outcome = "unknown"     // perhaps in
	// Stored is the end of a good attempt of a staged method: the batch is in the store, not in the table.
	Stored Outcome = "stored"
	// Started is on disk before an attempt is sent, where no claim row shows afterwards whether it was: a resume has to
	// ask what became of it. It is not the end of an attempt and is not counted.
	Started Outcome = "started"
)

// Outcomes lists every way an attempt can end, so that a metric can show all series from the first scrape.
func Outcomes() []Outcome { return []Outcome{Applied, Already, Stored, NotApplied, Unknown} }

// Event is the record of one attempt.
type Event struct {
	Batch   int64 `json:"batch"`
	Attempt int   `json:"attempt"` // 1 for the first
	Worker  int   `json:"worker"`  // 0 … workers−1; −1 for a commit group
	// Members is the number of batches in the commit group that this is an attempt at, of which Batch is the first. 0:
	// it is an attempt at the batch alone.
	Members int64     `json:"members,omitempty"`
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds"` // from handing the batch to the session until its answer
	// Intended is when a schedule wanted the batch to be sent, the same for all attempts of a process at it; zero where
	// batches are sent when a worker is free.
	Intended time.Time `json:"intended,omitzero"`

	Rows    int64 `json:"rows"`              // acknowledged
	Missing int64 `json:"missing,omitempty"` // sent but not acknowledged by an answer that was otherwise good
	Payload int64 `json:"payload"`           // bytes of column data sent
	Encoded int64 `json:"encoded"`           // bytes of the body

	Outcome Outcome      `json:"outcome"`
	Class   loader.Class `json:"class,omitempty"`
	Error   string       `json:"error,omitempty"`
	Detail  []string     `json:"detail,omitempty"` // the server's own words
}

// Latency returns the seconds until the attempt's answer: from its start, or from the intended start of the batch. Of
// a later attempt the latter includes those before it and the waits between them.
func (e Event) Latency() float64 {
	if e.Intended.IsZero() {
		return e.Seconds
	}
	return max(e.Start.Sub(e.Intended).Seconds(), 0) + e.Seconds
}

// Done reports whether the batch is in after this attempt.
func (e Event) Done() bool { return e.Outcome == Applied || e.Outcome == Already }
