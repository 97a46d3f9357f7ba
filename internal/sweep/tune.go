// Package tuning finds workers and batch size of one target by pushes: it makes of package tune's settings trials that
// can be compared, and says in the words of flags what was found.
package sweep

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

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

// Defaults are flags of push that a trial takes otherwise where nobody has said anything, by name.
func Defaults() map[string]string {
	return map[string]string{"verify": trialVerify, "distinct-bytes": trialDistinct, "create": string(loader.CreateRecreate)}
}

// Search is one that can be made.
type Search struct {
	Sources
	Bounds
	push         map[string][]string // flags of all trials
	base         Setup               // what push would take
	caps         loader.Caps
	start        Setting
	least, most  Setting
	fixedWorkers bool
	fixedBatch   bool
}

// New plans a search for a push of these flags, as config.FromValues takes them, without a server.
func NewSearch(push map[string][]string, from Sources, b Bounds) (*Search, error) {
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
	s.start = Setting{Workers: p.Workers, BatchBytes: p.BatchBytes()}
	for _, round := range []int64{s.caps.DefaultBatchBytes, int64(s.base.Config.BatchBytes)} {
		if round/row == p.BatchRows {
			s.start.BatchBytes = round // the same rows by the number that was meant
		}
	}
	s.least = Setting{Workers: 1, BatchBytes: min(s.start.BatchBytes, max(leastBatch, row, s.caps.MinRows*row))}
	s.most = Setting{Workers: s.MaxWorkers, BatchBytes: mostBatch}
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
func (s *Search) flagsOf(at Setting) map[string][]string {
	flags := map[string][]string{}
	if !s.fixedWorkers {
		flags["workers"] = []string{strconv.Itoa(at.Workers)}
	}
	if !s.fixedBatch {
		flags["batch-bytes"] = []string{batch(at.BatchBytes)}
	}
	return flags
}

// setup is the push of a setting. It refuses what the rows of a trial, or this machine's memory, are too few for.
func (s *Search) setup(at Setting) (Setup, error) {
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
