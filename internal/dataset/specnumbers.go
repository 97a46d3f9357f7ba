package dataset

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// spread reads a range of values. Of one with a problem it has the value 0.
func (p *columnPlanner) spread(r *SpecRange, generator string) uniformNumber {
	none := uniformNumber{0, 1, 1}
	if r.Min == "" || r.Max == "" {
		p.wrong([]string{generator}, "%s needs min and max", generator)
		return none
	}

	before := len(p.problems)
	if p.t.isFloat() && r.Step == "" {
		r.Step = p.t.format(1)
	}
	least := p.number(&r.Min, 0, generator, "min")
	most := p.number(&r.Max, 0, generator, "max")
	step := uint64(p.step(&r.Step, p.t.unit(), generator, "step"))
	if len(p.problems) > before {
		return none
	}
	if p.t.isAfter(least, most) {
		p.wrong([]string{generator, "max"}, "%s: max %s is less than min %s", generator, r.Max, r.Min)
		return none
	}
	return uniformNumber{least, step, (uint64(most)-uint64(least))/step + 1}
}

// isAfter reports whether a value is behind another one.
func (t specType) isAfter(a, b int64) bool {
	if t.Type == rows.Uint64 {
		return uint64(a) > uint64(b)
	}
	return a > b
}

func (r *SpecRange) plan(p *columnPlanner) (plan columnPlan) {
	if p.t.Type == rows.Wide {
		return r.planWide(p)
	}
	of := p.spread(r, "uniform")
	plan.span(of)
	if p.t.IsInteger() {
		plan.wants = wantsOf(of.count)
	}
	plan.drawn = func(uint64) generator { return &of }
	return plan
}

// parted plans the values of a range that are drawn by parts, of which there are so many at most.
func (p *columnPlanner) parted(generator string, of uniformNumber, parts uint64, draw drawing) (plan columnPlan) {
	if of.count == 0 || of.count > 1<<62 {
		return p.refuse([]string{generator}, "%s: more than 2^62 values", generator)
	}
	p.entries += int64(min(of.count, parts))
	plan.span(of)
	plan.drawn = draw
	return plan
}

const million = 1_000_000

// exponent reads the s of a zipf distribution, in millionths; 0 after adding what is wrong.
func (p *columnPlanner) exponent(text *string) uint64 {
	s, err := parseDecimal(*text, 6, 8)
	switch {
	case *text == "":
		p.wrong([]string{"zipf"}, "zipf needs s, as s: 1.07")
	case err != nil:
		p.wrong([]string{"zipf", "s"}, "zipf: s: %v", err)
	case s < 1 || s > 20*million:
		p.wrong([]string{"zipf", "s"}, "zipf: s is more than 0 and at most 20")
	default:
		*text = trimmed(formatDecimal(s, 6))
		return uint64(s)
	}
	return 0
}

func (z *SpecZipf) plan(p *columnPlanner) (plan columnPlan) {
	s := p.exponent(&z.S)
	if (z.Range == nil) == (z.Values == nil) {
		p.wrong([]string{"zipf"}, "zipf needs min and max, or values")
	}
	if z.Values != nil && z.Scatter {
		p.wrong([]string{"zipf", "scatter"}, "zipf: values are not scattered: write them in their order")
	}
	if s == 0 || (z.Range == nil) == (z.Values == nil) {
		return plan
	}

	if z.Values != nil {
		texts := make([]*string, len(z.Values))
		for i := range z.Values {
			texts[i] = &z.Values[i]
		}
		if p.few(len(texts), "zipf", "values") {
			return p.chosen(texts, "zipf", func() choice {
				_, logs := zipfParts(uint64(len(texts)), s)
				return newChoice(weights(logs))
			})
		}
		return plan
	}

	if !p.need("zipf", numbers...) {
		return plan
	}
	of := p.spread(z.Range, "zipf")
	if !p.signed(z.Range, "zipf") {
		return plan
	}
	plan = p.parted("zipf", of, maxParts, zipfNumbers(of, s, z.Scatter))
	if p.t.IsInteger() {
		plan.wants = wantsOf(of.count)
	}
	return plan
}

// zipfNumbers draws the values of a range, of up to 2^62, by their ranks.
func zipfNumbers(of uniformNumber, s uint64, scattered bool) drawing {
	return func(start uint64) generator {
		parts, logs := zipfParts(of.count, s)
		var order *scatter
		if scattered {
			order = newScatter(of.count, start)
		}
		return newPartNumber(of, parts, logs, order)
	}
}

// newPartNumber returns a list instead of parts of one value each, which takes one word a row instead of two.
func newPartNumber(of uniformNumber, parts []part, logs []int64, order *scatter) generator {
	chosen := newChoice(weights(logs))
	if slices.ContainsFunc(parts, func(p part) bool { return p.size > 1 }) {
		return &partNumber{of.least, of.step, chosen, parts, order}
	}

	list := make([]int64, len(parts))
	for i, p := range parts {
		k := p.first
		if order != nil {
			k = order.of(k)
		}
		list[i] = int64(uint64(of.least) + k*of.step)
	}
	return &chosenNumber{list, chosen}
}

