package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/pkg/loader"
)

// Bounds are what a search may take.
type Bounds struct {
	Trial         time.Duration // of one push, unless its flags say how much
	TrialGiven    bool          // Trial is the user's, and contradicts such flags
	Budget        time.Duration
	MaxWorkers    int
	MaxBatchBytes int64   // encoded; 0: what the method takes, at most mostBatch
	Near          float64 // share of the best rate that is given away, 0 … 1
}

const (
	mostBatch  = 256 << 20
	leastBatch = 64 << 10
	// repeats is how often a setting that decides is measured.
	repeats = 3
)

// Defaults returns flags of push that a trial takes otherwise where nobody has said anything, by name: neither proof nor
// filling is to take longer than what is measured.
func Defaults() map[string]string {
	return map[string]string{"verify": "ack", "distinct-bytes": "64MiB", "create": string(loader.CreateRecreate)}
}

// Search finds workers and batch size of one target by trials. It is made once.
type Search struct {
	Sources
	Bounds
	flags       map[string][]string // of all trials
	base        Setup               // what push would take
	start       Setting
	least, most Setting
	sought      []string // axes, in the order of tables

	// Of the search under way.
	ctx     context.Context //nolint:containedctx // of one Find, which it does not outlive: the connections end with it
	end     context.CancelCauseFunc
	drain   <-chan struct{}
	trial   Trial
	tell    func(line string)
	started time.Time
	rate    float64 // encoded bytes a second of the best trial so far
	begun   float64 // bytes in flight where the search begins
	entries []results.Entry
	rows    map[Setting]int64 // of a batch
}

// Trial makes one trial, as Trials does.
type Trial func(ctx context.Context, s Setup, drain <-chan struct{}) (*report.Report, error)

