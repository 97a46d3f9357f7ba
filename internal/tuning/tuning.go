// Package tuning finds workers and batch size of one target by pushes: it makes of package tune's settings trials that
// can be compared, and says in the words of flags what was found.
package tuning

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/record"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/trial"
	"github.com/terapush/terapush/internal/tune"
	"github.com/terapush/terapush/pkg/loader"
)

// ErrStopped ends a search whose user asked for it.
var ErrStopped = errors.New("the search was stopped by a signal")

// errBudget ends a search whose time was used up. It is no failure.
var errBudget = errors.New("the budget was used up")

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

// What a trial takes unless it is told otherwise: neither proof nor filling is to take longer than what is measured.
const (
	trialVerify   = "ack"
	trialDistinct = "64MiB"
)

// Search is one that can be made.
type Search struct {
	trial.Sources
	Bounds
	push         map[string][]string // flags of all trials
	base         trial.Setup         // what push would take
	caps         loader.Caps
	start        tune.Setting
	least, most  tune.Setting
	fixedWorkers bool
	fixedBatch   bool
}

// New plans a search for a push of these flags, as config.FromValues takes them, without a server.
func New(push map[string][]string, from trial.Sources, b Bounds) (*Search, error) {
	s := &Search{Sources: from, Bounds: b, push: maps.Clone(push)}
	if err := s.check(); err != nil {
		return nil, err
	}
	given, err := s.Setup(s.push)
	if err != nil {
		return nil, err
	}
	if err := s.defaults(given.Given); err != nil {
		return nil, err
	}
	if s.base, err = s.Setup(s.push); err != nil {
		return nil, err
	}
	if err := s.base.Outline(s.Drivers); err != nil {
		return nil, err
	}
	driver, _, target, err := s.base.Config.LoaderTarget(s.Drivers)
	if err == nil {
		s.caps, err = driver.Check(target)
	}
	if err != nil {
		return nil, err
	}
	return s, s.bound()
}

func (s *Search) check() error {
	var wrong []error
	if s.Trial <= 0 || s.Budget <= 0 {
		wrong = append(wrong, errors.New("--trial and --budget: more than 0s"))
	}
	if s.MaxWorkers < 1 || s.MaxWorkers > 4096 {
		wrong = append(wrong, fmt.Errorf("--max-workers %d: 1 to 4096", s.MaxWorkers))
	}
	return errors.Join(wrong...)
}

// defaults are a trial's own where nobody has said anything.
func (s *Search) defaults(given map[string][]string) error {
	sized := ""
	for _, name := range []string{"rows", "bytes", "duration"} {
		if given[name] != nil {
			sized = name
		}
	}
	switch {
	case sized == "":
		s.push["duration"] = []string{s.Trial.String()}
	case s.TrialGiven:
		return fmt.Errorf("--trial and --%s: both say how much a trial pushes", sized)
	}
	if given["verify"] == nil {
		s.push["verify"] = []string{trialVerify}
	}
	if given["distinct-bytes"] == nil {
		s.push["distinct-bytes"] = []string{trialDistinct}
	}
	s.fixedWorkers, s.fixedBatch = given["workers"] != nil, given["batch-bytes"] != nil || given["batch-rows"] != nil
	if s.fixedWorkers && s.fixedBatch {
		return errors.New("--workers and the size of a batch are both given: there is nothing left to find")
	}
	return nil
}

// bound sets where the search begins, and how far it goes.
func (s *Search) bound() error {
	p := &s.base.Plan
	row := p.EncodedRowBytes
	s.start = tune.Setting{Workers: p.Workers, BatchBytes: p.BatchBytes()}
	for _, round := range []int64{s.caps.DefaultBatchBytes, int64(s.base.Config.BatchBytes)} {
		if round/row == p.BatchRows {
			s.start.BatchBytes = round // the same rows by the number that was meant
		}
	}
	s.least = tune.Setting{Workers: 1, BatchBytes: min(s.start.BatchBytes, max(leastBatch, row, s.caps.MinRows*row))}
	s.most = tune.Setting{Workers: s.MaxWorkers, BatchBytes: mostBatch}
	if s.MaxBatchBytes > 0 {
		s.most.BatchBytes = s.MaxBatchBytes
	}
	if s.caps.MaxBytes > 0 {
		s.most.BatchBytes = min(s.most.BatchBytes, s.caps.MaxBytes)
	}
	if s.caps.MaxRows > 0 {
		s.most.BatchBytes = min(s.most.BatchBytes, s.caps.MaxRows*row)
	}
	if s.caps.MaxInFlight > 0 && !s.caps.Staged {
		s.most.Workers = min(s.most.Workers, s.caps.MaxInFlight)
	}
	if s.most.BatchBytes < row {
		return fmt.Errorf("--max-batch-bytes %d: a row takes up to %d bytes", s.most.BatchBytes, row)
	}
	if s.fixedWorkers {
		s.least.Workers, s.most.Workers = s.start.Workers, s.start.Workers
	}
	if s.fixedBatch {
		s.least.BatchBytes, s.most.BatchBytes = s.start.BatchBytes, s.start.BatchBytes
	}
	s.start.Workers = min(s.start.Workers, s.most.Workers)
	s.start.BatchBytes = min(s.start.BatchBytes, s.most.BatchBytes)
	s.least.BatchBytes = min(s.least.BatchBytes, s.start.BatchBytes)
	return nil
}

