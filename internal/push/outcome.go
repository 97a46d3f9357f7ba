package push

import (
	"errors"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// Usage is the outcome of a push that was asked for wrongly: nothing was tried, so there is nothing to report.
const Usage report.Outcome = "usage"

// precedence orders the outcomes: where several apply, the first counts.
func precedence() []report.Outcome {
	return []report.Outcome{
		Usage, report.PreflightFailed, report.Interrupted, report.Unknown, report.VerificationFailed, report.Rejected, report.Failed,
	}
}

// Error is an error with the outcome it means for the run.
type Error struct {
	Outcome report.Outcome
	Err     error
}

// Error is the cause's text.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// errStopped is the cause of every context that ends because the user asked to stop.
var errStopped = errors.New("stopped by a signal")

// failed gives an error an outcome, unless it has one.
func failed(o report.Outcome, err error) error {
	var has *Error
	if err == nil || errors.As(err, &has) {
		return err
	}
	return &Error{Outcome: o, Err: err}
}

// OutcomeOf is what an error means for the run; of several joined errors the gravest counts.
func OutcomeOf(err error) report.Outcome {
	if err == nil {
		return report.OK
	}
	found := map[report.Outcome]bool{}
	collect(err, found)
	for _, o := range precedence() {
		if found[o] {
			return o
		}
	}
	return report.Failed
}

// resumable reports whether a resume can go on with what a process leaves that ended with err.
func (p *push) resumable(err error) bool {
	switch OutcomeOf(err) {
	case report.PreflightFailed, report.Interrupted, report.Unknown, report.Failed:
	default:
		return false
	}
	begun := p.done.Len() > 0 || p.history.last >= 0 || p.stats != nil && p.stats.Snapshot().Attempts > 0
	return (begun || !p.plan.ByDuration) && !errors.As(err, new(*loader.FinalError))
}

func collect(err error, found map[report.Outcome]bool) {
	switch e := err.(type) { //nolint:errorlint // the tree of joined errors is walked here, one node at a time
	case *Error:
		found[e.Outcome] = true
		collect(e.Err, found)
	case interface{ Unwrap() error }:
		if next := e.Unwrap(); next != nil {
			collect(next, found)
		}
	case interface{ Unwrap() []error }:
		for _, next := range e.Unwrap() {
			collect(next, found)
		}
	}
}
