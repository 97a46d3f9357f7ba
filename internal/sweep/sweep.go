package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/pkg/loader"
)

// ErrStopped ends a sweep or a search after a signal.
var ErrStopped = errors.New("stopped by a signal")

var (
	errSweepStopped  = fmt.Errorf("the sweep was %w", ErrStopped)
	errSearchStopped = fmt.Errorf("the search was %w", ErrStopped)
)

// unreachable is how many pushes in succession may reach no server before the sweep ends.
const unreachable = 3

// Job is a sweep to begin or to continue.
type Job struct {
	Plan  Plan
	Cases []Case // in the order of their parts
	// Digest is the plan's, and the seed of the order.
	Digest string
	// Done has an entry for each recorded push, as results.Record.Latest has it.
	Done []results.Entry
	// RetryFailed repeats pushes that are recorded as failed. Others are never repeated.
	RetryFailed bool
	// Keep makes an entry durable. Its error ends the sweep.
	Keep func(results.Entry) error
	// Push pushes one case. Its error is ErrDiskFull or ErrUnreachable if it concerns the other cases. Closing drain
	// ends it in order. It leaves only the rows and the report. It calls begun once, from any goroutine, when rows
	// begin to move; moving reports from then on whether they still do.
	Push func(ctx context.Context, one Case, drain <-chan struct{}, begun func(moving func() bool)) (*report.Report, error)
	// Drain is closed to stop the sweep: the push under way is drained and not recorded, so that it is repeated later.
	Drain <-chan struct{}
	// Speed measures the machine, just before and after each push; nil does not. Its unit is of no matter.
	Speed func() float64
	// End is called after each push that ended or was skipped; it may be nil.
	End func(Progress, results.Entry)
}

// Run does the job. After an error the record holds everything that ended before.
func Run(ctx context.Context, j Job) error {
	r := newRunner(j)
	for i, s := range r.steps {
		if err := r.step(ctx, i, s); err != nil {
			return err
		}
	}
	return r.keepMissed()
}

type runner struct {
	Job
	steps    []step
	started  time.Time
	before   time.Duration // of earlier processes
	recorded map[results.Push]results.Entry
	states   map[place]*state
	took     pace
	pushed   bool // by this process, so that the next push waits for Settle
	// missed are pushes that reached no server. They are recorded once a later one reaches it; else they are repeated.
	missed []results.Entry
}

