package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Setting is what is sought.
type Setting struct {
	Workers    int   // ≥ 1
	BatchBytes int64 // encoded, ≥ 1
}

// inFlight is what a setting costs: bytes that client and server hold at a time.
func (s Setting) inFlight() int64 { return int64(s.Workers) * s.BatchBytes }

// searchOptions bound a search.
type searchOptions struct {
	Start       Setting
	Least, Most Setting // of both, included; Start lies between them
	Near        float64 // share of the best rate that is given away for a smaller setting, 0 … 1: 0.05
	Repeats     int     // measurements of a setting that decides, ≥ 1
	Trials      int     // measurements at most, ≥ 1
}

// measured is a setting that was measured.
type measured struct {
	Setting
	Rates []float64 // in the order measured, in whatever unit measure has; none when all failed
	Err   error     // of the last measurement that failed
}

// Rate returns the median of the rates; 0 without any.
func (t measured) Rate() float64 { return median(t.Rates) }

// searchResult is what a search found.
type searchResult struct {
	Best     measured   // of the highest rate
	Smallest measured   // within Near of the best, with the fewest bytes in flight that the search came to
	Trials   []measured // all, in the order in which they were first measured
	// Complete says that the search came to its end; else its trials or its time were used up, and there may be better.
	Complete bool
}

// errNothing says that no setting could be measured at all; the error of the first trial is joined to it.
var errNothing = errors.New("no setting could be measured")

// find searches the smallest setting within a few percent of the best rate, by measuring as few settings as it can. It
// doubles one of the two from where it starts, as long as that pays, then the other, until neither does. Then it halves
// both for as long as the rate stays near the best, and at last looks between the halves. Settings that decide are measured
// several times and judged by their median: a single measurement of a busy server is worth little.
//
// measure returns the rate of one setting, and knows the database, which find does not. When it fails, the setting is none:
// a server that refuses so many connections ends a doubling and not the search. A context that ends makes the result what
// is known by then.
func find(ctx context.Context, o searchOptions, measure func(context.Context, Setting) (float64, error)) (searchResult, error) {
	s := &search{ctx: ctx, options: o, measure: measure, left: o.Trials, trials: map[Setting]*measured{}}
	s.run()
	if len(s.order) == 0 || s.best() == nil {
		var why error
		if len(s.order) > 0 {
			why = s.order[0].Err
		}
		return searchResult{}, errors.Join(errNothing, why, context.Cause(ctx))
	}
	r := searchResult{Best: *s.best(), Smallest: *s.smallest()}
	r.Complete = !s.cut // best and smallest may have wanted to measure, too
	for _, t := range s.order {
		r.Trials = append(r.Trials, *t)
	}
	return r, context.Cause(ctx)
}

type search struct {
	ctx     context.Context //nolint:containedctx // of one Find, which it does not outlive
	options searchOptions
	measure func(context.Context, Setting) (float64, error)
	left    int  // measurements
	cut     bool // one more was wanted, and trials or time were used up
	trials  map[Setting]*measured
	order   []*measured
}

// dimension is one of the two things that are sought.
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

func (s *search) run() {
	at := s.options.Start
	s.try(at)
	for before := (Setting{}); before != at && !s.cut; {
		before = at
		for _, a := range dimensions() {
			at = s.climb(at, a)
		}
	}
	for before := (Setting{}); before != at && !s.cut; {
		before = at
		for _, a := range slices.Backward(dimensions()) { // batches first: smaller ones cost the server less than fewer connections do
			at = s.shrink(at, a)
		}
	}
	for _, a := range dimensions() {
		at = s.narrow(at, a)
	}
}

// climb doubles for as long as it pays, and looks one step beyond the first that does not: the next may pay again.
func (s *search) climb(from Setting, a dimension) Setting {
	top, misses := from, 0
	for next := from; misses < 2 && !s.cut; {
		n := min(2*a.of(next), a.of(s.options.Most))
		if n == a.of(next) {
			break
		}
		next = a.with(next, n)
		if s.try(next) == nil {
			break // refused: more of it will be as well
		}
		if s.pays(next, top) {
			top, misses = next, 0
		} else {
			misses++
		}
	}
	return top
}

