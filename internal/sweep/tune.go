package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// Bounds limit a search.
type Bounds struct {
	Trial         time.Duration // of one push, unless its flags say how much
	TrialGiven    bool          // by the user; such flags are refused
	Budget        time.Duration
	MaxWorkers    int
	MaxBatchBytes int64   // encoded; 0: the method's limit, at most mostBatch
	Near          float64 // share of the best rate to give away, 0 to 1
}

const (
	mostBatch  = 256 << 20
	leastBatch = 64 << 10
)

// Defaults returns the defaults of a trial that differ from push's: neither proof nor filling should take longer than
// what is measured.
func Defaults() map[string]string {
	return map[string]string{"verify": "ack", "distinct-bytes": "64MiB", "create": string(loader.CreateRecreate)}
}

// Search finds workers and batch size for one target by trials. It is used once.
type Search struct {
	Sources
	Bounds
	flags  map[string][]string // of all trials
	target string              // without secrets
	base   Setup               // without any setting
	start  Setting
	values [2][]int64 // of workers and of batches, to choose from
	part   Part       // of the sweep: its axes are what is sought

	// Of the search under way.
	ctx     context.Context //nolint:containedctx // of one Find; it ends the connections
	end     context.CancelCauseFunc
	job     Job
	runner  *runner
	tell    func(line string)
	started time.Time
	rate    float64       // encoded bytes a second of the best trial so far
	begun   float64       // bytes in flight of the first setting
	longest time.Duration // of a trial so far
	entries []results.Entry
	rows    map[Setting]int64 // of a batch
}

// NewSearch plans a search for a push of these flags, as config.FromValues takes them, without a server.
func NewSearch(flags map[string][]string, from Sources, b Bounds) (*Search, error) {
	s := &Search{Sources: from, Bounds: b, flags: maps.Clone(flags), rows: map[Setting]int64{}}
	if s.Trial <= 0 || s.Budget <= 0 {
		return nil, errors.New("--trial and --budget: more than 0s")
	}
	if s.MaxWorkers < 1 || s.MaxWorkers > 4096 {
		return nil, fmt.Errorf("--max-workers %d: 1 to 4096", s.MaxWorkers)
	}
	one, err := s.Setup(s.flags)
	if err != nil {
		return nil, err
	}
	if err := s.complete(one.Given); err != nil {
		return nil, err
	}
	if s.base, err = s.Setup(s.flags); err != nil {
		return nil, err
	}
	if err := s.base.Outline(s.Drivers); err != nil {
		return nil, err
	}
	driver, target, err := s.base.Config.LoaderTarget(s.Drivers, config.Earlier{})
	if err != nil {
		return nil, err
	}
	caps, err := driver.Check(target)
	if err != nil {
		return nil, err
	}
	if s.target, err = ShownTarget(s.base.Config.Target); err != nil {
		return nil, err
	}
	return s, s.bound(caps)
}

// complete adds the default flags of a trial, and decides which settings to search for.
func (s *Search) complete(given map[string][]string) error {
	sized := slices.IndexFunc(sizes(), func(name string) bool { return given[name] != nil })
	switch {
	case sized < 0:
		s.flags["duration"] = []string{s.Trial.String()}
	case s.TrialGiven:
		return fmt.Errorf("--trial and --%s: both say how much a trial pushes", sizes()[sized])
	}
	for _, name := range []string{"verify", "distinct-bytes"} {
		if given[name] == nil {
			s.flags[name] = []string{Defaults()[name]}
		}
	}
	if given["workers"] == nil {
		s.part.Axes = append(s.part.Axes, results.Axis{Name: axisOf[byWorkers]})
	}
	if given["batch-bytes"] == nil && given["batch-rows"] == nil {
		s.part.Axes = append(s.part.Axes, results.Axis{Name: axisOf[byBatch]})
	}
	if len(s.part.Axes) == 0 {
		return errors.New("--workers and the size of a batch are both given: there is nothing left to find")
	}
	return nil
}

// axisOf are the flags that a search varies.
var axisOf = [...]string{byWorkers: "workers", byBatch: "batch-bytes"}

