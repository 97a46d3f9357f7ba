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

	err error // of the last trial that failed
}

func (t *Tried) usable() bool { return len(t.Measured) > 0 }

// tune seeks the smallest setting within a few percent of the best rate in as few trials as it can.
type tune struct {
	Start       Setting
	Least, Most Setting // included
	Near        float64 // share of the best rate to give away for a smaller setting, 0 to 1
	// Measure returns the rate of a setting. An error means that the setting is impossible: it ends a doubling, not the
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

// run doubles workers and batch in turn, from the start, as long as that pays. Then it halves both as long as the rate
// stays near the best, and finally tries settings between the halves. Settings that decide are measured several times and
// compared by their medians, since a single measurement of a busy server is worth little. The result is valid after the
// context's end, too.
func (s *tune) run(ctx context.Context) (best, smallest *Tried, err error) {
	s.ctx = ctx
	at := s.Start
	s.try(at)
	for before := (Setting{}); before != at && !s.cut; {
		before = at
		for _, d := range dimensions() {
			at = s.grow(at, d)
		}
	}
	for before := (Setting{}); before != at && !s.cut; {
		before = at
		for _, d := range slices.Backward(dimensions()) { // batches first: smaller ones cost the server less than fewer connections
			at = s.shrink(at, d)
		}
	}
	for _, d := range dimensions() {
		at = s.bisect(at, d)
	}
	if best = s.best(); best == nil {
		var first error
		if len(s.tried) > 0 {
			first = s.tried[0].err
		}
		return nil, nil, errors.Join(errNothing, first, context.Cause(ctx))
	}
	return best, s.smallest(best), context.Cause(ctx)
}

// dimension is one of the two numbers of a setting.
type dimension struct {
	of   func(Setting) int64
	with func(Setting, int64) Setting
}

func dimensions() []dimension {
	return []dimension{
		{func(s Setting) int64 { return int64(s.Workers) }, func(s Setting, n int64) Setting { s.Workers = int(n); return s }},
		{func(s Setting) int64 { return s.BatchBytes }, func(s Setting, n int64) Setting { s.BatchBytes = n; return s }},
	}
}

// walk takes steps as long as they are good, and one beyond the first that is not: the next may be good again.
func (s *tune) walk(from Setting, d dimension, step func(int64) int64, good func(next, last Setting) bool) Setting {
	last, misses := from, 0
	for next := from; misses < 2 && !s.cut; {
		n := step(d.of(next))
		if n == d.of(next) {
			break
		}
		if next = d.with(next, n); good(next, last) {
			last, misses = next, 0
		} else if misses++; s.try(next) == nil {
			break // impossible, as the next would be
		}
	}
	return last
}

func (s *tune) grow(from Setting, d dimension) Setting {
	return s.walk(from, d, func(n int64) int64 { return min(2*n, d.of(s.Most)) },
		func(next, last Setting) bool { return s.atLeast(next, last, 1+s.Near) })
}

func (s *tune) shrink(from Setting, d dimension) Setting {
	return s.walk(from, d, func(n int64) int64 { return max(n/2, d.of(s.Least)) },
		func(next, _ Setting) bool { return s.enough(next) })
}

// bisect tries two settings between a setting and its half, which is not enough or below the least.
func (s *tune) bisect(from Setting, d dimension) Setting {
	low, high := d.of(from)/2, d.of(from)
	for range 2 {
		middle := (low + high) / 2
		if middle <= low || middle < d.of(s.Least) || s.cut {
			break
		}
		if s.enough(d.with(from, middle)) {
			high = middle
		} else {
			low = middle
		}
	}
	return d.with(from, high)
}

// try measures a setting unless that was done before. It returns nil if the setting cannot be measured.
func (s *tune) try(at Setting) *Tried {
	i := slices.IndexFunc(s.tried, func(t *Tried) bool { return t.Setting == at })
	if i < 0 {
		if s.ended() {
			return nil
		}
		i = len(s.tried)
		s.tried = append(s.tried, &Tried{Setting: at, Measured: []float64{}})
		s.measure(s.tried[i], 1)
	}
	if !s.tried[i].usable() {
		return nil
	}
	return s.tried[i]
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
		if !s.again(first) || !s.again(second) {
			break
		}
		t.Ratios = append(t.Ratios, a.last()/b.last())
	}
	return t
}

// again measures a setting once more.
func (s *tune) again(t *Tried) bool {
	if s.ctx.Err() != nil {
		return false
	}
	rate, err := s.Measure(t.Setting)
	if err != nil {
		return false
	}
	t.Measured = append(t.Measured, rate)
	t.Rate = results.Median(t.Measured)
	return true
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

// rival returns what a choice is measured against: the best, or for the best the fastest of the others; nil without one.
func (s *tune) rival(best, smallest *Tried) *Tried {
	if best != smallest {
		return best
	}
	var rival *Tried
	for _, t := range s.tried {
		if t != best && t.usable() && (rival == nil || t.Rate > rival.Rate) {
			rival = t
		}
	}
	return rival
}

// measure measures a setting until it has so many rates, and reports whether it has them.
func (s *tune) measure(t *Tried, times int) bool {
	for len(t.Measured) < times {
		if s.ended() {
			return false
		}
		rate, err := s.Measure(t.Setting)
		if err != nil {
			t.err = fmt.Errorf("%d workers, batches of %d bytes: %w", t.Workers, t.BatchBytes, err)
			s.ended() // the context's end may be why it failed
			return false
		}
		t.Measured = append(t.Measured, rate)
		t.Rate = results.Median(t.Measured)
	}
	return true
}

// doubtful is how near to the mark the ratio of two single rates says nothing.
const doubtful = 0.08

func (s *tune) enough(at Setting) bool {
	best := s.best()
	return best != nil && s.atLeast(at, best.Setting, 1-s.Near)
}

// atLeast reports whether a's rate is at least factor times b's. Doubtful rates are measured again.
func (s *tune) atLeast(a, b Setting, factor float64) bool {
	first, second := s.try(a), s.try(b)
	if first == nil || second == nil {
		return second == nil && first != nil
	}
	mark := factor * second.Rate
	if d := first.Rate - mark; max(d, -d) < doubtful*mark {
		s.measure(first, repeats)
		s.measure(second, repeats)
	}
	return first.Rate >= factor*second.Rate
}

// best returns the setting with the highest median, measured often enough not to be the luckiest; nil without any.
func (s *tune) best() *Tried {
	for {
		var top *Tried
		for _, t := range s.tried {
			if t.usable() && (top == nil || t.Rate > top.Rate) {
				top = t
			}
		}
		if top == nil || len(top.Measured) >= repeats || !s.measure(top, repeats) {
			return top
		}
	}
}

// smallest returns the setting near the best with the fewest bytes in flight, and of several the one with fewest workers.
func (s *tune) smallest(best *Tried) *Tried {
	near := slices.DeleteFunc(slices.Clone(s.tried), func(t *Tried) bool {
		few := len(t.Measured) < min(repeats, len(best.Measured)) // perhaps lucky
		return t != best && (few || t.Rate < (1-s.Near)*best.Rate)
	})
	return slices.MinFunc(near, func(a, b *Tried) int {
		return cmp.Or(cmp.Compare(a.inFlight(), b.inFlight()), cmp.Compare(a.Workers, b.Workers))
	})
}
