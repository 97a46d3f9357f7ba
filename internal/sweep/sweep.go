package sweep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
)

// ErrStopped ends a sweep or a search whose user asked for it.
var ErrStopped = errors.New("stopped by a signal")

var (
	errSweepStopped  = fmt.Errorf("the sweep was %w", ErrStopped)
	errSearchStopped = fmt.Errorf("the search was %w", ErrStopped)
)

// unreachable is after how many pushes in succession that reached no server the sweep ends.
const unreachable = 3

// Job is a sweep to be done, or to be gone on with.
type Job struct {
	Plan  Plan
	Cases []Case // those to be pushed, in their parts' order
	// Digest is the plan's: the order is made of it.
	Digest string
	// Done is what is recorded already, one entry a push as results.Record.Latest has it.
	Done []results.Entry
	// RetryFailed does pushes again that are recorded as failed. Others are never done twice.
	RetryFailed bool
	// Keep makes an entry durable. Its error ends the sweep.
	Keep func(results.Entry) error
	// Push pushes one case, and says by ErrDiskFull and ErrUnreachable what its error means for the others. Closing
	// drain asks it to end in order. It leaves nothing of its run but the rows and the report. It calls begun once, from any
	// goroutine, when rows begin to move; moving reports from then on whether they still do.
	Push func(ctx context.Context, one Case, drain <-chan struct{}, begun func(moving func() bool)) (*report.Report, error)
	// Drain is closed when the user asks to stop: the push that runs is drained and forgotten, so that going on does it
	// again.
	Drain <-chan struct{}
	// End is called after a push or when it was skipped; it may be nil.
	End func(Progress, results.Entry)
}

// Run does the job. On an error the record holds everything that ended before.
func Run(ctx context.Context, j Job) error {
	r := newRunner(j)
	for i, s := range r.steps {
		if err := r.step(ctx, i, s); err != nil {
			return err
		}
	}
	return r.keepMissed()
}

// runner is a sweep under way.
type runner struct {
	Job
	steps    []step
	started  time.Time
	before   time.Duration // that earlier processes took
	recorded map[results.Push]results.Entry
	rowOf    map[place]*row // of cases whose rows can end
	begun    map[place]bool // cases that were pushed before their rows had ended: they get all their repeats
	took     pace
	pushed   bool // this process has pushed, so that the next push has to wait until the server has settled
	// missed are pushes that reached no server. They are recorded when a later one reaches it: what failed because the
	// server was not there is to be done when it is.
	missed []results.Entry
}

func newRunner(j Job) *runner {
	r := &runner{
		Job: j, steps: order(j.Plan, j.Cases, j.Digest), started: time.Now(),
		recorded: map[results.Push]results.Entry{}, rowOf: rowsOf(j.Plan, j.Cases), begun: map[place]bool{}, took: pace{},
	}
	for _, e := range j.Done {
		r.before += seconds(e.Seconds)
		if e.Status != results.Failed || !j.RetryFailed {
			r.recorded[e.Push()] = e
		}
		if e.Status != results.Skipped {
			r.note(e)
		}
	}
	return r
}

func (r *runner) step(ctx context.Context, i int, s step) error {
	was, known := r.recorded[s.push()]
	switch {
	case known && was.Status != results.Skipped:
		return nil
	case r.past(s):
		if s.repeat == 0 {
			return r.skip(i, s, pastKnee(r.Plan.Knee))
		}
		return nil // the first repeat has said it of the case
	case r.Plan.Budget > 0 && r.spent()+r.pause() >= r.Plan.Budget:
		return r.skip(i, s, fmt.Sprintf("the sweep's time of %s was up", r.Plan.Budget))
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	return r.push(ctx, i, s)
}

// spent is the time of the sweep so far, that of earlier processes included.
func (r *runner) spent() time.Duration { return r.before + time.Since(r.started) }

// past reports whether the push's row has ended before its case. A case that was begun gets all its repeats, also where
// those, or more of those before it, say that its row should have ended: half a case is worth less than one too many.
func (r *runner) past(s step) bool {
	at := placeOf(s.one)
	return r.rowOf[at] != nil && r.rowOf[at].ended && !s.warmUp && !r.begun[at]
}

// note learns from a push that ended, now or in an earlier process.
func (r *runner) note(e results.Entry) {
	r.took.add(e)
	if e.WarmUp {
		return
	}
	at := place{e.Part, e.Cell}
	r.begun[at] = true
	if row := r.rowOf[at]; row != nil && e.Status != results.Failed && e.Report != nil { // a failure says nothing about it
		row.add(at, e.Report.Result.RowsPerSecond)
	}
}

// pause is the time before the next push.
func (r *runner) pause() time.Duration {
	if !r.pushed {
		return 0
	}
	return r.Plan.Settle
}

// settle waits between two pushes.
func (r *runner) settle(ctx context.Context) error {
	wait := time.NewTimer(r.pause())
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-r.Drain:
	case <-ctx.Done():
	}
	return r.stopped(ctx)
}

