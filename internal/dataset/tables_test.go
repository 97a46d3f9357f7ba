package dataset

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The tables are made of integers; the library's floating point tells whether they are right.
func TestLogarithmsAndWeights(t *testing.T) {
	roots, random := roots(), rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		x := random.Uint64()>>random.IntN(64) | 1
		log := float64(log2(x)) / (1 << fractionBits)
		require.InDelta(t, math.Log2(float64(x)), log, 1e-12, "%d", x)

		d := random.Int64N(40 << fractionBits)
		want := one * math.Exp2(-float64(d)/(1<<fractionBits))
		require.InDelta(t, want, float64(weightOf(d, &roots)), 1+want*1e-12)
	}
	require.Zero(t, log2(1))
	require.EqualValues(t, one, weightOf(0, &roots))
	require.EqualValues(t, one/2, weightOf(1<<fractionBits, &roots))
	require.Zero(t, weightOf(math.MaxInt64, &roots))
}

// mass returns the probability of each index.
func (c choice) mass() []float64 {
	mass := make([]float64, len(c))
	for _, e := range c {
		first := float64(e.below) / (1 << 64)
		mass[e.first] += first / float64(len(c))
		mass[e.second] += (1 - first) / float64(len(c))
	}
	return mass
}

func TestChoice(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 3, 7, 1000, 1 << 16} {
		weights, sum := make([]uint64, n), 0.0
		for i := range weights {
			weights[i] = random.Uint64N(one) >> random.IntN(47)
			if i == 0 {
				weights[i]++ // so that not all are 0
			}
			sum += float64(weights[i])
		}
		c := newChoice(weights)
		for i, p := range c.mass() {
			require.InDelta(t, float64(weights[i])/sum, p, 1e-9, "%d of %d", i, n)
		}
		for _, word := range []uint64{0, 1, math.MaxUint64, 1 << 63} {
			require.Less(t, int(c.pick(word)), n)
		}
	}
	equal := newChoice([]uint64{one, one, one, one})
	require.Equal(t, []float64{0.25, 0.25, 0.25, 0.25}, equal.mass())
}

// Every rank has its probability, whether it is a part of its own or one of many.
func TestZipf(t *testing.T) {
	for _, n := range []uint64{1, 2, 100, 1 << 16, 1<<16 + 1, 300_000} {
		for _, s := range []float64{0.000001, 0.5, 0.99, 1.07, 2, 20} {
			sum := 0.0
			for k := n; k >= 1; k-- {
				sum += math.Pow(float64(k), -s)
			}
			parts, logs := zipfParts(n, uint64(s*1e6+0.5))
			require.LessOrEqual(t, len(parts), maxParts)
			mass, next := newChoice(weights(logs)).mass(), uint64(0)
			for i, p := range parts {
				if next != p.first { // require is slow
					require.Equal(t, next, p.first)
				}
				next += p.size
				each := mass[i] / float64(p.size)
				for _, rank := range []uint64{p.first + 1, p.first + p.size} {
					want := math.Pow(float64(rank), -s) / sum
					if math.Abs(want-each) <= want*0.02+1e-12 {
						continue // InDelta is slow
					}
					require.InDelta(t, want, each, want*0.02+1e-12, "n %d, s %v, rank %d", n, s, rank)
				}
			}
			require.Equal(t, n, next)
		}
	}

	parts, logs := zipfParts(1<<62, 990_000)
	require.LessOrEqual(t, len(parts), maxParts)
	require.EqualValues(t, uint64(1)<<62, parts[len(parts)-1].first+parts[len(parts)-1].size)
	newChoice(weights(logs))
}

func TestNormal(t *testing.T) {
	for _, c := range []struct {
		from    int64
		step, n uint64
		mean    float64
		stddev  float64
	}{
		{0, 1, 31, 3.25, 1.5}, {-50_000, 1, 100_001, 0.5, 9000}, {1000, 250, 40_000, 5_000_000, 777_777}, {5, 1, 1, 5, 0.000001},
		{math.MinInt64, 1 << 40, 1 << 23, 0, 1e18},
	} {

		mean, _ := new(big.Float).SetFloat64(c.mean * 1e6).Int(nil)
		stddev, _ := new(big.Float).SetFloat64(c.stddev * 1e6).Int(nil)
		parts, logs := normalParts(uniformNumber{c.from, c.step, c.n}, mean, stddev)
		mass := newChoice(weights(logs)).mass()
		sum, next := 0.0, uint64(0)
		density := func(p part) float64 {
			middle := float64(c.from) + float64(c.step)*(float64(p.first)+float64(p.size-1)/2)
			z := (middle - c.mean) / c.stddev
			return float64(p.size) * math.Exp(-z*z/2)
		}
		for _, p := range parts {
			sum += density(p)
			require.Equal(t, next, p.first)
			next += p.size
		}
		require.Equal(t, c.n, next)
		for i, p := range parts {
			require.InDelta(t, density(p)/sum, mass[i], 1e-9, "%+v, part %d", c, i)
		}
	}
}

// A scattered rank is another one, and neighbors are far apart.
func TestScatter(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 4, 5, 6, 97, 1000, 1 << 16} {
		s := newScatter(n, 0x123456789ABCDEF)
		seen := make([]bool, n)
		for k := range n {
			at := s.of(k)
			require.Less(t, at, n)
			require.False(t, seen[at], "%d of %d", k, n)
			seen[at] = true
		}
	}
	for _, n := range []uint64{10_000_000, 1<<61 - 1, 1 << 62} {
		s := newScatter(n, math.MaxUint64)
		for _, k := range []uint64{0, n / 2, n - 2} {
			a, b := s.of(k), s.of(k+1)
			require.Less(t, max(a, b), n)
			assert.Greater(t, max(a, b)-min(a, b), n/4)
		}
	}
}