// shrink halves for as long as the rate stays near the best, and looks one step beyond the first that does not.
func (s *search) shrink(from Setting, a dimension) Setting {
	low, misses := from, 0
	for next := from; misses < 2 && !s.cut; {
		n := max(a.of(next)/2, a.of(s.options.Least))
		if n == a.of(next) {
			break
		}
		next = a.with(next, n)
		if s.enough(next) {
			low, misses = next, 0
		} else {
			misses++
		}
	}
	return low
}

// narrow looks between a setting and its half twice. Half of it is not enough, or is less than the least, which ends the
// halving where it stands: then what lies between is tried as far as it is allowed.
func (s *search) narrow(from Setting, a dimension) Setting {
	low, high := a.of(from)/2, a.of(from)
	for range 2 {
		middle := (low + high) / 2
		if middle <= low || middle >= high || middle < a.of(s.options.Least) || s.cut {
			break
		}
		if s.enough(a.with(from, middle)) {
			high = middle
		} else {
			low = middle
		}
	}
	return a.with(from, high)
}

// try measures a setting unless that has been done; nil if it cannot be measured.
func (s *search) try(at Setting) *measured {
	if t, known := s.trials[at]; known {
		return usable(t)
	}
	if !s.may() {
		return nil
	}
	t := &measured{Setting: at}
	s.trials[at] = t
	s.order = append(s.order, t)
	s.again(t)
	return usable(t)
}

func usable(t *measured) *measured {
	if len(t.Rates) == 0 {
		return nil
	}
	return t
}

// may reports whether there can be one more measurement, which is wanted.
func (s *search) may() bool {
	s.cut = s.cut || s.left == 0 || s.ctx.Err() != nil
	return !s.cut
}

// again measures a trial once, and reports whether that gave a rate.
func (s *search) again(t *measured) bool {
	if !s.may() {
		return false
	}
	s.left--
	rate, err := s.measure(s.ctx, t.Setting)
	if err != nil {
		t.Err = fmt.Errorf("%d workers, batches of %d bytes: %w", t.Workers, t.BatchBytes, err)
		s.cut = s.cut || s.ctx.Err() != nil // its end made it fail
		return false
	}
	t.Rates = append(t.Rates, rate)
	return true
}

// settle measures a trial as often as one that decides has to be, and reports whether that was possible.
func (s *search) settle(t *measured) bool {
	for len(t.Rates) < s.options.Repeats {
		if !s.again(t) {
			return false
		}
	}
	return true
}

// doubtful is how far a ratio of two single rates may lie from the mark without anybody knowing on which side it is.
const doubtful = 0.08

// pays reports whether a setting is better than another by more than would be given away again.
func (s *search) pays(a, than Setting) bool { return s.atLeast(a, than, 1+s.options.Near) }

// enough reports whether a setting is near the best.
func (s *search) enough(at Setting) bool {
	best := s.best()
	return best != nil && s.atLeast(at, best.Setting, 1-s.options.Near)
}

// atLeast reports whether a's rate is that of b times a factor or more. What is doubtful is measured again.
func (s *search) atLeast(a, b Setting, factor float64) bool {
	first, second := s.try(a), s.try(b)
	if first == nil || second == nil {
		return second == nil && first != nil
	}
	mark := factor * second.Rate()
	if d := first.Rate() - mark; max(d, -d) < doubtful*mark {
		s.settle(first)
		s.settle(second)
	}
	return first.Rate() >= factor*second.Rate()
}

// best is the trial with the highest median, measured often enough that it is not the luckiest one; nil without any.
func (s *search) best() *measured {
	for {
		var top *measured
		for _, t := range s.order {
			if usable(t) != nil && (top == nil || t.Rate() > top.Rate()) {
				top = t
			}
		}
		if top == nil || len(top.Rates) >= s.options.Repeats || !s.settle(top) {
			return top
		}
	}
}

// smallest is the trial near the best that has the fewest bytes in flight, and of those with the fewest workers.
func (s *search) smallest() *measured {
	best := s.best()
	near := slices.DeleteFunc(slices.Clone(s.order), func(t *measured) bool {
		few := len(t.Rates) < min(s.options.Repeats, len(best.Rates)) // a lucky one that nobody looked at twice
		return t != best && (few || t.Rate() < (1-s.options.Near)*best.Rate())
	})
	return slices.MinFunc(near, func(a, b *measured) int {
		return cmp.Or(cmp.Compare(a.inFlight(), b.inFlight()), cmp.Compare(a.Workers, b.Workers))
	})
}
