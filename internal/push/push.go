// Package push is one push from the first connection to the report. The story is told by push.run; the files come in its
// order: target, plan, checks, preflight or resume, load, store, prove, report.
//
// It is the only place that sees both streets: configuration comes in on one side, the engine goes on the other. It
// decides nothing that config.Plan, loader.Negotiate or a back-end could decide.
package push

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Job is what a push is started with.
type Job struct {
	Config  config.Push
	Drivers *loader.Registry
	// Given are the flags that were set, for the run's record.
	Given map[string][]string
	// Explicit reports whether this process was given a flag, and not the resumed run.
	Explicit func(flag string) bool
	// Drain is closed when the user asks to stop: batches on their way are finished and the run is saved.
	Drain <-chan struct{}
	Log   *slog.Logger
	// Ceilings is the state folder in which calibrate has left what this machine can do; "" compares the run with nothing.
	Ceilings string
	// Watch is called once, before the buffers are filled, with what progress and metrics read; the function it
	// returns is called when the run has ended. It may be nil.
	Watch func(Watched) (done func(), err error)
}

// Watched is what those who show a run need.
type Watched struct {
	Run      string
	Backend  string
	Plan     config.Plan
	Snapshot func() event.Snapshot
}

// push is a job under way.
type push struct {
	Job
	started time.Time
	notes   notes
	target  target
	plan    plan
	state   state
	meters  meters
	feed    atomic.Pointer[feed.Feed] // nil until the buffers are mapped; watched from other goroutines

	loaded   bool // this process opened sessions, and has closed them
	verified verify.Result
	stored   int64 // bytes of the table
	cost     map[string]float64
}

// Run does the job. The report is filled as far as the run came, also when there is an error.
func Run(ctx context.Context, j Job) (*report.Report, error) {
	p, soft, end := newPush(ctx, j)
	defer end()
	err := p.run(ctx, soft)
	p.measureCost(ctx)
	err = errors.Join(err, p.close())
	return p.report(err), err
}

// newPush begins a job. soft ends when the user asks to stop: for the phases in which nothing is lost by it.
func newPush(ctx context.Context, j Job) (p *push, soft context.Context, end func()) {
	soft, cancel := Until(ctx, j.Drain, errStopped)
	p = &push{Job: j, started: time.Now()}
	p.connectParts(host.FullLink(soft))
	p.meters.usage = stats.StartMeter()
	return p, soft, func() { cancel(nil) }
}

// Until returns a context that also ends when drain closes, with that cause: for what has nothing to finish.
func Until(ctx context.Context, drain <-chan struct{}, cause error) (context.Context, context.CancelCauseFunc) {
	soft, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-drain:
			cancel(cause)
		case <-soft.Done():
		}
	}()
	return soft, cancel
}

// connectParts gives each part of the push what it reads of the others.
func (p *push) connectParts(l host.Link) {
	p.notes.log = p.Log
	p.target.config, p.target.notes, p.target.link = &p.Config, &p.notes, l
	p.plan.config, p.plan.notes = &p.Config, &p.notes
	p.state.target, p.state.plan, p.state.notes, p.state.history = &p.target, &p.plan, &p.notes, newHistory()
}

// run is the push: preflight or resume, fill, load, wait for the rows, prove.
func (p *push) run(ctx, soft context.Context) error {
	begin := p.preflight
	if p.Config.Resume != "" {
		begin = p.resume
	}
	if err := begin(soft); err != nil {
		return p.orInterrupted(report.PreflightFailed, err)
	}
	p.startMeters()
	if p.Watch != nil {
		snapshot := p.meters.stats.Snapshot
		done, err := p.Watch(Watched{Run: p.state.run(), Backend: p.target.driver.Name(), Plan: p.plan.Plan, Snapshot: snapshot})
		if err != nil {
			return failed(report.PreflightFailed, err)
		}
		defer done()
	}
	defer p.meters.stats.Phase(event.Done)
	var err error
	if p.state.stage() == runlog.Loading {
		if err = p.fill(soft); err != nil {
			err = p.orInterrupted(report.Failed, err)
		} else {
			err = p.load(ctx)
		}
	}
	p.state.tidy(ctx, err == nil)
	if err != nil {
		return err
	}
	if err := p.awaitRows(soft); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	return p.prove(soft)
}

// close gives back what the run holds, the newest first.
func (p *push) close() error {
	var problems []error
	if f := p.feed.Load(); f != nil {
		problems = append(problems, f.Close())
	}
	if p.state.log != nil {
		problems = append(problems, p.state.log.Close())
	}
	if p.target.loader != nil {
		problems = append(problems, p.target.loader.Close())
	}
	return errors.Join(problems...)
}

// notes are the warnings of a run: each goes to the log at once, and into the report.
type notes struct {
	log  *slog.Logger // nil: into the report only
	list []string
}

func (n *notes) warn(text string) {
	n.list = append(n.list, text)
	if n.log != nil {
		n.log.Warn(text)
	}
}

func (n *notes) warnf(format string, args ...any) { n.warn(fmt.Sprintf(format, args...)) }

func (n *notes) warnAll(texts []string) {
	for _, text := range texts {
		n.warn(text)
	}
}

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

// Error returns the cause's text.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// errStopped is the cause of every context that ends because the user asked to stop.
var errStopped = errors.New("stopped by a signal")

// failed gives an error an outcome, unless it has one.
func failed(o report.Outcome, err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	return &Error{Outcome: o, Err: err}
}

// orInterrupted gives an error its outcome. Whatever a driver says when its context ends, the user asked for it, unless
// something was found out before.
func (p *push) orInterrupted(o report.Outcome, err error) error {
	if err != nil && p.stopped() && !errors.As(err, new(*Error)) {
		return failed(report.Interrupted, errStopped)
	}
	return failed(o, err)
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

// OutcomeOf returns what an error means for the run; of several joined errors the gravest counts.
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
