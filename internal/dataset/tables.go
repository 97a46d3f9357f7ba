package dataset

import (
	"math/big"
	"math/bits"
	"slices"
	"sync"
)

// Distributions are tables of integers. They are made without floating point, so that amd64, which does not fuse a
// multiplication with an addition, and arm64, which does, make the same ones.
//
// Logarithms are to base 2, with fractionBits bits after the point.
const fractionBits = 48

// log2 is the logarithm of x ≥ 1, rounded down in its last bits. It finds bit after bit: the square of a number
// between 1 and 2 is 2 or more if the next bit of its logarithm is 1.
func log2(x uint64) int64 {
	exponent := bits.Len64(x) - 1
	m := x << (63 - exponent) // 1 ≤ m < 2, with 63 bits after the point
	result := uint64(exponent)
	if m == 1<<63 { // as most parts of a distribution have one value
		return int64(result << fractionBits)
	}
	for range fractionBits {
		high, low := bits.Mul64(m, m)
		result <<= 1
		if high >= 1<<63 {
			result |= 1
			m = high
			continue
		}
		m = high<<1 | low>>63
	}
	return int64(result)
}

// one is the largest weight.
const one = 1 << 47

// roots are 2^(−2^−k) for k = 1 … fractionBits, times 2^64.
var roots = sync.OnceValue(func() (all [fractionBits]uint64) {
	root := new(big.Int).Lsh(big.NewInt(1), 127)
	for k := range all {
		root.Sqrt(root)
		all[k] = root.Uint64()
		root.Lsh(root, 64)
	}
	return all
})

// weightOf returns 2^(−d) times one, for d ≥ 0.
func weightOf(d int64, roots *[fractionBits]uint64) uint64 {
	m := uint64(1 << 63)
	for k, root := range roots {
		if d>>(fractionBits-1-k)&1 == 1 {
			m, _ = bits.Mul64(m, root)
		}
	}
	return m >> 16 >> uint64(d>>fractionBits)
}

// weights returns numbers in proportion to 2^log for each logarithm; the largest is one.
func weights(logs []int64) []uint64 {
	most, roots := slices.Max(logs), roots()
	all := make([]uint64, len(logs))
	for i, log := range logs {
		all[i] = weightOf(most-log, &roots)
	}
	return all
}

// choice is a table that turns a word into one of n ≤ 2^16 indexes with given probabilities in one step (Walker's
// alias method, as Vose makes it): the word chooses an entry uniformly, and its fraction one of the entry's two
// indexes.
type choice []struct {
	below         uint64 // fractions below it are for first
	first, second uint32
}

// newChoice makes the table of some weights, whose sum is at least 1 and less than 2^63.
func newChoice(weights []uint64) choice {
	n, sum := uint64(len(weights)), uint64(0)
	for _, w := range weights {
		sum += w
	}

	// left is what an index still has to be given, in entries times one. The first largest weight takes what rounding
	// leaves.
	left, given := make([]uint64, n), uint64(0)
	for i, w := range weights {
		high, low := bits.Mul64(w, n*one)
		left[i], _ = bits.Div64(high, low, sum)
		given += left[i]
	}
	largest := slices.Index(weights, slices.Max(weights))
	left[largest] += n*one - given

	var small, large []uint32
	for i, l := range left {
		if l < one {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
	}

	c := make(choice, n)
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		c[s].below, c[s].first, c[s].second = left[s]<<17, s, l
		left[l] -= one - left[s]
		if left[l] < one {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) {
		c[i].below, c[i].first, c[i].second = 0, i, i
	}
	return c
}

// pick returns the index of a word.
func (c choice) pick(word uint64) uint32 {
	at, fraction := bits.Mul64(word, uint64(len(c)))
	e := &c[at]
	index := e.second
	if fraction < e.below {
		index = e.first
	}
	return index
}

// part is consecutive values that are equally frequent, by their distance from the first value.
type part struct{ first, size uint64 }

const (
	maxParts  = 1 << 16 // of a zipf distribution: with as many ranks or fewer each is a part of its own
	exactZipf = 1 << 15 // ranks of a larger one that are
	octave    = 1 << 9  // parts of the others for each doubling of the rank, so that a part's ranks differ by 0.2 %
	bellParts = 1 << 12 // of a normal or exponential distribution
)

// zipfParts divides ranks 0 … n−1, n ≤ 2^62. Rank r has the probability of (r+1)^−s, s in millionths; a part all of
// its middle.
func zipfParts(n, s uint64) (parts []part, logs []int64) {
	size := uint64(1)
	for first := uint64(0); first < n; first += size {
		if rank := first + 1; n > maxParts && rank >= exactZipf {
			size = uint64(1) << (bits.Len64(rank) - 1) / octave
		}
		size = min(size, n-first)

		twice := uint64(log2(2*(first+1)+size-1)) - 1<<fractionBits // of the middle
		high, low := bits.Mul64(twice, s)
		times, _ := bits.Div64(high, low, 1_000_000)
		parts = append(parts, part{first, size})
		logs = append(logs, log2(size)-int64(times))
	}
	return parts, logs
}

// halfLog is log2(e) / 2, with fractionBits bits after the point.
const halfLog = 203_041_276_517_399

// normalParts divides a range. mean and deviation are in millionths.
func normalParts(of uniformNumber, mean, deviation *big.Int) (parts []part, logs []int64) {
	farthest := big.NewInt(1 << 61)
	below := new(big.Int).Mul(deviation, deviation)
	below.Lsh(below, 2)

	// Twice the distance of the part's middle from the mean, squared: four times the square of the distance.
	return equalParts(of.count, func(twice uint64) *big.Int {
		d := new(big.Int).SetUint64(twice)
		d.Mul(d, new(big.Int).SetUint64(of.step))
		d.Add(d, new(big.Int).Lsh(big.NewInt(of.least), 1))
		d.Mul(d, big.NewInt(million))
		d.Sub(d, new(big.Int).Lsh(mean, 1))
		d.Mul(d, d)
		d.Mul(d, big.NewInt(halfLog))
		d.Quo(d, below)
		if d.Cmp(farthest) > 0 {
			return farthest
		}
		return d
	})
}

// equalParts divides numbers 0 … n−1 into parts of nearly one size. rarer is how much rarer one is than the most
// frequent, as a logarithm, by twice its distance from 0.
func equalParts(n uint64, rarer func(twice uint64) *big.Int) (parts []part, logs []int64) {
	count, first := min(n, bellParts), uint64(0)
	for i := range count {
		high, low := bits.Mul64(i+1, n)
		next, _ := bits.Div64(high, low, count)
		size := next - first
		middle := 2*first + size - 1 // twice
		parts = append(parts, part{first, size})
		logs = append(logs, log2(size)-rarer(middle).Int64())
		first = next
	}
	return parts, logs
}
