package dataset

import (
	"math"

	"github.com/terapush/terapush/pkg/rows"
)

// floats turns numbers in units of 2^−binary, as another generator draws them, into the bits of floating-point numbers. Both
// steps are exact on any machine: a number has no more bits than the type, and a power of two changes none of them.
type floats struct {
	generator
	binary int
}

func (g floats) fill(v *rows.Vector, start uint64, first int64, n int) {
	g.generator.fill(v, start, first, n)
	unit := math.Ldexp(1, -g.binary)
	if v.Type == rows.Float32 {
		for i, k := range v.Ints[:n] {
			v.Ints[i] = int64(math.Float32bits(float32(float64(k) * unit)))
		}
		return
	}
	for i, k := range v.Ints[:n] {
		v.Ints[i] = int64(math.Float64bits(float64(k) * unit))
	}
}

// exact is implemented by generators of numbers: the values that they are given, of a range the step first.
type exact interface{ exact() []string }

// finest is how fine floating-point numbers are where a range has no step.
const finest = "0.0625"

func (r *SpecRange) exact() []string     { return []string{r.Step, r.Min, r.Max} }
func (n *SpecNormal) exact() []string    { return n.Range.exact() }
func (c *SpecConstant) exact() []string  { return []string{string(*c)} }
func (h *SpecHistogram) exact() []string { return *h }

func (z *SpecZipf) exact() []string {
	if z.Range == nil {
		return z.Values
	}
	return z.Range.exact()
}

func (v *SpecValues) exact() (all []string) {
	for _, one := range *v {
		all = append(all, one.Value)
	}
	return all
}