// NewSearch plans a search for a push of these flags, as config.FromValues takes them, without a server.
func NewSearch(flags map[string][]string, from Sources, b Bounds) (*Search, error) {
	s := &Search{Sources: from, Bounds: b, flags: maps.Clone(flags), rows: map[Setting]int64{}}
	var wrong []error
	if s.Trial <= 0 || s.Budget <= 0 {
		wrong = append(wrong, errors.New("--trial and --budget: more than 0s"))
	}
	if s.MaxWorkers < 1 || s.MaxWorkers > 4096 {
		wrong = append(wrong, fmt.Errorf("--max-workers %d: 1 to 4096", s.MaxWorkers))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
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
	driver, _, target, err := s.base.Config.LoaderTarget(s.Drivers)
	if err != nil {
		return nil, err
	}
	caps, err := driver.Check(target)
	if err != nil {
		return nil, err
	}
	return s, s.bound(caps)
}

// complete adds what a trial takes where nobody has said anything, and decides what is sought.
func (s *Search) complete(given map[string][]string) error {
	sized := ""
	for _, name := range sizes() {
		if given[name] != nil {
			sized = name
		}
	}
	switch {
	case sized == "":
		s.flags["duration"] = []string{s.Trial.String()}
	case s.TrialGiven:
		return fmt.Errorf("--trial and --%s: both say how much a trial pushes", sized)
	}
	for _, name := range []string{"verify", "distinct-bytes"} {
		if given[name] == nil {
			s.flags[name] = []string{Defaults()[name]}
		}
	}
	if given["workers"] == nil {
		s.sought = append(s.sought, "workers")
	}
	if given["batch-bytes"] == nil && given["batch-rows"] == nil {
		s.sought = append(s.sought, "batch-bytes")
	}
	if len(s.sought) == 0 {
		return errors.New("--workers and the size of a batch are both given: there is nothing left to find")
	}
	return nil
}

// bound sets where the search begins, and how far it goes.
func (s *Search) bound(caps loader.Caps) error {
	p := &s.base.Plan
	row := p.EncodedRowBytes
	start := Setting{Workers: p.Workers, BatchBytes: p.BatchBytes()}
	for _, round := range []int64{caps.DefaultBatchBytes, int64(s.base.Config.BatchBytes)} {
		if round/row == p.BatchRows {
			start.BatchBytes = round // the same rows by the number that was meant
		}
	}
	least := Setting{Workers: 1, BatchBytes: min(start.BatchBytes, max(leastBatch, row, caps.MinRows*row))}
	most := Setting{Workers: s.MaxWorkers, BatchBytes: mostBatch}
	if s.MaxBatchBytes > 0 {
		most.BatchBytes = s.MaxBatchBytes
	}
	for _, bytes := range []int64{caps.MaxBytes, caps.MaxRows * row} {
		if bytes > 0 {
			most.BatchBytes = min(most.BatchBytes, bytes)
		}
	}
	if caps.MaxInFlight > 0 && !caps.Staged {
		most.Workers = min(most.Workers, caps.MaxInFlight)
	}
	if most.BatchBytes < row {
		return fmt.Errorf("--max-batch-bytes %d: a row takes up to %d bytes", most.BatchBytes, row)
	}
	if !slices.Contains(s.sought, "workers") {
		least.Workers, most.Workers = start.Workers, start.Workers
	}
	if !slices.Contains(s.sought, "batch-bytes") {
		least.BatchBytes, most.BatchBytes = start.BatchBytes, start.BatchBytes
	}
	start.Workers, start.BatchBytes = min(start.Workers, most.Workers), min(start.BatchBytes, most.BatchBytes)
	least.BatchBytes = min(least.BatchBytes, start.BatchBytes)
	s.start, s.least, s.most = start, least, most
	return nil
}

// Table returns the one that trials fill.
func (s *Search) Table() string {
	if s.base.Config.Table != "" {
		return s.base.Config.Table
	}
	return s.base.Config.Dataset
}

// settings returns what is sought of a setting, by flags.
func (s *Search) settings(at Setting) []results.Setting {
	all := []results.Setting{}
	for _, name := range s.sought {
		value := strconv.Itoa(at.Workers)
		if name == "batch-bytes" {
			value = batch(at.BatchBytes)
		}
		all = append(all, results.Setting{Axis: name, Value: value})
	}
	return all
}

// setup returns the push of a setting. It refuses what the rows of a trial, or this machine's memory, are too few for.
func (s *Search) setup(at Setting) (Setup, error) {
	flags := maps.Clone(s.flags)
	for _, one := range s.settings(at) {
		flags[one.Axis] = []string{one.Value}
	}
	one, err := s.Setup(flags)
	if err == nil {
		err = one.Outline(s.Drivers)
	}
	switch p := one.Plan; {
	case err != nil:
		return one, err
	case p.Workers < at.Workers:
		return one, fmt.Errorf("the rows of a trial make %d batches", p.Batches())
	case p.Buffers < at.Workers:
		return one, fmt.Errorf("--memory holds %d batches", p.Buffers)
	case s.tooLong(at):
		return one, fmt.Errorf("trials of %s are too short for it at the best rate so far: a longer --trial searches further",
			one.Config.Duration)
	}
	return one, nil
}

// tooLong reports whether a trial of the setting, at the best rate so far, would be over before each worker's first batch
// is in. Where the search begins is tried in any case.
func (s *Search) tooLong(at Setting) bool {
	p := &s.base
	return p.Plan.ByDuration && s.rate > 0 && float64(at.inFlight()) > max(s.rate*p.Config.Duration.Seconds(), s.begun)
}

// errBudget ends a search whose time was used up. It is no failure.
var errBudget = errors.New("the budget was used up")

// Find searches. Closing drain ends it in order. Found holds what is known by then, also when there is an error: no trial
// means that nothing is. The budget is no error.
func (s *Search) Find(ctx context.Context, drain <-chan struct{}, trial Trial, tell func(line string)) (Found, error) {
	searching, end := push.Until(ctx, drain, errSearchStopped)
	defer end(nil)
	clock := time.AfterFunc(s.Budget, func() { end(errBudget) })
	defer clock.Stop()
	s.ctx, s.end, s.drain, s.trial, s.tell, s.started = ctx, end, drain, trial, tell, time.Now()
	start, err := s.warmUp(searching)
	if err != nil {
		return Found{}, err
	}
	r, err := find(searching, searchOptions{
		Start: start, Least: s.least, Most: s.most, Near: s.Near, Repeats: repeats, Trials: 10_000, // the budget ends it before
	}, func(_ context.Context, at Setting) (float64, error) { return s.push(at, false) })
	cause := context.Cause(searching)
	if errors.Is(cause, errBudget) && !errors.Is(err, errNothing) {
		err = nil
	}
	if len(r.Best.Rates) == 0 {
		return Found{}, err
	}
	return s.found(r, cause), err
}

// warmUp makes the first push, which counts for nothing, and returns the setting that the search begins with: a smaller
// one than push would take where that cannot be, or where its batches would take longer than a trial, which says little.
func (s *Search) warmUp(searching context.Context) (Setting, error) {
	at := s.start
	for {
		_, err := s.push(at, true)
		cause := context.Cause(searching)
		stopped := errors.Is(cause, ErrStopped)
		switch {
		case stopped || cause != nil && err != nil:
			if stopped {
				err = cause
			}
			return at, err
		case err == nil:
			for s.tooLong(at) && at.BatchBytes > s.least.BatchBytes {
				at.BatchBytes = max(at.BatchBytes/2, s.least.BatchBytes)
			}
			s.begun = float64(at.inFlight())
			return at, nil
		case !errors.Is(err, ErrLimit) && !errors.Is(err, errNotHere):
			return at, err
		case at.Workers > s.least.Workers:
			at.Workers = max(at.Workers/2, s.least.Workers)
		case at.BatchBytes > s.least.BatchBytes:
			at.BatchBytes = max(at.BatchBytes/2, s.least.BatchBytes)
		default:
			return at, err
		}
	}
}

// errNotHere is a setting that is refused before anything is pushed.
var errNotHere = errors.New("cannot be tried")

// push makes one trial of a setting and returns its rows a second.
func (s *Search) push(at Setting, warmUp bool) (float64, error) {
	one, err := s.setup(at)
	if err != nil {
		err = fmt.Errorf("%w: %w", errNotHere, err)
		s.say(at, warmUp, err.Error())
		return 0, err
	}
	s.rows[at] = one.Plan.BatchRows
	e := results.Entry{Started: time.Now(), WarmUp: warmUp, Settings: s.settings(at)}
	for _, was := range s.entries {
		if was.WarmUp == warmUp && slices.Equal(was.Settings, e.Settings) {
			e.Repeat++
		}
	}
	r, err := s.trial(s.ctx, one, s.drain)
	e.Seconds, e.Report = time.Since(e.Started).Seconds(), r
	switch {
	case closed(s.drain) || s.ctx.Err() != nil:
		s.end(errSearchStopped)
		return 0, errSearchStopped
	case err == nil && r.Result.Rows == 0:
		err = errors.New("no row was acknowledged")
	case err == nil && r.Plan.Workers < at.Workers:
		err = fmt.Errorf("%w: the server runs %d loads at a time", ErrLimit, r.Plan.Workers)
	}
	e.Status = results.Measured
	if err != nil {
		e.Status, e.Error = results.Failed, err.Error()
	}
	s.entries = append(s.entries, e)
	if err != nil {
		s.say(at, warmUp, "FAILED: "+strings.Join(strings.Fields(err.Error()), " "))
		if endsSearch(err) {
			s.end(err)
		}
		return 0, err
	}
	s.rate = max(s.rate, r.Result.RowsPerSecond*float64(one.Plan.EncodedRowBytes))
	s.say(at, warmUp, fmt.Sprintf("%s rows/s, %s/s", count(r.Result.RowsPerSecond), size(r.Result.BytesPerSecond)))
	return r.Result.RowsPerSecond, nil
}

// endsSearch reports whether the error of a trial is one of the server or of the rows, and not of the setting.
func endsSearch(err error) bool {
	of := push.OutcomeOf(err)
	return errors.Is(err, ErrDiskFull) || errors.Is(err, ErrUnreachable) || of == report.VerificationFailed || of == report.Rejected
}

// say shows what became of a trial.
func (s *Search) say(at Setting, warmUp bool, what string) {
	what = fmt.Sprintf("%s, batches of %s: %s | elapsed %s of %s", workers(at.Workers), batch(at.BatchBytes), what,
		time.Since(s.started).Round(100*time.Millisecond), s.Budget)
	if warmUp {
		what = "warm-up, " + what
	}
	s.tell(what)
}
