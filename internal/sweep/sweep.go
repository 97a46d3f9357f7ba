// Package sweep pushes the cells of a plan one after the other and records each as it ends. It opens nothing itself: who
// runs it gives the push and the record, so that order, knee, limit, budget and what a failure ends are decided by pure
// code.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/internal/report"
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
	// Done is what is recorded already, one entry a push as record.Record.Latest has it.
	Done []record.Entry
	// RetryFailed does pushes again that are recorded as failed. Others are never done twice.
	RetryFailed bool
	// Keep makes an entry durable. Its error ends the sweep.
	Keep func(record.Entry) error
	// Push pushes one cell, and tells by ErrDiskFull and ErrUnreachable what its error means for the others. Closing
	// drain asks it to end in order. It leaves nothing of its run but the rows and the report. It calls begun once, from any
	// goroutine, when rows begin to move; moving tells from then on whether they still do.
	Push func(ctx context.Context, cell Case, drain <-chan struct{}, begun func(moving func() bool)) (*report.Report, error)
	// Drain is closed when the user asks to stop: the push that runs is drained and forgotten, so that going on does it
	// again.
	Drain <-chan struct{}
	// Begin is called before a push and End after it or when it was skipped; they may be nil.
	Begin func(Progress)
	End   func(Progress, record.Entry)
}

// Progress is where a sweep is.
type Progress struct {
	Number, Total int // of this push, from 1, and of all, warm-ups and those of earlier processes included
	Case          Case
	Repeat        int
	WarmUp        bool
	Elapsed       time.Duration // since this process began
	// Left is what the rest will take if pushes take as long as those of the same cell, or else of the same part, have
	// taken; less where rows end early. It is 0 as long as nothing is known.
	Left time.Duration
}

// Run does the job. On an error the record holds everything that ended before.
func Run(ctx context.Context, j Job) error {
	r := newRunner(j)
	for i, s := range r.steps {
		if err := r.step(ctx, i, s); err != nil {
			return err
		}
	}
	return r.settleDebts()
}

// runner is a sweep under way.
type runner struct {
	Job
	steps    []step
	started  time.Time
	before   time.Duration // that earlier processes took
	recorded map[record.Push]record.Entry
	rowOf    map[place]*ladder // of cells whose rows can end
	ended    map[*ladder]bool
	begun    map[place]bool // cells that were pushed before their rows had ended: they get all their repeats
	took     pace
	pushed   bool // this process has pushed, so that the next push has to wait until the server has settled
	// missed are pushes that reached no server. They are recorded when a later one reaches it: what failed because the
	// server was not there is to be done when it is.
	missed []record.Entry
}

func newRunner(j Job) *runner {
	r := &runner{
		Job: j, steps: order(j.Plan, j.Cases, j.Digest), started: time.Now(),
		recorded: map[record.Push]record.Entry{}, rowOf: map[place]*ladder{}, ended: map[*ladder]bool{}, begun: map[place]bool{}, took: newPace(),
	}
	r.layRows()
	for _, e := range j.Done {
		r.before += seconds(e.Seconds)
		if e.Status != record.Failed || !j.RetryFailed {
			r.recorded[e.Push()] = e
		}
		if e.Status != record.Skipped {
			r.note(e)
		}
	}
	return r
}

// layRows puts the cells together whose rows can end.
func (r *runner) layRows() {
	rows := map[string]*ladder{}
	for _, c := range r.Cases {
		name := row(c, r.Plan.Knee)
		if name == "" {
			continue
		}
		if rows[name] == nil {
			rows[name] = &ladder{rates: map[place][]float64{}}
		}
		r.rowOf[placeOf(c)] = rows[name]
		rows[name].cells = append(rows[name].cells, placeOf(c)) // in the order of the axis's values, as they stand in the part
	}
}

func (r *runner) step(ctx context.Context, i int, s step) error {
	was, known := r.recorded[s.push()]
	switch {
	case known && was.Status != record.Skipped:
		return nil
	case r.past(s):
		if s.repeat == 0 {
			return r.skip(i, s, pastKnee(r.Plan.Knee))
		}
		return nil // the first repeat has said it of the cell
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

// past tells whether the push's row has ended before its cell. A cell that was begun gets all its repeats, also where
// those, or more of those before it, say that its row should have ended: half a cell is worth less than one too many.
func (r *runner) past(s step) bool {
	row := r.rowOf[placeOf(s.cell)]
	return row != nil && !s.warmUp && !r.begun[placeOf(s.cell)] && r.ended[row]
}

// note learns from a push that ended, now or in an earlier process.
func (r *runner) note(e record.Entry) {
	r.took.add(e)
	if e.WarmUp {
		return
	}
	at := place{e.Part, e.Cell}
	r.begun[at] = true
	row := r.rowOf[at]
	if row == nil || e.Status == record.Failed || e.Report == nil {
		return // a failure says nothing about the knee
	}
	row.rates[at] = append(row.rates[at], e.Report.Result.RowsPerSecond)
	r.ended[row] = row.over()
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
	if r.Begin != nil {
		r.Begin(r.progress(i, s))
	}
	e := entryOf(s, time.Now())
	clock := r.startClock(ctx)
	result, err := r.Push(ctx, s.cell, clock.drain, clock.begin)
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
func judge(result *report.Report, err error, c *clock) (record.Status, string) {
	switch {
	case err == nil:
		return record.Measured, ""
	case c.why == "" || result == nil || result.Result.Outcome != report.Interrupted:
		return record.Failed, err.Error()
	case result.Result.Rows == 0:
		return record.Failed, c.why + " before a row was acknowledged"
	default:
		return record.Limited, ""
	}
}

// keep records a push, with those before it that reached no server; but not yet if it is one of them.
func (r *runner) keep(i int, s step, e record.Entry, missed bool) error {
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
	if err := r.settleDebts(); err != nil {
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

func (r *runner) settleDebts() error {
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
	e.Status, e.Error = record.Skipped, why
	if r.End != nil {
		r.End(r.progress(i, s), e)
	}
	return r.Keep(e)
}

func entryOf(s step, started time.Time) record.Entry {
	return record.Entry{
		Part: s.cell.Part, Cell: s.cell.Number, Repeat: s.repeat, WarmUp: s.warmUp, Settings: s.cell.Settings, Started: started,
	}
}

func (r *runner) progress(i int, s step) Progress {
	return Progress{
		Number: i + 1, Total: len(r.steps), Case: s.cell, Repeat: s.repeat, WarmUp: s.warmUp,
		Elapsed: time.Since(r.started), Left: r.left(i),
	}
}

// left guesses the time for everything behind step i.
func (r *runner) left(i int) time.Duration {
	var sum time.Duration
	if r.took.all.n == 0 {
		return 0
	}
	for _, s := range r.steps[i+1:] {
		if was, known := r.recorded[s.push()]; known && was.Status != record.Skipped || r.past(s) {
			continue
		}
		sum += r.took.guess(s) + r.Plan.Settle
	}
	if r.Plan.Budget > 0 {
		sum = min(sum, max(r.Plan.Budget-r.spent(), 0))
	}
	return sum
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
