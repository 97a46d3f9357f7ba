package dataset

import (
	"slices"
	"strconv"

	"github.com/terapush/terapush/pkg/rows"
)

// SpecHistogram lists bounds between which values are equally frequent, as databases keep them: of b0, b1 … bn as many are
// from b0 to before b1 as from b1 to before b2, and the last bound is a value, too. A bound that is there twice is a value as
// frequent as all between two others. Those of a text are lengths in bytes, of prose.
type SpecHistogram []string

func (h *SpecHistogram) plan(p *columnPlanner) (plan columnPlan) {
	all := *h
	if len(all) < 2 || len(all) > maxValues {
		return p.refuse([]string{"histogram"},
			"histogram: %d bounds: 2 to %d belong here, as in [0, 10, 25, 100]", len(all), maxValues)
	}
	if p.t.Variable() {
		return h.lengths(p)
	}

	bounds := make([]int64, len(all))
	for i := range all {
		v, err := p.t.parse(all[i])
		if err != nil {
			return p.refuse([]string{"histogram"}, "histogram: %v", err)
		}
		bounds[i], all[i] = v, p.t.format(v)
	}
	unit := uint64(p.t.unit())
	parts, ok := h.buckets(p, bounds, unit)
	if !ok {
		return plan
	}
	least := bounds[0]
	plan.least, plan.most = least, bounds[len(bounds)-1]
	plan.drawn = func(uint64) generator {
		return &partNumber{least, unit, newChoice(slices.Repeat([]uint64{one}, len(parts))), parts, nil}
	}
	return plan
}

// buckets returns the parts between bounds, in units of the distance from the first one.
func (h *SpecHistogram) buckets(p *columnPlanner, bounds []int64, unit uint64) (parts []part, ok bool) {
	for i := range len(bounds) - 1 {
		from, to := bounds[i], bounds[i+1]
		if p.t.Type == rows.Uint64 && to < 0 { // it is beyond 63 bits
			p.wrong([]string{"histogram"}, "histogram: %s: bounds go up to 9223372036854775807", (*h)[i+1])
			return nil, false
		}
		if to < from {
			p.wrong([]string{"histogram"}, "histogram: %s before %s: no bound is less than the one before it", (*h)[i], (*h)[i+1])
			return nil, false
		}
		one := part{(uint64(from) - uint64(bounds[0])) / unit, max((uint64(to)-uint64(from))/unit, 1)}
		if i == len(bounds)-2 && to > from {
			one.size++ // 2^64 only of all values that there are, between two bounds
		}
		parts = append(parts, one)
	}
	if parts[len(parts)-1].size == 0 {
		p.wrong([]string{"histogram"}, "histogram: 2^64 values between two bounds: write uniform")
		return nil, false
	}
	p.entries += int64(len(parts))
	return parts, true
}

// lengths plans a text whose lengths are in the histogram.
func (h *SpecHistogram) lengths(p *columnPlanner) (plan columnPlan) {
	bounds := make([]int64, len(*h))
	for i, text := range *h {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > MaxPayloadBytes {
			return p.refuse([]string{"histogram"},
				"histogram: %s is no length of a text: 1 to %d bytes", quoted(text), MaxPayloadBytes)
		}
		bounds[i], (*h)[i] = int64(n), strconv.Itoa(n)
	}
	parts, ok := h.buckets(p, bounds, 1)
	if !ok {
		return plan
	}

	return p.pieces(parts, int(bounds[0]), int(bounds[len(bounds)-1]))
}
