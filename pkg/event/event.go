// Package event defines what a run records: one event an attempt, in the run's journal, and one snapshot an instant
// for those who watch. Everything a person sees later (progress, metrics, report, chart) is a reader of the two.
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
	// Started is written before the first row of a batch is sent, where a batch may go in by parts: a resume has to ask
	// for what is there. It is not the end of an attempt and is not counted.
	Started Outcome = "started"
)

// Outcomes lists every way an attempt can end, so that a metric can show all series from the first scrape.
func Outcomes() []Outcome { return []Outcome{Applied, Already, NotApplied, Unknown} }

// Event is the record of one attempt.
type Event struct {
	Batch   int64     `json:"batch"`
	Attempt int       `json:"attempt"` // 1 for the first
	Worker  int       `json:"worker"`  // 0 … workers−1
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds"` // from handing the batch to the session until its answer

	Rows    int64 `json:"rows"`              // acknowledged
	Missing int64 `json:"missing,omitempty"` // sent but not acknowledged by an answer that was otherwise good
	Payload int64 `json:"payload"`           // bytes of column data sent
	Encoded int64 `json:"encoded"`           // bytes of the body

	Outcome Outcome      `json:"outcome"`
	Class   loader.Class `json:"class,omitempty"`
	Error   string       `json:"error,omitempty"`
	Detail  []string     `json:"detail,omitempty"` // the server's own words
}

// Done tells whether the batch is in after this attempt.
func (e Event) Done() bool { return e.Outcome == Applied || e.Outcome == Already }
