package dataset

import (
	"math/big"
	"math/bits"
)

// SpecExponential draws numbers and times that are the rarer the larger they are, as pauses and ages often are: of the values
// behind any value, as much as of all is within any distance of it.
type SpecExponential struct {
	Mean string `json:"mean"` // of the values, before max cuts them off
	SpecRange
}

// exponentialReach is how many times the distance of the mean from min the values reach without a max: of 10^13 values one is
// behind that.
const exponentialReach = 32

func (e *SpecExponential) plan(p *columnPlanner) (plan columnPlan) {
	if e.Mean == "" {
		return p.refuse([]string{"exponential"}, "exponential needs mean, as in {mean: 86400, max: 31536000}")
	}
	if e.Min == "" && !p.t.isTime() {
		e.Min = p.t.format(0)
	}
	mean := p.fine(&e.Mean, false, "exponential", "mean")
	if e.Max == "" && e.Min != "" {
		e.Max = p.t.format(p.exponentialEnd(p.number(&e.Min, 0, "exponential", "min"), mean))
	}
	from, step, count := p.spread(&e.SpecRange, "exponential")
	if p.hasProblem() {
		return plan
	}

	distance := new(big.Int).Sub(mean, scaled(from))
	to, _ := p.t.parse(e.Max) // spread has read it
	switch {
	case distance.Sign() <= 0 || mean.Cmp(scaled(to)) > 0:
		return p.refuse([]string{"exponential", "mean"}, "exponential: mean %s is not between min %s and max %s", e.Mean, e.Min, e.Max)
	case count == 0 || count > 1<<62:
		return p.refuse([]string{"exponential"}, "exponential: more than 2^62 values")
	}
	p.entries += int64(min(count, bellParts))
	plan.span(from, step, count)
	plan.drawn = func(uint64) generator {
		parts, logs := exponentialParts(step, count, distance)
		return newPartNumber(from, step, parts, logs, nil)
	}
	return plan
}

// exponentialEnd returns the largest value where none is given, in whole units within the type. mean is in millionths.
func (p *columnPlanner) exponentialEnd(from int64, mean *big.Int) int64 {
	end := new(big.Int).Sub(mean, scaled(from))
	end.Mul(end, big.NewInt(exponentialReach))
	end.Add(end, scaled(from))
	end.Div(end, big.NewInt(million*p.t.unit()))
	end.Mul(end, big.NewInt(p.t.unit()))
	_, most := p.t.bounds()
	if end.Cmp(big.NewInt(most)) > 0 {
		return most
	}
	return end.Int64()
}

// exponentialParts divides the values k × step, k < n, of which those are left out that are rarer than 2^−47 of the most
// frequent. mean is in millionths. Half a step more makes up for values that are whole steps: those between two steps would
// be counted to the lower one.
func exponentialParts(step, n uint64, mean *big.Int) (parts []part, logs []int64) {
	middle := new(big.Int).Lsh(mean, 1)
	middle.Add(middle, new(big.Int).Mul(new(big.Int).SetUint64(step), big.NewInt(million))) // twice the mean and a step

	const reach = exponentialReach + 1
	farthest := new(big.Int).Mul(middle, big.NewInt(reach))
	farthest.Quo(farthest, new(big.Int).Mul(new(big.Int).SetUint64(step), big.NewInt(2*million)))
	if farthest.IsUint64() {
		n = min(n, farthest.Uint64()+1)
	}

	count, first := min(n, bellParts), uint64(0)
	for i := range count {
		high, low := bits.Mul64(i+1, n)
		next, _ := bits.Div64(high, low, count)
		size := next - first

		d := new(big.Int).SetUint64(2*first + size - 1) // twice the distance of the part's middle from the first value
		d.Mul(d, new(big.Int).SetUint64(step))
		d.Mul(d, big.NewInt(2*million))
		d.Mul(d, big.NewInt(halfLog))
		d.Quo(d, middle)
		parts = append(parts, part{first, size})
		logs = append(logs, log2(size)-d.Int64())
		first = next
	}
	return parts, logs
}