// bound sets where the search begins, and how far it goes.
func (s *Search) bound(caps loader.Caps) error {
	p := &s.base.Plan
	row := p.EncodedRowBytes
	start := [...]int64{byWorkers: int64(p.Workers), byBatch: p.BatchBytes()}
	for _, round := range []int64{caps.DefaultBatchBytes, caps.SoloBatchBytes, caps.SoloBatchBytes / 2, int64(s.base.Config.BatchBytes)} {
		if round/row == p.BatchRows {
			start[byBatch] = round // as many rows, by a round number
		}
	}
	most := [...]int64{byWorkers: int64(s.MaxWorkers), byBatch: cmp.Or(s.MaxBatchBytes, mostBatch)}
	for _, bytes := range []int64{caps.MaxBytes, caps.MaxRows * row} {
		if bytes > 0 {
			most[byBatch] = min(most[byBatch], bytes)
		}
	}
	if caps.MaxInFlight > 0 && !caps.Staged {
		most[byWorkers] = min(most[byWorkers], int64(caps.MaxInFlight))
	}
	if most[byBatch] < row {
		return fmt.Errorf("--max-batch-bytes %d: a row takes up to %d bytes", most[byBatch], row)
	}
	least := [...]int64{byWorkers: 1, byBatch: max(leastBatch, row, caps.MinRows*row)}

	for axis := range start {
		s.values[axis] = start[axis : axis+1]
	}
	s.part.Push = s.flags
	for i, a := range s.part.Axes {
		axis := slices.Index(axisOf[:], a.Name)
		start[axis] = min(start[axis], most[axis])
		s.values[axis] = doublings(start[axis], min(least[axis], start[axis]), most[axis])
		for _, n := range s.values[axis] {
			text := strconv.FormatInt(n, 10)
			if axis == byBatch {
				text = batch(n)
			}
			s.part.Axes[i].Values = append(s.part.Axes[i].Values, text)
		}
	}
	s.start = Setting{Workers: int(start[byWorkers]), BatchBytes: start[byBatch]}
	return nil
}

// Table returns the table that trials fill.
func (s *Search) Table() string { return cmp.Or(s.base.Config.Table, s.base.Plan.Dataset) }

// number returns which of the sweep's cases a setting is.
func (s *Search) number(at Setting) int {
	workers, batches := s.values[byWorkers], s.values[byBatch]
	return slices.Index(workers, int64(at.Workers))*len(batches) + slices.Index(batches, at.BatchBytes)
}

// caseOf returns the push of a setting. It refuses what a trial's rows or this machine's memory do not suffice for.
func (s *Search) caseOf(at Setting) (Case, error) {
	c := s.part.caseAt(0, s.number(at))
	var err error
	if c.Setup, err = s.Setup(c.Push); err != nil {
		return c, err
	}
	if err = c.Outline(s.Drivers); err != nil {
		return c, err
	}

	switch p := c.Plan; {
	case p.Workers < at.Workers:
		return c, fmt.Errorf("the rows of a trial make %d batches", p.Batches())
	case p.Buffers < at.Workers:
		return c, fmt.Errorf("--memory holds %d batches", p.Buffers)
	case s.tooLong(at):
		return c, fmt.Errorf("trials of %s are too short for it at the best rate so far: give a longer --trial",
			c.Config.Duration)
	}
	return c, nil
}

// tooLong reports whether a trial of the setting, at the best rate so far, would end before each worker's first batch
// is in. The first setting is always tried.
func (s *Search) tooLong(at Setting) bool {
	p := &s.base
	return p.Plan.ByDuration() && s.rate > 0 && float64(at.inFlight()) > max(s.rate*p.Config.Duration.Seconds(), s.begun)
}

// errBudget ends a search that has used up its time, which is no failure.
var errBudget = errors.New("the budget was used up")

// Find searches, by trials of a sweep: of the job it takes Push, Drain and Keep, which may be nil. Closing Drain ends
// it in order. Found holds what is known by then, also if there is an error; without trials nothing is known. A used up
// budget is no error.
func (s *Search) Find(ctx context.Context, job Job, tell func(line string)) (Found, error) {
	searching, end := push.Until(ctx, job.Drain, errSearchStopped)
	defer end(nil)
	clock := time.AfterFunc(s.Budget, func() { end(errBudget) })
	defer clock.Stop()
	s.ctx, s.end, s.job, s.tell, s.started = ctx, end, job, tell, time.Now()
	if s.job.Keep == nil {
		s.job.Keep = func(results.Entry) error { return nil }
	}
	job.Push = s.try
	s.runner = newRunner(job)

	start, err := s.warmUp(searching)
	if err != nil {
		return Found{}, err
	}
	t := &tune{
		Start: start, Values: s.values, Near: s.Near,
		Measure: func(at Setting) (float64, error) { return s.push(at, false) },
		Late: func() bool {
			turns := (2*rounds + 1) * s.longest // and for the trial that is asked for
			possible := turns <= s.Budget*2/3   // else all of the budget is the search's
			return possible && time.Since(s.started) > s.Budget-turns
		},
	}
	best, smallest, err := t.run(searching)
	if best == nil {
		return Found{}, err
	}
	turns, decided := Turns{Ratios: []float64{}}, !t.cut // of one setting alone
	if rival := t.rival(best, smallest); rival != nil {
		turns = t.inTurns(smallest, rival)
		best, smallest, decided = t.decide(turns, smallest, rival)
	}
	if !decided {
		best = t.best() // the turns may have shown that it was lucky
	}
	cause := context.Cause(searching)
	f := s.found(t, best, smallest, cause)
	f.Turns, f.Decided = turns, decided
	if errors.Is(cause, errBudget) {
		return f, nil
	}
	return f, cause
}