// signed reports whether a range is within 63 bits, with which all but uniform reckon, or adds that it is not.
func (p *columnPlanner) signed(r *SpecRange, generator string) bool {
	for _, text := range []string{r.Min, r.Max} {
		if v, err := p.t.parse(text); p.t.Type == rows.Uint64 && err == nil && v < 0 {
			p.wrong([]string{generator}, "%s: %s is beyond 9223372036854775807, where only uniform, values and constant go",
				generator, text)
			return false
		}
	}
	return true
}

// normalReach is how many deviations from the mean the values go, unless the spec says otherwise.
const normalReach = 6

func (n *SpecNormal) plan(p *columnPlanner) (plan columnPlan) {
	if n.Mean == "" || n.Stddev == "" {
		return p.refuse([]string{"normal"}, "normal needs mean and stddev")
	}

	mean := p.fine(&n.Mean, false, "normal", "mean")
	deviation := p.fine(&n.Stddev, true, "normal", "stddev")
	if p.hasProblem() {
		return plan
	}
	if deviation.Sign() <= 0 {
		return p.refuse([]string{"normal", "stddev"}, "normal: stddev is more than 0")
	}

	reach := new(big.Int).Mul(deviation, big.NewInt(normalReach))
	if n.Range.Min == "" {
		n.Range.Min = p.t.end(new(big.Int).Sub(mean, reach))
	}
	if n.Range.Max == "" {
		n.Range.Max = p.t.end(new(big.Int).Add(mean, reach))
	}
	of := p.spread(&n.Range, "normal")
	if !p.signed(&n.Range, "normal") || p.hasProblem() {
		return plan
	}
	to, _ := p.t.parse(n.Range.Max) // spread has read it
	if mean.Cmp(scaled(of.least)) < 0 || mean.Cmp(scaled(to)) > 0 {
		return p.refuse([]string{"normal", "mean"}, "normal: mean %s is not between min %s and max %s",
			n.Mean, n.Range.Min, n.Range.Max)
	}
	return p.parted("normal", of, bellParts, func(uint64) generator {
		parts, logs := normalParts(of, mean, deviation)
		return newPartNumber(of, parts, logs, nil)
	})
}

// end is the last value up to a number in millionths, in whole units within the type, for a range without an end of its
// own.
func (t specType) end(millionths *big.Int) string {
	v := new(big.Int).Div(millionths, big.NewInt(million*t.unit()))
	v.Mul(v, big.NewInt(t.unit()))
	least, most := t.bounds()
	switch {
	case v.Cmp(big.NewInt(least)) < 0:
		return t.format(least)
	case v.Cmp(big.NewInt(most)) > 0:
		return t.format(most)
	}
	return t.format(v.Int64())
}

// wantsOf returns how many different values a range of integers is meant to have: of more than a table has rows, any will do.
func wantsOf(count uint64) int64 {
	const most = 1 << 40
	if count == 0 || count > most {
		return 0
	}
	return int64(count)
}

// span sets the smallest and the largest value.
func (plan *columnPlan) span(of uniformNumber) {
	plan.least, plan.most = of.least, of.largest()
}

// scaled returns a value in millionths.
func scaled(v int64) *big.Int { return new(big.Int).Mul(big.NewInt(v), big.NewInt(million)) }

// fine reads a value of the column's type in millionths of its unit: numbers may have up to 6 digits more after the
// point.
func (p *columnPlanner) fine(text *string, distance bool, at ...string) *big.Int {
	if p.t.isTime() {
		if distance {
			return scaled(p.step(text, p.t.unit(), at...))
		}
		return scaled(p.number(text, 0, at...))
	}

	if p.t.isFloat() {
		v, err := parseFraction(*text)
		if err != nil {
			p.wrong(at, "%s: %v", strings.Join(at, ": "), err)
			return new(big.Int)
		}
		v.Mul(v, new(big.Rat).SetInt64(million<<p.t.binary))
		return new(big.Int).Quo(v.Num(), v.Denom())
	}

	whole, fraction, _ := strings.Cut(*text, ".")
	extra := ""
	if len(fraction) > p.t.scale {
		fraction, extra = fraction[:p.t.scale], fraction[p.t.scale:]
	}
	if len(extra) > 6 || strings.Trim(extra, "0123456789") != "" {
		p.wrong(at, "%s: %s is no number with up to %d digits after the point",
			strings.Join(at, ": "), quoted(*text), p.t.scale+6)
		return new(big.Int)
	}
	unit := whole
	if fraction != "" {
		unit += "." + fraction
	}
	v := p.number(&unit, 0, at...)
	rest, _ := strconv.ParseInt("0"+extra+strings.Repeat("0", 6-len(extra)), 10, 64)
	result := scaled(v)
	if strings.HasPrefix(whole, "-") {
		result.Sub(result, big.NewInt(rest))
	} else {
		result.Add(result, big.NewInt(rest))
	}

	*text = unit
	if extra = strings.TrimRight(extra, "0"); extra != "" {
		if p.t.scale == 0 {
			*text += "."
		}
		if v == 0 && strings.HasPrefix(whole, "-") {
			*text = "-" + *text
		}
		*text += extra
	}
	return result
}