func (r *runner) stopped(ctx context.Context) error {
	if closed(r.Drain) || ctx.Err() != nil {
		return errSweepStopped
	}
	return nil
}

func (r *runner) push(ctx context.Context, i int, s step) error {
	e := entryOf(s, time.Now())
	clock := r.startClock(ctx)
	result, err := r.Push(ctx, s.one, clock.drain, clock.begin)
	clock.stop()
	r.pushed = true
	e.Seconds, e.Report = time.Since(e.Started).Seconds(), result
	if err != nil && r.stopped(ctx) != nil {
		return errSweepStopped
	}
	e.Status, e.Error = judge(result, err, clock)
	if err := r.keep(i, s, e, errors.Is(err, ErrUnreachable)); err != nil {
		return err
	}
	if errors.Is(err, ErrDiskFull) {
		return fmt.Errorf("%w: the rest is not begun; make room%s", ErrDiskFull, besides(ErrDiskFull, e.Error))
	}
	return r.stopped(ctx)
}

// judge says what a push was. One that the limit ended in order is measured as far as it came.
func judge(result *report.Report, err error, c *clock) (results.Status, string) {
	switch {
	case err == nil:
		return results.Measured, ""
	case c.why == "" || result == nil || result.Result.Outcome != report.Interrupted:
		return results.Failed, err.Error()
	case result.Result.Rows == 0:
		return results.Failed, c.why + " before a row was acknowledged"
	default:
		return results.Limited, ""
	}
}

// keep records a push, with those before it that reached no server; but not yet if it is one of them.
func (r *runner) keep(i int, s step, e results.Entry, missed bool) error {
	r.note(e)
	if r.End != nil {
		r.End(r.progress(i, s), e)
	}
	if missed {
		r.missed = append(r.missed, e)
		if len(r.missed) < unreachable {
			return nil
		}
		return fmt.Errorf("%w, %d times in succession, which are not recorded%s", ErrUnreachable, unreachable, besides(ErrUnreachable, e.Error))
	}
	if err := r.keepMissed(); err != nil {
		return err
	}
	return r.Keep(e)
}

// besides is what an error says besides its kind.
func besides(kind error, text string) string {
	if text = strings.TrimPrefix(text, kind.Error()); text == "" || strings.HasPrefix(text, ": ") {
		return text
	}
	return ": " + text
}

func (r *runner) keepMissed() error {
	for _, e := range r.missed {
		if err := r.Keep(e); err != nil {
			return err
		}
	}
	r.missed = nil
	return nil
}

// skip records that a push was not begun, once.
func (r *runner) skip(i int, s step, why string) error {
	if _, known := r.recorded[s.push()]; known || s.warmUp {
		return nil
	}
	e := entryOf(s, time.Now())
	e.Status, e.Error = results.Skipped, why
	if r.End != nil {
		r.End(r.progress(i, s), e)
	}
	return r.Keep(e)
}

func entryOf(s step, started time.Time) results.Entry {
	return results.Entry{
		Part: s.one.Part, Cell: s.one.Number, Repeat: s.repeat, WarmUp: s.warmUp, Settings: s.one.Settings, Started: started,
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// OtherSweepError is a record that is not of the sweep that is to be done. Nothing was written to it.
type OtherSweepError struct{ Difference string }

// Error says where the two differ.
func (e *OtherSweepError) Error() string { return "another sweep: " + e.Difference }

// Begin writes the head of a new record, or makes sure that the record is of this sweep. Where the sweep has more repeats
// by now, or another machine or version goes on with it, the head is written once more: who reads the record knows of every
// entry by whom it was pushed. warnings are what speaks against going on, in sentences. head needs no schema.
func Begin(file *results.File, head results.Head) (warnings []string, err error) {
	was := file.Record().Head
	if was.Schema == "" {
		return nil, file.Begin(head)
	}
	if d := was.Difference(head); d != "" {
		return nil, &OtherSweepError{d}
	}
	if file.Torn() {
		warnings = append(warnings, "the record's last line was cut off when the process before ended; that push is done again")
	}
	if was.Machine != head.Machine {
		warnings = append(warnings, fmt.Sprintf("the record was last added to on another machine (%s, %s); results of two machines say little about cells",
			was.Machine.Host, was.Machine.CPU))
	}
	if was.Version != head.Version {
		warnings = append(warnings, fmt.Sprintf("the record was last added to by version %s of terapush", was.Version))
	}
	head.Schema, head.Started, head.Repeats = was.Schema, was.Started, max(was.Repeats, head.Repeats)
	if was.Same(head) {
		return warnings, nil
	}
	return warnings, file.Begin(head)
}
