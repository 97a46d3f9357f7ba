package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/terapush/terapush/internal/results"
)

// Setting is what a search varies.
type Setting struct {
	Workers    int   `json:"workers"`
	BatchBytes int64 `json:"batch_bytes"` // encoded
}

// inFlight is the cost of a setting: the bytes that client and server hold at a time.
func (s Setting) inFlight() int64 { return int64(s.Workers) * s.BatchBytes }

// Tried is a setting that was tried.
type Tried struct {
	Setting
	BatchRows int64     `json:"batch_rows"`               // 0 if nothing was pushed
	Measured  []float64 `json:"measured_rows_per_second"` // in order; none if all trials failed
	Rate      float64   `json:"rows_per_second"`          // the median
	Bytes     float64   `json:"bytes_per_second"`         // of column data
	Share     float64   `json:"share"`                    // of the best rate
	Error     string    `json:"error"`                    // of the last trial, if all failed

	at    spot
	times int   // it was tried, failures included
	err   error // of the last trial that failed
}

func (t *Tried) usable() bool { return len(t.Measured) > 0 }

// spot is a setting by its place among the values of workers and of batch sizes.
type spot [2]int

const (
	byWorkers = iota
	byBatch
)

// doublings lists a start and what doubling and halving make of it between the bounds, which are included, rising.
func doublings(start, least, most int64) (values []int64) {
	for n := start; n > least; n = max(n/2, least) {
		values = append(values, n)
	}
	values = append(values, least)
	slices.Reverse(values)
	for n := start; n < most; values = append(values, n) {
		n = min(2*n, most)
	}
	return values
}

// tune seeks the smallest setting within a few percent of the best rate in as few trials as it can.
type tune struct {
	Start  Setting    // of the values
	Values [2][]int64 // workers and batch sizes to choose from, rising
	Near   float64    // share of the best rate to give away for a smaller setting, 0 to 1
	// Measure returns the rate of a setting. An error means that the setting is impossible: it ends a row, not the
	// search.
	Measure func(Setting) (float64, error)
	// Late reports whether the time left is needed to measure in turns; nil is never.
	Late func() bool

	ctx   context.Context //nolint:containedctx // of one run
	cut   bool            // one more measurement was wanted after the context's end
	tried []*Tried        // in the order of their first trials
}

// repeats is how often a setting that decides is measured.
const repeats = 3

// errNothing is joined to the error of the first trial if no setting could be measured.
var errNothing = errors.New("no setting could be measured")

// run measures what the measurements so far ask for, until they ask for no more. The result is valid after the
// context's end, too.
func (s *tune) run(ctx context.Context) (best, smallest *Tried, err error) {
	s.ctx = ctx
	wanted := []spot{{
		slices.Index(s.Values[byWorkers], int64(s.Start.Workers)), slices.Index(s.Values[byBatch], s.Start.BatchBytes),
	}}
	for pass := 0; len(wanted) > 0 && !s.cut; pass++ {
		shuffle := seeded("tune", "", pass, 0)
		shuffle.Shuffle(len(wanted), func(i, j int) { wanted[i], wanted[j] = wanted[j], wanted[i] })
		for _, at := range wanted {
			s.measure(at)
		}
		wanted = s.wanted()
	}

	if best = s.best(); best == nil {
		var first error
		if len(s.tried) > 0 && s.tried[0].err != nil {
			t := s.tried[0]
			first = fmt.Errorf("%d workers, batches of %d bytes: %w", t.Workers, t.BatchBytes, t.err)
		}
		return nil, nil, errors.Join(errNothing, first, context.Cause(ctx))
	}
	return best, s.smallest(best), context.Cause(ctx)
}

// wanted returns what to measure next, each setting once. Larger settings come first: in the rows through the best
// until two lie beyond the knee, as in a sweep. Then smaller ones, as long as the next is nearly as good: batches
// first, since smaller ones cost the server less than fewer connections. What the choice hangs on is measured several
// times.
func (s *tune) wanted() []spot {
	best := s.best()
	if best == nil {
		return nil
	}
	for axis := range best.at {
		rates, more := s.row(best.at, axis)
		more[axis]++
		if beyond := len(rates) - 1 - results.KneeOf(rates, s.Near); beyond < flatStop && s.isNew(more) {
			return []spot{more}
		}
	}

	less := s.smallest(best).at
	for _, axis := range []int{byBatch, byWorkers} {
		next := less
		next[axis]--
		if s.isNew(next) {
			return []spot{next}
		}
	}

	var doubted []spot
	for _, t := range s.tried {
		if t.usable() && t.times < repeats && t.Rate >= (1-doubtful)*(1-s.Near)*best.Rate {
			doubted = append(doubted, t.at)
		}
	}
	return doubted
}

// row returns the rates of what was measured and differs along one axis only, in the order of that axis, and the last
// of it.
func (s *tune) row(through spot, axis int) (rates []float64, last spot) {
	for through[axis] = range s.Values[axis] {
		if t := s.find(through); t != nil && t.usable() {
			rates, last = append(rates, t.Rate), t.at
		}
	}
	return rates, last
}