func newRunner(j Job) *runner {
	r := &runner{
		Job: j, steps: order(j.Plan, j.Cases, j.Digest), started: time.Now(),
		recorded: map[results.Push]results.Entry{}, states: statesOf(j.Plan, j.Cases),
	}
	if r.Speed == nil {
		r.Speed = func() float64 { return 0 }
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
	case r.known(s):
		return nil
	case r.past(s):
		if s.repeat == 0 {
			const why = "past the knee: two values of %s in succession were no better, %g %% of each had been reached before"
			return r.skip(i, s, fmt.Sprintf(why, r.Plan.Knee, 100*(1-results.Near)))
		}
		return nil // the first repeat was recorded as skipped
	case r.timeIsUp() && r.Plan.Precision > 0 && s.repeat > 0:
		return nil // the table says which cases are not known well enough
	case r.timeIsUp():
		return r.skip(i, s, fmt.Sprintf("the sweep's time of %s was up", r.Plan.Budget))
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	return r.push(ctx, i, s)
}

func (r *runner) timeIsUp() bool { return r.Plan.Budget > 0 && r.spent()+r.pause() >= r.Plan.Budget }

// spent returns the time of the sweep so far, earlier processes included.
func (r *runner) spent() time.Duration { return r.before + time.Since(r.started) }

// past reports whether the row of a push has ended before its case.
func (r *runner) past(s step) bool {
	one := r.states[placeOf(s.one)]
	return one.row != nil && one.row.ended && !s.warmUp && !one.begun()
}

// known reports whether a case has no more trials because of Precision.
func (r *runner) known(s step) bool { return r.states[placeOf(s.one)].known && !s.warmUp }

// note takes account of a push that ended, now or in an earlier process.
func (r *runner) note(e results.Entry) {
	r.took.add(e)
	if one := r.states[place{e.Part, e.Cell}]; one != nil { // of no case in a search, or of a part that is not done now
		one.add(e, r.Plan.Precision)
	}
}

func (r *runner) pause() time.Duration {
	if !r.pushed {
		return 0
	}
	return r.Plan.Settle
}

// wait lets the server settle between two pushes.
func (r *runner) wait(ctx context.Context) error {
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
	select {
	case <-r.Drain:
	case <-ctx.Done():
	default:
		return nil
	}
	return errSweepStopped
}

func (r *runner) push(ctx context.Context, i int, s step) error {
	e, err := r.measure(ctx, s)
	if errors.Is(err, ErrStopped) {
		return err
	}
	if err := r.keep(i, e, err); err != nil {
		return err
	}
	if errors.Is(err, ErrDiskFull) {
		return fmt.Errorf("the rest is not begun; make room: %w", err)
	}
	return r.stopped(ctx)
}

// measure pushes one case. The error is that of the push, which is in the entry, too, or errSweepStopped without one.
func (r *runner) measure(ctx context.Context, s step) (results.Entry, error) {
	before := r.Speed()
	e := entryOf(s)
	clock := r.startClock(ctx)
	result, err := r.Push(ctx, s.one, clock.drain, clock.begin)
	clock.stop()
	r.pushed = true
	e.Seconds, e.Report = time.Since(e.Started).Seconds(), result
	e.Speed = (before + r.Speed()) / 2
	if err != nil && r.stopped(ctx) != nil {
		return e, errSweepStopped
	}
	e.Status, e.Error = statusOf(result, err, clock)
	return e, err
}

// statusOf returns the status and the error of a push. One that the limit ended in order is measured as far as it came.
func statusOf(result *report.Report, err error, c *clock) (results.Status, string) {
	switch {
	case err == nil && result.Unmeasured():
		return results.Failed, "it ended within its --warm-up: nothing was measured"
	case err == nil:
		return results.Measured, ""
	case c.why == "" || result == nil || result.Result.Outcome != report.Interrupted:
		return results.Failed, loader.Explain(err)
	case result.Result.Rows == 0:
		return results.Failed, c.why + " before a row was acknowledged"
	case result.Unmeasured():
		return results.Failed, c.why + " before the --warm-up was over"
	default:
		return results.Limited, ""
	}
}

// keep records a push and those before it that reached no server, unless it is one of them.
func (r *runner) keep(i int, e results.Entry, err error) error {
	r.note(e)
	r.tell(i, e)
	r.missed = append(r.missed, e)
	switch {
	case !errors.Is(err, ErrUnreachable):
		return r.keepMissed()
	case len(r.missed) < unreachable:
		return nil
	}
	return fmt.Errorf("%d pushes in succession failed and are not recorded: %w", unreachable, err)
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

// skip records once that a push was not begun.
func (r *runner) skip(i int, s step, why string) error {
	if _, known := r.recorded[s.push()]; known || s.warmUp {
		return nil
	}
	e := entryOf(s)
	e.Status, e.Error = results.Skipped, why
	r.tell(i, e)
	return r.Keep(e)
}

func entryOf(s step) results.Entry {
	return results.Entry{
		Part: s.one.Part, Cell: s.one.Number, Repeat: s.repeat, WarmUp: s.warmUp, Settings: s.one.Settings, Started: time.Now(),
	}
}

// Begin writes the head of a new record, or makes sure that the record is of this sweep. The head is written once more
// if the repeats, the machine or the version differ, so that every entry has the head that it was pushed under. head
// needs no schema.
func Begin(file *results.File, head results.Head) (warnings []string, err error) {
	was := file.Record().Head
	if was.Schema == "" {
		return nil, file.Begin(head)
	}
	if d := was.Difference(head); d != "" {
		return nil, fmt.Errorf("the record holds another sweep: %s", d)
	}
	if file.Record().Torn {
		warnings = append(warnings, "the record's last line was cut off when the process before ended; that push is repeated")
	}
	if was.Machine != head.Machine {
		warnings = append(warnings, fmt.Sprintf("the record was last added to on another machine (%s, %s), "+
			"and rates of two machines do not compare", was.Machine.Host, was.Machine.CPU))
	}
	if was.Version != head.Version {
		warnings = append(warnings, fmt.Sprintf("the record was last added to by version %s of terapush", was.Version))
	}
	if head.Precision > 0 && was.Precision > 0 {
		head.Precision = min(was.Precision, head.Precision)
	}
	head.Schema, head.Started, head.Repeats = was.Schema, was.Started, max(was.Repeats, head.Repeats)
	if was.Same(head) {
		return warnings, nil
	}
	return warnings, file.Begin(head)
}
