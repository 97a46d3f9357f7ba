package sweep

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/terapush/terapush/internal/results"
)

type step struct {
	one    Case
	repeat int
	warmUp bool
}

func (s step) push() results.Push {
	return results.Push{Part: s.one.Part, Cell: s.one.Number, Repeat: s.repeat, WarmUp: s.warmUp}
}

// order lists all pushes of a sweep: part by part, warm-ups before the part's first case, then all repeats, each
// shuffled. In a part with the knee's axis all repeats of one value come before the next value: a row is ended by
// medians and not by the luck of one push, and a drift of the server falls on all rows alike. The order depends on the
// arguments only, and one repeat more does not change that of those before, so that a sweep can be continued.
func order(p Plan, cases []Case, digest string) []step {
	var all []step
	for part := range p.Parts {
		own := casesOf(cases, part)
		if len(own) == 0 {
			continue
		}
		for i := range p.WarmUp {
			all = append(all, step{one: own[0], repeat: i, warmUp: true})
		}
		for n, group := range groups(p, own) {
			for repeat := range p.Repeats {
				if p.Interleaved {
					group = slices.Clone(group)
					random := seeded(digest, p.Parts[part].Name, repeat, n)
					random.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
				}
				for _, c := range group {
					all = append(all, step{one: c, repeat: repeat})
				}
			}
		}
	}
	return all
}

func casesOf(cases []Case, part int) []Case {
	return slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return c.Part != part })
}

func seeded(digest, part string, repeat, group int) *rand.Rand {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d", digest, part, repeat, group))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])))
}

// groups splits a part's cases: a group has all its repeats before the next begins. A part whose rows do not end is one
// group. Otherwise a group is all cases with one value of the knee's axis, or one case if the cases are kept in order.
func groups(p Plan, cases []Case) (all [][]Case) {
	axes := p.Parts[cases[0].Part].Axes
	i := slices.IndexFunc(axes, func(a results.Axis) bool { return a.Name == p.Knee })
	switch {
	case i < 0:
		return [][]Case{cases}
	case !p.Interleaved:
		return slices.Collect(slices.Chunk(cases, 1))
	}
	for _, value := range axes[i].Values {
		all = append(all, slices.DeleteFunc(slices.Clone(cases), func(c Case) bool {
			return c.Settings.Value(p.Knee) != value
		}))
	}
	return all
}

// flatStop is how many values in succession that are no better end a row.
const flatStop = 2

// place names a case by part and number.
type place struct{ part, number int }

func placeOf(c Case) place { return place{c.Part, c.Number} }

// state is what is known of a case by its pushes.
type state struct {
	took   pace
	rates  []float64 // without warm-ups
	failed int
	known  bool // to the precision, or most of its pushes fail: it has no more
	row    *row // nil if it cannot end
}

// begun reports whether the case was pushed. Then it gets all its repeats, even if its row turns out to have ended.
func (s *state) begun() bool { return len(s.rates)+s.failed > 0 }

// add takes a push that ended. The precision is that of the median, 0 if all repeats are made.
func (s *state) add(e results.Entry, precision float64) {
	s.took.add(e)
	if e.WarmUp {
		return
	}
	if e.Status == results.Failed {
		s.failed++
		const byChance = 1
		s.known = precision > 0 && s.failed > len(s.rates)+byChance
		return
	}
	if e.Report == nil {
		return
	}
	s.rates = append(s.rates, e.Report.Result.RowsPerSecond)
	s.known = precision > 0 && results.SampleOf(s.rates).Precision() <= precision
	if s.row != nil {
		s.row.judge()
	}
}

// row is the cases that differ along the knee's axis only, in the order of its values.
type row struct {
	cases []*state
	ended bool // larger values have stopped paying
}

// statesOf returns the state of every case, with its row if that can end.
func statesOf(p Plan, cases []Case) map[place]*state {
	byName, all := map[string]*row{}, map[place]*state{}
	for _, c := range cases {
		one := &state{}
		all[placeOf(c)] = one
		if !p.Parts[c.Part].hasAxis(p.Knee) {
			continue
		}
		name := fmt.Sprintf("%d %q", c.Part, c.Settings.Without(p.Knee))
		if byName[name] == nil {
			byName[name] = &row{}
		}
		one.row = byName[name]
		one.row.cases = append(one.row.cases, one)
	}
	return all
}

// judge decides whether the row has ended. A value without pushes does not count. Others have the median of theirs,
// which is better unless it is near the best before it, as for the knee of a table. The best is the last that was
// better, so that many small steps add up.
func (r *row) judge() {
	best, flat := 0.0, 0
	r.ended = false
	for _, one := range r.cases {
		switch rate := results.Median(one.rates); {
		case rate <= 0:
		case best < (1-results.Near)*rate:
			best, flat = rate, 0
		default:
			flat++
		}
		r.ended = r.ended || flat >= flatStop
	}
}
