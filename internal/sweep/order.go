package sweep

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/terapush/terapush/internal/results"
)

// step is one push of a sweep.
type step struct {
	one    Case
	repeat int
	warmUp bool
}

func (s step) push() results.Push {
	return results.Push{Part: s.one.Part, Cell: s.one.Number, Repeat: s.repeat, WarmUp: s.warmUp}
}

// order lists all pushes of a sweep: part by part, warm-ups before the part's first case, then all repeats, each shuffled.
// Where the part has the knee's axis, its rows go up side by side: all repeats of one value of all rows come before the
// next value, so that a row is ended by medians and not by the luck of one push, and a drift of the server falls on all
// rows alike. It is a function of its arguments: a sweep that is gone on with takes the order it had, and one repeat more
// changes nothing about the order of those before.
func order(p Plan, cases []Case, digest string) []step {
	var all []step
	for part := range p.Parts {
		own := slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return c.Part != part })
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
					dice := seeded(digest, p.Parts[part].Name, repeat, n)
					dice.Shuffle(len(group), func(i, j int) { group[i], group[j] = group[j], group[i] })
				}
				for _, c := range group {
					all = append(all, step{one: c, repeat: repeat})
				}
			}
		}
	}
	return all
}

func seeded(digest, part string, repeat, group int) *rand.Rand {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d", digest, part, repeat, group))
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])))
}

// groups are a part's cases as they are done: what is in one has all its repeats before the next begins. A part whose rows
// do not end has one. In order, every case is one: its repeats follow each other, and the cases stay as they stand.
func groups(p Plan, cases []Case) [][]Case {
	values := along(p, cases)
	if len(values) == 0 {
		return [][]Case{cases}
	}
	var all [][]Case
	if !p.Interleaved {
		for _, c := range cases {
			all = append(all, []Case{c})
		}
		return all
	}
	for _, v := range values {
		all = append(all, slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return value(c, p.Knee) != v }))
	}
	return all
}

// along lists the values of the knee's axis in the cases' part, none where the part has no such axis.
func along(p Plan, cases []Case) []string {
	for _, a := range p.Parts[cases[0].Part].Axes {
		if a.Name == p.Knee {
			return a.Values
		}
	}
	return nil
}

// value is what the axis is in the case, "" where there is no such axis.
func value(c Case, axis string) string { return results.Settings(c.Settings).Value(axis) }

// flatStop is how many values in succession that are no better end a row.
const flatStop = 2

// place names a case by part and number.
type place struct{ part, number int }

func placeOf(c Case) place { return place{c.Part, c.Number} }

// row is the cases that differ along the knee's axis only, in the order of its values.
type row struct {
	cases []place
	rates map[place][]float64 // of the pushes so far
	ended bool                // more of the axis has stopped paying
}

// rowsOf puts the cases together whose rows can end.
func rowsOf(p Plan, cases []Case) map[place]*row {
	byName, all := map[string]*row{}, map[place]*row{}
	for _, c := range cases {
		if value(c, p.Knee) == "" {
			continue
		}
		name := fmt.Sprintf("%d %q", c.Part, results.Settings(c.Settings).Without(p.Knee))
		if byName[name] == nil {
			byName[name] = &row{rates: map[place][]float64{}}
		}
		all[placeOf(c)] = byName[name]
		byName[name].cases = append(byName[name].cases, placeOf(c))
	}
	return all
}

// add takes the rate of a push, and judges whether the row has ended. A value is judged by the median of its pushes, and
// one without any says nothing. It is better where the best before it is not near it, as the knee of a table is; the best
// is the last that was better, so that small steps that come to much are not taken for nothing.
func (r *row) add(at place, rate float64) {
	r.rates[at] = append(r.rates[at], rate)
	best, flat := 0.0, 0
	r.ended = false
	for _, at := range r.cases {
		switch rate := median(r.rates[at]); {
		case rate <= 0:
		case best < (1-results.Near)*rate:
			best, flat = rate, 0
		default:
			flat++
		}
		r.ended = r.ended || flat >= flatStop
	}
}

// median returns that of the values, 0 without any.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]/2 + sorted[len(sorted)/2]/2
}

// pastKnee says why a case was skipped.
func pastKnee(axis string) string {
	return fmt.Sprintf("past the knee: two values of %s in succession were no better, %g %% of each had been reached before",
		axis, 100*(1-results.Near))
}
