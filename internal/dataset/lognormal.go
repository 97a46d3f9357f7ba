package dataset

import (
	"math/big"
	"math/bits"
)

// SpecLognormal draws numbers whose logarithms are normally distributed, as amounts and sizes often are: half of them are
// below the median, and two thirds within the median divided and multiplied by e^sigma.
type SpecLognormal struct {
	Median string `json:"median"`
	Sigma  string `json:"sigma"` // more than 0, at most 20, with up to 6 digits after the point
	SpecRange
}

func (l *SpecLognormal) plan(p *columnPlanner) (plan columnPlan) {
	of := p.spread(&l.SpecRange, "lognormal")
	sigma, err := parseDecimal(l.Sigma, 6, 8)
	switch {
	case l.Median == "" || l.Sigma == "":
		p.wrong([]string{"lognormal"}, "lognormal needs median and sigma, as in {median: 48, sigma: 0.9, min: 1, max: 20000}")
	case err != nil:
		p.wrong([]string{"lognormal", "sigma"}, "lognormal: sigma: %v", err)
	case sigma < 1 || sigma > 20*million:
		p.wrong([]string{"lognormal", "sigma"}, "lognormal: sigma is more than 0 and at most 20")
	}
	if p.hasProblem() {
		return plan
	}
	median := p.fine(&l.Median, false, "lognormal", "median")
	if p.hasProblem() {
		return plan
	}

	l.Sigma = trimmed(formatDecimal(sigma, 6))
	if of.least < 1 {
		return p.refuse([]string{"lognormal", "min"}, "lognormal: min is more than 0, not %s", l.Min)
	}
	to, _ := p.t.parse(l.Max) // spread has read it
	if median.Cmp(scaled(of.least)) < 0 || median.Cmp(scaled(to)) > 0 {
		return p.refuse([]string{"lognormal", "median"},
			"lognormal: median %s is not between min %s and max %s", l.Median, l.Min, l.Max)
	}
	return p.parted("lognormal", of, maxParts, func(uint64) generator {
		parts, logs := lognormalParts(uint64(of.least), of.step, of.count, median, sigma)
		return newPartNumber(of, parts, logs, nil)
	})
}

// logOctave is how many parts there are for each doubling of the value: those of a part differ by 0.4 %.
const logOctave = 1 << 8

// lnTwo is the natural logarithm of 2, with fractionBits bits after the point.
const lnTwo = 195_103_586_505_167

// lognormalParts divides the values from + k × step, k < n, all above 0. median is in millionths, as sigma is. A part has the
// density of its middle: with x the logarithm to base 2 of a value and m that of the median, 2^−(x + (x − m)² × ln 2 / 2σ²).
func lognormalParts(from, step, n uint64, median *big.Int, sigma int64) (parts []part, logs []int64) {
	m := bigLog2(median) - log2(million)
	twice := new(big.Int).Mul(big.NewInt(sigma), big.NewInt(2*sigma)) // 2σ² in millionths squared
	twice.Lsh(twice, 2*fractionBits)
	farthest := big.NewInt(1 << 60)

	var size uint64
	for first := uint64(0); first < n; first += size {
		value := from + first*step
		width := uint64(1) << (bits.Len64(value) - 1) / logOctave
		size = min(max(width/step, 1), n-first)

		x := log2(2*value+(size-1)*step) - 1<<fractionBits // of the middle
		d := big.NewInt(x - m)
		d.Mul(d, d)
		d.Mul(d, big.NewInt(lnTwo))
		d.Mul(d, big.NewInt(million*million))
		d.Quo(d, twice)
		if d.Cmp(farthest) > 0 {
			d = farthest
		}
		parts = append(parts, part{first, size})
		logs = append(logs, log2(size)-x-d.Int64())
	}
	return parts, logs
}

// bigLog2 is log2 of a number of any size.
func bigLog2(x *big.Int) int64 {
	beyond := max(x.BitLen()-64, 0)
	return log2(new(big.Int).Rsh(x, uint(beyond)).Uint64()) + int64(beyond)<<fractionBits
}