// Table is the one that trials fill.
func (s *Search) Table() string {
	if s.base.Config.Table != "" {
		return s.base.Config.Table
	}
	return s.base.Config.Dataset
}

// flagsOf are the flags of a setting: those that are sought.
func (s *Search) flagsOf(at tune.Setting) map[string][]string {
	flags := map[string][]string{}
	if !s.fixedWorkers {
		flags["workers"] = []string{strconv.Itoa(at.Workers)}
	}
	if !s.fixedBatch {
		size := config.Bytes(at.BatchBytes)
		flags["batch-bytes"] = []string{size.String()}
	}
	return flags
}

// setup is the push of a setting. It refuses what the rows of a trial, or this machine's memory, are too few for.
func (s *Search) setup(at tune.Setting) (trial.Setup, error) {
	push := maps.Clone(s.push)
	maps.Copy(push, s.flagsOf(at))
	one, err := s.Setup(push)
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
	}
	return one, nil
}

// Push makes one trial, as trial.Lab does.
type Push func(ctx context.Context, s trial.Setup, drain <-chan struct{}) (*report.Report, error)

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
	batch   map[tune.Setting]int64 // rows of a batch
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
			end(ErrStopped)
		case <-searching.Done():
		}
	}()
	u := &under{Search: s, ctx: ctx, end: end, drain: drain, trial: trial, tell: tell, started: time.Now(), batch: map[tune.Setting]int64{}}
	start, err := u.warmUp(searching)
	if err != nil {
		return Found{}, err
	}
	r, err := tune.Find(searching, tune.Options{
		Start: start, Least: s.least, Most: s.most, Near: s.Near, Repeats: repeats, Trials: 10_000, // the budget ends it before
	}, u.measure)
	cause := context.Cause(searching)
	if errors.Is(cause, errBudget) && !errors.Is(err, tune.ErrNothing) {
		err = nil
	}
	if len(r.Best.Rates) == 0 {
		return Found{}, err
	}
	return u.found(r, cause), err
}

// warmUp makes the first push, which counts for nothing, and gives the setting that the search begins with: a smaller one
// than push would take where that cannot be.
func (u *under) warmUp(searching context.Context) (tune.Setting, error) {
	for at := u.start; ; {
		_, err := u.push(at, true)
		if searching.Err() != nil && (err != nil || errors.Is(context.Cause(searching), ErrStopped)) {
			return at, cause(searching, err)
		}
		switch {
		case err == nil:
			return u.begin(at), nil
		case !errors.Is(err, trial.ErrLimit) && !errors.Is(err, errNotHere):
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
func (u *under) begin(at tune.Setting) tune.Setting {
	for u.tooLong(at) && at.BatchBytes > u.least.BatchBytes {
		at.BatchBytes = max(at.BatchBytes/2, u.least.BatchBytes)
	}
	u.begun = inFlight(at)
	return at
}

// tooLong tells whether a trial of the setting, at the best rate so far, would be over before each worker's first batch
// is in. Where the search begins is tried in any case.
func (u *under) tooLong(at tune.Setting) bool {
	p := &u.base
	return p.Plan.ByDuration && u.rate > 0 && inFlight(at) > max(u.rate*p.Config.Duration.Seconds(), u.begun)
}

func inFlight(at tune.Setting) float64 { return float64(at.Workers) * float64(at.BatchBytes) }

// cause is why a search has ended: a signal, or else the error itself.
func cause(searching context.Context, err error) error {
	if c := context.Cause(searching); errors.Is(c, ErrStopped) || err == nil {
		return c
	}
	return err
}

func (u *under) measure(_ context.Context, at tune.Setting) (float64, error) {
	return u.push(at, false)
}

// errNotHere is a setting that is refused before anything is pushed.
var errNotHere = errors.New("cannot be tried")

// push makes one trial of a setting and gives its rows a second.
func (u *under) push(at tune.Setting, warmUp bool) (float64, error) {
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
		u.end(ErrStopped)
		return 0, ErrStopped
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
func limit(err error) error { return fmt.Errorf("%w: %w", trial.ErrLimit, err) }

// endsIt tells whether the error of a trial is one of the server or of the rows, and not of the setting.
func endsIt(err error) bool {
	of := push.OutcomeOf(err)
	return errors.Is(err, trial.ErrDiskFull) || errors.Is(err, trial.ErrUnreachable) || of == report.VerificationFailed || of == report.Rejected
}

func (u *under) entry(at tune.Setting, warmUp bool) record.Entry {
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
func (u *under) say(at tune.Setting, warmUp bool, what string) {
	what = fmt.Sprintf("%s, batches of %s: %s | elapsed %s of %s", workers(at.Workers), size(float64(at.BatchBytes)), what,
		time.Since(u.started).Round(100*time.Millisecond), u.Budget)
	if warmUp {
		what = "warm-up, " + what
	}
	u.tell(what)
}
