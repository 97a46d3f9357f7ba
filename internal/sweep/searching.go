package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/internal/report"
)

// Push makes one trial, as Lab does.
type Push func(ctx context.Context, s Setup, drain <-chan struct{}) (*report.Report, error)

// under is a search under way.
type under struct {
	*Search
	ctx     context.Context //nolint:containedctx // of one Find, which it does not outlive: the connections end with it
	end     context.CancelCauseFunc
	drain   <-chan struct{}
	trial   Push
	tell    func(line string)
	started time.Time
	rate    float64 // encoded bytes a second of the best trial so far
	begun   float64 // bytes in flight where the search begins
	entries []record.Entry
	batch   map[Setting]int64 // rows of a batch
}

// Find searches. Closing drain ends it in order. Found holds what is known by then, also when there is an error: no trial
// means that nothing is. The budget is no error.
func (s *Search) Find(ctx context.Context, drain <-chan struct{}, trial Push, tell func(line string)) (Found, error) {
	searching, end := context.WithCancelCause(ctx)
	defer end(nil)
	clock := time.AfterFunc(s.Budget, func() { end(errBudget) })
	defer clock.Stop()
	go func() {
		select {
		case <-drain:
			end(errSearchStopped)
		case <-searching.Done():
		}
	}()
	u := &under{Search: s, ctx: ctx, end: end, drain: drain, trial: trial, tell: tell, started: time.Now(), batch: map[Setting]int64{}}
	start, err := u.warmUp(searching)
	if err != nil {
		return Found{}, err
	}
	r, err := find(searching, searchOptions{
		Start: start, Least: s.least, Most: s.most, Near: s.Near, Repeats: repeats, Trials: 10_000, // the budget ends it before
	}, u.measure)
	cause := context.Cause(searching)
	if errors.Is(cause, errBudget) && !errors.Is(err, errNothing) {
		err = nil
	}
	if len(r.Best.Rates) == 0 {
		return Found{}, err
	}
	return u.found(r, cause), err
}

// warmUp makes the first push, which counts for nothing, and gives the setting that the search begins with: a smaller one
// than push would take where that cannot be.
func (u *under) warmUp(searching context.Context) (Setting, error) {
	for at := u.start; ; {
		_, err := u.push(at, true)
		if searching.Err() != nil && (err != nil || errors.Is(context.Cause(searching), ErrStopped)) {
			return at, cause(searching, err)
		}
		switch {
		case err == nil:
			return u.begin(at), nil
		case !errors.Is(err, ErrLimit) && !errors.Is(err, errNotHere):
			return at, err
		case at.Workers > u.least.Workers:
			at.Workers = max(at.Workers/2, u.least.Workers)
		case at.BatchBytes > u.least.BatchBytes:
			at.BatchBytes = max(at.BatchBytes/2, u.least.BatchBytes)
		default:
			return at, err
		}
	}
}

// begin makes a start smaller whose batches would take longer than a trial, which would say little.
func (u *under) begin(at Setting) Setting {
	for u.tooLong(at) && at.BatchBytes > u.least.BatchBytes {
		at.BatchBytes = max(at.BatchBytes/2, u.least.BatchBytes)
	}
	u.begun = inFlight(at)
	return at
}

// tooLong tells whether a trial of the setting, at the best rate so far, would be over before each worker's first batch
// is in. Where the search begins is tried in any case.
func (u *under) tooLong(at Setting) bool {
	p := &u.base
	return p.Plan.ByDuration && u.rate > 0 && inFlight(at) > max(u.rate*p.Config.Duration.Seconds(), u.begun)
}

func inFlight(at Setting) float64 { return float64(at.Workers) * float64(at.BatchBytes) }

// cause is why a search has ended: a signal, or else the error itself.
func cause(searching context.Context, err error) error {
	if c := context.Cause(searching); errors.Is(c, ErrStopped) || err == nil {
		return c
	}
	return err
}

func (u *under) measure(_ context.Context, at Setting) (float64, error) {
	return u.push(at, false)
}

// errNotHere is a setting that is refused before anything is pushed.
var errNotHere = errors.New("cannot be tried")

// push makes one trial of a setting and gives its rows a second.
func (u *under) push(at Setting, warmUp bool) (float64, error) {
	one, err := u.setup(at)
	if err == nil && u.tooLong(at) {
		err = fmt.Errorf("trials of %s are too short for it at the best rate so far: a longer --trial searches further", one.Config.Duration)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errNotHere, err)
		u.say(at, warmUp, err.Error())
		return 0, err
	}
	u.batch[at] = one.Plan.BatchRows
	e := u.entry(at, warmUp)
	r, err := u.trial(u.ctx, one, u.drain)
	e.Seconds, e.Report = time.Since(e.Started).Seconds(), r
	switch {
	case u.stopped():
		u.end(errSearchStopped)
		return 0, errSearchStopped
	case err == nil && r.Result.Rows == 0:
		err = errors.New("no row was acknowledged")
	case err == nil && r.Plan.Workers < at.Workers:
		err = limit(fmt.Errorf("the server runs %d loads at a time", r.Plan.Workers))
	}
	e.Status = record.Measured
	if err != nil {
		e.Status, e.Error = record.Failed, err.Error()
	}
	u.entries = append(u.entries, e)
	if err != nil {
		u.say(at, warmUp, "FAILED: "+strings.Join(strings.Fields(err.Error()), " "))
		if endsIt(err) {
			u.end(err)
		}
		return 0, err
	}
	u.rate = max(u.rate, r.Result.RowsPerSecond*float64(one.Plan.EncodedRowBytes))
	u.say(at, warmUp, fmt.Sprintf("%s rows/s, %s/s", count(r.Result.RowsPerSecond), size(r.Result.BytesPerSecond)))
	return r.Result.RowsPerSecond, nil
}

func (u *under) stopped() bool {
	select {
	case <-u.drain:
		return true
	default:
		return u.ctx.Err() != nil
	}
}

// limit is an error of a setting of which less may do.
func limit(err error) error { return fmt.Errorf("%w: %w", ErrLimit, err) }

// endsIt tells whether the error of a trial is one of the server or of the rows, and not of the setting.
func endsIt(err error) bool {
	of := push.OutcomeOf(err)
	return errors.Is(err, ErrDiskFull) || errors.Is(err, ErrUnreachable) || of == report.VerificationFailed || of == report.Rejected
}

func (u *under) entry(at Setting, warmUp bool) record.Entry {
	e := record.Entry{Started: time.Now(), WarmUp: warmUp, Settings: []record.Setting{}}
	flags := u.flagsOf(at)
	for _, name := range axes() {
		if values := flags[name]; values != nil {
			e.Settings = append(e.Settings, record.Setting{Axis: name, Value: values[0]})
		}
	}
	for _, was := range u.entries {
		if was.WarmUp == warmUp && slices.Equal(was.Settings, e.Settings) {
			e.Repeat++
		}
	}
	return e
}

// axes are the flags that are sought, in the order of tables.
func axes() []string { return []string{"workers", "batch-bytes"} }

// say tells of a trial.
func (u *under) say(at Setting, warmUp bool, what string) {
	what = fmt.Sprintf("%s, batches of %s: %s | elapsed %s of %s", workers(at.Workers), batch(at.BatchBytes), what,
		time.Since(u.started).Round(100*time.Millisecond), u.Budget)
	if warmUp {
		what = "warm-up, " + what
	}
	u.tell(what)
}
