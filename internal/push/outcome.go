package push

import (
	"errors"
	"slices"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// Usage is the outcome of a push with wrong flags. Nothing was tried, so there is no report.
const Usage report.Outcome = "usage"

// precedence lists the outcomes, the gravest first.
func precedence() []report.Outcome {
	return []report.Outcome{
		Usage, report.PreflightFailed, report.Interrupted, report.Unknown, report.VerificationFailed, report.Rejected,
		report.Failed,
	}
}

// Error is an error with the outcome of the run.
type Error struct {
	Outcome report.Outcome
	Err     error
}

// Error returns the cause's text.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// errStopped is the cause of every context that ends because the user asked to stop.
var errStopped = errors.New("stopped by a signal")

// failed gives an error an outcome unless it has one.
func failed(o report.Outcome, err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	return &Error{Outcome: o, Err: err}
}

// orInterrupted gives an error an outcome unless it has one: Interrupted if the user asked to stop, whatever a driver
// says when its context ends.
func (p *push) orInterrupted(o report.Outcome, err error) error {
	if err != nil && p.stopped() && !errors.As(err, new(*Error)) {
		return failed(report.Interrupted, errStopped)
	}
	return failed(o, err)
}

// explained adds to the error of a run what its input has to say of that.
func (p *push) explained(err error) error {
	if p.input == nil {
		return err
	}
	return errors.Join(err, p.input.explain(err))
}

// stopped reports whether the user has asked to stop.
func (p *push) stopped() bool {
	select {
	case <-p.Drain:
		return true
	default:
		return false
	}
}

// OutcomeOf returns the gravest outcome in an error.
func OutcomeOf(err error) report.Outcome {
	if err == nil {
		return report.OK
	}
	if errors.As(err, new(*loader.TakenOverError)) || errors.Is(err, runlog.ErrTakenOver) {
		return report.TakenOver
	}
	all := outcomes(err)
	for _, o := range precedence() {
		if slices.Contains(all, o) {
			return o
		}
	}
	return report.Failed
}

func outcomes(err error) (all []report.Outcome) {
	switch e := err.(type) { //nolint:errorlint // this walks the tree of joined errors itself
	case *Error:
		all = append(outcomes(e.Err), e.Outcome)
	case interface{ Unwrap() error }:
		all = outcomes(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, outcomes(one)...)
		}
	}
	return all
}