// warmUp makes the first trial, which does not count, and returns the setting to begin with. It is smaller than push's
// if that one is refused, or if its batches take longer than a trial, which says little.
func (s *Search) warmUp(searching context.Context) (Setting, error) {
	least := Setting{Workers: int(s.values[byWorkers][0]), BatchBytes: s.values[byBatch][0]}
	for at := s.start; ; {
		_, err := s.push(at, true)
		cause := context.Cause(searching)
		switch {
		case errors.Is(cause, ErrStopped):
			return at, cause
		case err == nil:
			for s.tooLong(at) && at.BatchBytes > least.BatchBytes {
				at.BatchBytes = max(at.BatchBytes/2, least.BatchBytes)
			}
			s.begun = float64(at.inFlight())
			return at, nil
		case cause != nil || !errors.Is(err, ErrLimit) && !errors.Is(err, errImpossible):
			return at, err
		case at.Workers > least.Workers:
			at.Workers = max(at.Workers/2, least.Workers)
		case at.BatchBytes > least.BatchBytes:
			at.BatchBytes = max(at.BatchBytes/2, least.BatchBytes)
		default:
			return at, err
		}
	}
}

// errImpossible is a setting that is refused before anything is pushed.
var errImpossible = errors.New("cannot be tried")

// push makes one trial of a setting and returns its rows a second.
func (s *Search) push(at Setting, warmUp bool) (float64, error) {
	one, err := s.caseOf(at)
	if err != nil {
		err = fmt.Errorf("%w: %w", errImpossible, err)
		s.say(at, warmUp, loader.Explain(err))
		return 0, err
	}
	s.rows[at] = one.Plan.BatchRows

	trial := step{one: one, warmUp: warmUp}
	for _, was := range s.entries {
		if was.WarmUp == warmUp && was.Cell == one.Number {
			trial.repeat++
		}
	}
	e, err := s.runner.measure(s.ctx, trial)
	if errors.Is(err, ErrStopped) {
		s.end(errSearchStopped)
		return 0, errSearchStopped
	}
	if err == nil && e.Status == results.Failed {
		err = errors.New(e.Error)
	}
	s.entries = append(s.entries, e)
	s.longest = max(s.longest, seconds(e.Seconds))
	if !errors.Is(err, ErrUnreachable) {
		if kept := s.job.Keep(e); kept != nil {
			s.end(kept)
			return 0, kept
		}
	}
	switch {
	case endsSearch(err): // it is the search's own, which the caller prints
		s.say(at, warmUp, "FAILED")
		s.end(err)
		return 0, err
	case err != nil:
		s.say(at, warmUp, "FAILED: "+units.OneLine(loader.Explain(err)))
		return 0, err
	}

	measured := e.Report.Result
	s.rate = max(s.rate, measured.RowsPerSecond*float64(one.Plan.EncodedRowBytes))
	s.say(at, warmUp, rates(measured.RowsPerSecond, measured.BytesPerSecond))
	return measured.RowsPerSecond, nil
}

// try makes the push of one trial. What it did not do as the setting says is its failure.
func (s *Search) try(
	ctx context.Context, one Case, drain <-chan struct{}, begun func(moving func() bool),
) (*report.Report, error) {
	r, err := s.job.Push(ctx, one, drain, begun)
	switch {
	case err != nil:
	case r.Result.Rows == 0:
		err = errors.New("no row was acknowledged")
	case r.Plan.Workers < one.Plan.Workers:
		err = fmt.Errorf("%w: the server runs %d loads at a time", ErrLimit, r.Plan.Workers)
	}
	return r, err
}

// endsSearch reports whether the error of a trial concerns the server or the rows, and not the setting.
func endsSearch(err error) bool {
	outcome := push.OutcomeOf(err)
	return errors.Is(err, ErrDiskFull) || errors.Is(err, ErrUnreachable) ||
		outcome == report.VerificationFailed || outcome == report.Rejected
}

func (s *Search) say(at Setting, warmUp bool, result string) {
	line := fmt.Sprintf("%s: %s | elapsed %s of %s", at, result, time.Since(s.started).Round(100*time.Millisecond), s.Budget)
	if warmUp {
		line = "warm-up, " + line
	}
	s.tell(line)
}
