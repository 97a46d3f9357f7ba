package dataset

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/terapush/terapush/pkg/rows"
)

// hundredPercent are shares, in percent with 9 digits after the point, that make a whole.
const hundredPercent = 100_000_000_000

// commonTypes are those of columns that may have common values beside their generator.
var commonTypes = slices.Concat(numbers, letters, []rows.Type{rows.Bytes})

// common gives some values a share of their own; the generator has the rest. A NULL is no value, and has no part in them.
func (p *columnPlanner) common(plan *columnPlan) {
	at := []string{"common"}
	if plan.drawn == nil {
		p.wrong(at, "common is for columns that are drawn by themselves")
		return
	}
	if !p.need("common", commonTypes...) {
		return
	}

	texts, shares, sum, ok := p.shares(p.c.Common, "common")
	switch {
	case !ok:
		return
	case len(shares) == 0:
		p.wrong(at, "common: each value needs a share, as {a: 20%%, b: 5%%}")
		return
	case sum < 1 || sum >= hundredPercent:
		p.wrong(at, "common: the shares add up to %s%%: more than 0%% and less than 100%%; without a rest, write values",
			trimmed(formatDecimal(sum, 9)))
		return
	}
	often := p.chosen(texts, "common", func() choice { return newChoice(shares) })
	if often.drawn == nil {
		return
	}

	p.entries += int64(len(shares))
	seldom := plan.drawn
	plan.least, plan.most = min(plan.least, often.least), max(plan.most, often.most)
	plan.column.MaxBytes = max(plan.column.MaxBytes, often.column.MaxBytes)
	plan.column.Plain = plan.column.Plain && often.column.Plain
	plan.column.ASCII = plan.column.ASCII && often.column.ASCII
	var share chance
	share.below, _ = bits.Div64(uint64(sum), 0, hundredPercent)
	t := p.t.Type
	plan.drawn = func(start uint64) generator {
		return &mixed{often: often.drawn(start), seldom: seldom(start), share: share, scratch: sync.Pool{New: func() any {
			return &[2]rows.Vector{{Type: t}, {Type: t}}
		}}}
	}
}

// mixed has values of one generator in some rows, and of another in all others.
type mixed struct {
	often, seldom generator
	share         chance // of often
	scratch       sync.Pool
}

func (g *mixed) fill(v *rows.Vector, start uint64, first int64, n int) {
	both := g.scratch.Get().(*[2]rows.Vector)
	defer g.scratch.Put(both)

	stream := streamOf(start, "common")
	often, seldom := &both[0], &both[1]
	if v.Type.Variable() {
		for k := range both {
			both[k].Data, both[k].Ends = both[k].Data[:0], both[k].Ends[:0]
		}
		g.often.fill(often, streamOf(start, "common value"), first, n)
		g.seldom.fill(seldom, start, first, n)
		v.Data, v.Ends = v.Data[:0], v.Ends[:0]
		for i := range n {
			one := seldom
			if g.share.of(stream, first+int64(i)) {
				one = often
			}
			v.Data = append(v.Data, one.Value(i)...)
			v.Ends = append(v.Ends, uint32(len(v.Data)))
		}
		return
	}

	often.Ints = slices.Grow(often.Ints[:0], n)[:n]
	g.often.fill(often, streamOf(start, "common value"), first, n)
	g.seldom.fill(v, start, first, n)
	for i := range n {
		if g.share.of(stream, first+int64(i)) {
			v.Ints[i] = often.Ints[i]
		}
	}
}