// find returns what was tried, or nil.
func (s *tune) find(at spot) *Tried {
	i := slices.IndexFunc(s.tried, func(t *Tried) bool { return t.at == at })
	if i < 0 {
		return nil
	}
	return s.tried[i]
}

// isNew reports whether there are such values and they were not tried.
func (s *tune) isNew(at spot) bool {
	for axis, i := range at {
		if i < 0 || i >= len(s.Values[axis]) {
			return false
		}
	}
	return s.find(at) == nil
}

func (s *tune) ended() bool {
	s.cut = s.cut || s.ctx.Err() != nil || s.Late != nil && s.Late()
	return s.cut
}

// rounds is how often what is chosen and its rival are measured in turns. The lowest and the highest of so many ratios
// have the true one between them in 97 of 100 cases.
const rounds = 6

// Turns are measurements of a setting and its rival one after the other, in turns: those of the search may lie minutes
// apart, in which a server changes, and the best of them was the luckiest.
type Turns struct {
	Setting Setting   `json:"setting"`
	Rival   Setting   `json:"rival"`
	Ratios  []float64 `json:"ratios"` // of the setting's rate to the rival's, in order
}

// inTurns measures two settings until the ratios are enough or the context ends.
func (s *tune) inTurns(a, b *Tried) Turns {
	t := Turns{Setting: a.Setting, Rival: b.Setting, Ratios: []float64{}}
	for round := range rounds {
		first, second := a, b
		if round%2 == 1 { // a drift favours neither
			first, second = b, a
		}
		if !s.try(first) || !s.try(second) {
			break
		}
		t.Ratios = append(t.Ratios, a.last()/b.last())
	}
	return t
}

func (t *Tried) last() float64 { return t.Measured[len(t.Measured)-1] }

// within returns where the ratio of the rates lies; known is false without enough measurements.
func (t Turns) within() (low, high float64, known bool) {
	if len(t.Ratios) < rounds {
		return 0, 0, false
	}
	return slices.Min(t.Ratios), slices.Max(t.Ratios), true
}

// decide chooses between a setting and its rival by their turns: the rival if it is certainly better by more than near,
// else the setting if it cannot be worse by more than twice that. Anything else is noise.
func (s *tune) decide(t Turns, a, b *Tried) (best, smallest *Tried, decided bool) {
	low, high, known := t.within()
	switch {
	case !known:
		return a, a, false
	case high < 1-s.Near:
		return b, b, true
	case low < 1-2*s.Near:
		return a, a, false
	}
	best, smallest = a, a
	if b.Rate > a.Rate {
		best = b
	}
	if 1/high >= 1-2*s.Near && b.inFlight() < a.inFlight() { // neither is worse
		smallest = b
	}
	return best, smallest, true
}

// rival returns what a choice is measured against: the best, or for the best the fastest of the others; nil without
// one.
func (s *tune) rival(best, smallest *Tried) *Tried {
	if best != smallest {
		return best
	}
	return s.fastest(best)
}

// measure measures a setting once, unless the time is up.
func (s *tune) measure(at spot) {
	if s.ended() {
		return
	}
	t := s.find(at)
	if t == nil {
		setting := Setting{int(s.Values[byWorkers][at[byWorkers]]), s.Values[byBatch][at[byBatch]]}
		t = &Tried{Setting: setting, Measured: []float64{}, at: at}
		s.tried = append(s.tried, t)
	}

	if !s.try(t) {
		s.ended() // the context's end may be why it failed
	}
}

// try measures a setting once, and reports whether that was possible.
func (s *tune) try(t *Tried) bool {
	if s.ctx.Err() != nil {
		return false
	}
	t.times++
	rate, err := s.Measure(t.Setting)
	if err != nil {
		t.err = err
		return false
	}
	t.Measured = append(t.Measured, rate)
	t.Rate = results.Median(t.Measured)
	return true
}

// doubtful is how near to the mark a single rate says nothing.
const doubtful = 0.08

// best returns the setting with the highest median; nil without any.
func (s *tune) best() *Tried { return s.fastest(nil) }

func (s *tune) fastest(except *Tried) (top *Tried) {
	for _, t := range s.tried {
		if t != except && t.usable() && (top == nil || t.Rate > top.Rate) {
			top = t
		}
	}
	return top
}

// smallest returns the setting near the best with the fewest bytes in flight, and of several the one with the fewest
// workers.
func (s *tune) smallest(best *Tried) *Tried {
	near := slices.DeleteFunc(slices.Clone(s.tried), func(t *Tried) bool {
		few := len(t.Measured) < min(repeats, len(best.Measured)) // perhaps lucky
		return t != best && (!t.usable() || few || t.Rate < (1-s.Near)*best.Rate)
	})
	return slices.MinFunc(near, func(a, b *Tried) int {
		return cmp.Or(cmp.Compare(a.inFlight(), b.inFlight()), cmp.Compare(a.Workers, b.Workers))
	})
}
