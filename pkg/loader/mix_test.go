package loader

import (
	"math"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Sets of the same number, sum and sum of squares: some also have the same sums of higher powers. Of all keys of two small
// primes a handful gives two sets one sum, where p·q keys of a random function would give one.
func TestMix(t *testing.T) {
	const p, q = 127, 509
	for _, sets := range [][2][]int64{
		{{0, 4, 5}, {1, 2, 6}},
		{{100, 104, 105}, {101, 102, 106}},
		{{0, 5, 6, 16, 17, 22}, {1, 2, 10, 12, 20, 21}},
		{{0, 3, 5, 6, 9, 10, 12, 15}, {1, 2, 4, 7, 8, 11, 13, 14}},
		{{0, 18, 27, 58, 64, 89, 101}, {1, 13, 38, 44, 75, 84, 102}},
		{{163, 158, 178, 150}, {148, 176, 166, 159}},
		{{7, 177, 120, 110}, {78, 16, 173, 147}},
	} {
		equal := 0
		for a := range int64(p) {
			for b := range int64(q) {
				difference := int64(0)
				for i, o := range sets[0] {
					difference += Mix{a, b}.of(o, p, q) - Mix{a, b}.of(sets[1][i], p, q)
				}
				if difference == 0 {
					equal++
				}
			}
		}
		assert.LessOrEqual(t, equal, 8, sets)
	}
}

// The largest values there can be, in 128 bits.
func TestMixFitsInteger64(t *testing.T) {
	fits := func(a, b uint64) {
		high, low := bits.Mul64(a, b)
		assert.Zero(t, high)
		assert.LessOrEqual(t, low, uint64(math.MaxInt64))
	}
	fits(2*MaxMixed, 2*MaxMixed)
	fits(MixP+MaxMixed, MixP+MaxMixed)
	fits(MixP, MixQ)
	for seed := range uint64(100) {
		m := NewMix(seed)
		assert.Equal(t, m, NewMix(seed))
		for _, key := range []int64{m.A, m.B} {
			assert.True(t, MaxMixed/2 <= key && key < MaxMixed, m)
		}
	}
}
