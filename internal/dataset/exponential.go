package dataset

import "math/big"

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
		end := scaled(p.number(&e.Min, 0, "exponential", "min"))
		reach := new(big.Int).Sub(mean, end)
		e.Max = p.t.end(end.Add(end, reach.Mul(reach, big.NewInt(exponentialReach))))
	}
	of := p.spread(&e.SpecRange, "exponential")
	if p.hasProblem() {
		return plan
	}

	distance := new(big.Int).Sub(mean, scaled(of.least))
	to, _ := p.t.parse(e.Max) // spread has read it
	if distance.Sign() <= 0 || mean.Cmp(scaled(to)) > 0 {
		return p.refuse([]string{"exponential", "mean"},
			"exponential: mean %s is not between min %s and max %s", e.Mean, e.Min, e.Max)
	}
	return p.parted("exponential", of, bellParts, func(uint64) generator {
		parts, logs := exponentialParts(of.step, of.count, distance)
		return newPartNumber(of, parts, logs, nil)
	})
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

	return equalParts(n, func(twice uint64) *big.Int {
		d := new(big.Int).SetUint64(twice)
		d.Mul(d, new(big.Int).SetUint64(step))
		d.Mul(d, big.NewInt(2*million))
		d.Mul(d, big.NewInt(halfLog))
		return d.Quo(d, middle)
	})
}
