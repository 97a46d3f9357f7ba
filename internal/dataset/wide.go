package dataset

import (
	"math/big"
	"math/bits"

	"github.com/terapush/terapush/pkg/rows"
)

// A wide decimal is drawn from a list, or as one of equally frequent numbers: other distributions are tables of 64-bit
// numbers.

// number128 is a number of 128 bits, whose sums wrap around.
type number128 struct{ high, low uint64 }

func number128Of(n *big.Int) number128 {
	high, low := rows.ReadWide(rows.FromBig(n))
	return number128{uint64(high), low}
}

func (a number128) plus(b number128) (sum number128) {
	var carry uint64
	sum.low, carry = bits.Add64(a.low, b.low, 0)
	sum.high, _ = bits.Add64(a.high, b.high, carry)
	return sum
}

// times is the lower half of a product.
func (a number128) times(b number128) (product number128) {
	product.high, product.low = bits.Mul64(a.low, b.low)
	product.high += a.high*b.low + a.low*b.high
	return product
}

// part is the upper half of a product: a number below b, of a that is any.
func (a number128) part(b number128) number128 {
	lowest, _ := bits.Mul64(a.low, b.low)
	first := number128{}
	first.high, first.low = bits.Mul64(a.high, b.low)
	second := number128{}
	second.high, second.low = bits.Mul64(a.low, b.high)
	product := number128{}
	product.high, product.low = bits.Mul64(a.high, b.high)

	middle, carry := bits.Add64(first.low, second.low, 0)
	_, low := bits.Add64(middle, lowest, 0)
	return product.plus(number128{low: first.high}).plus(number128{low: second.high}).plus(number128{low: carry + low})
}

// uniformWide is least + k × step with any k below count. A row takes two words.
type uniformWide struct{ least, step, count number128 }

func (g *uniformWide) fill(v *rows.Vector, start uint64, first int64, n int) {
	state := at(start, first, 2)
	for i := range n {
		state += gamma
		word := number128{high: mix(state)}
		state += gamma
		word.low = mix(state)
		value := word.part(g.count).times(g.step).plus(g.least)
		rows.AppendWide(v.UUID(i)[:0], int64(value.high), value.low)
	}
}

// chosenWide is one of a list, as chosenNumber is.
type chosenWide struct {
	list   []string
	choice choice
}

func (g *chosenWide) fill(v *rows.Vector, start uint64, first int64, n int) {
	state := at(start, first, 1)
	for i := range n {
		state += gamma
		k, _ := bits.Mul64(mix(state), uint64(len(g.list)))
		if g.choice != nil {
			k = uint64(g.choice.pick(mix(state)))
		}
		copy(v.UUID(i), g.list[k])
	}
}

// wide reads a number with so many digits, and writes it in its one notation. "" is replaced.
func (p *columnPlanner) wide(text *string, missing string, at ...string) *big.Int {
	if *text == "" {
		*text = missing
	}
	_, value, err := p.t.value(*text)
	if err != nil {
		p.wrong(at, "%v", err)
		return new(big.Int)
	}
	*text = p.t.written(*text, 0, value)
	return rows.BigOf(value)
}

// planWide is plan for a wide decimal.
func (r *SpecRange) planWide(p *columnPlanner) (plan columnPlan) {
	if r.Min == "" || r.Max == "" {
		return p.refuse([]string{"uniform"}, "uniform needs min and max")
	}

	least, most := p.wide(&r.Min, "", "uniform", "min"), p.wide(&r.Max, "", "uniform", "max")
	unit := rows.Column{Type: rows.Wide, Scale: p.t.scale}.TextOf(rows.FromBig(big.NewInt(1)))
	step := p.wide(&r.Step, unit, "uniform", "step")
	if p.hasProblem() {
		return plan
	}
	if step.Sign() < 1 {
		return p.refuse([]string{"uniform", "step"}, "uniform: step %s: a step is more than 0", r.Step)
	}
	if most.Cmp(least) < 0 {
		return p.refuse([]string{"uniform", "max"}, "uniform: max %s is less than min %s", r.Max, r.Min)
	}

	count := new(big.Int).Sub(most, least)
	count.Add(count.Quo(count, step), big.NewInt(1))
	g := &uniformWide{number128Of(least), number128Of(step), number128Of(count)}
	plan.drawn = func(uint64) generator { return g }
	return plan
}
