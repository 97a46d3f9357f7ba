package dataset

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/terapush/terapush/pkg/rows"
)

// SpecVector is a vector near one of some random centers, whose numbers are between -1 and 1. Each number of the vector is at
// most Spread from the center's. All are multiples of 2^−14, which every server prints and reads exactly.
type SpecVector struct {
	Clusters   int64  `json:"clusters"` // how many centers there are; all are equally frequent
	Spread     string `json:"spread"`   // more than 0, at most 1, with up to 4 digits after the point
	Normalised bool   `json:"normalised,omitempty"`
}

const (
	maxClusters = 1 << 16
	vectorBits  = 14 // after the point
)

func (s *SpecVector) plan(p *columnPlanner) (plan columnPlan) {
	if s.Clusters < 1 || s.Clusters > maxClusters {
		return p.refuse([]string{"vector", "clusters"}, "vector: clusters: %d: 1 to %d", s.Clusters, maxClusters)
	}
	if s.Spread == "" {
		s.Spread = "0.1"
	}
	const digits, whole = 4, 10_000
	spread, err := parseDecimal(s.Spread, digits, digits+1)
	if err != nil || spread < 1 || spread > whole {
		return p.refuse([]string{"vector", "spread"},
			"vector: spread: %s: more than 0, at most 1, with up to %d digits after the point",
			quoted(s.Spread), digits)
	}
	s.Spread = trimmed(formatDecimal(spread, digits))

	dims := p.t.size
	const entryBytes = 32 // of the tables that entries count
	p.entries += s.Clusters * int64(dims) * 2 / entryBytes
	plan.column.MaxBytes = dims * rows.FloatBytes
	reach := uint64(max(spread<<vectorBits/whole, 1))
	clusters, normalised := uint64(s.Clusters), s.Normalised
	plan.drawn = func(start uint64) generator {
		return &vectors{dims, clusters, reach, normalised, centers(streamOf(start, "centers"), int(clusters)*dims)}
	}
	return plan
}

// vectors draws vectors in units of 2^−14. A row takes a word for its center, and one for each 4 numbers.
type vectors struct {
	dims       int
	clusters   uint64
	reach      uint64 // of a number from the center's, in both directions; at most 2^14
	normalised bool
	centers    []int16 // one behind the other
}

// centers draws n numbers from -1 to 1.
func centers(state uint64, n int) []int16 {
	all := make([]int16, n)
	for i := range all {
		state += gamma
		k, _ := bits.Mul64(mix(state), 2<<vectorBits+1)
		all[i] = int16(int64(k) - 1<<vectorBits)
	}
	return all
}

func (g *vectors) words() uint64 { return 1 + uint64(g.dims+3)/4 }

func (g *vectors) bytes(_ uint64, n int) int64 { return int64(n) * int64(g.dims) * rows.FloatBytes }

func (g *vectors) fill(v *rows.Vector, start uint64, first int64, n int) {
	size := g.dims * rows.FloatBytes
	data, state := sized(v, n, size), at(start, first, g.words())
	for ; len(data) > 0; data = data[size:] {
		cluster, _ := bits.Mul64(mix(state+gamma), g.clusters)
		center := g.centers[int(cluster)*g.dims:][:g.dims]
		squares := g.draw(data[:size], center, state+gamma)
		scale := uint64(0)
		if g.normalised {
			scale = scaleOf(squares)
		}
		finish(data[:size], scale)
		state += g.words() * gamma
	}
}

// draw writes the numbers of a vector, in units, and returns the sum of their squares, of at most 2^44.
func (g *vectors) draw(dst []byte, center []int16, state uint64) (squares uint64) {
	width, reach := 2*g.reach+1, int32(g.reach)
	for len(center) >= 4 {
		state += gamma
		word := mix(state)
		a := int32(center[0]) + int32(word&0xFFFF*width>>16) - reach
		b := int32(center[1]) + int32(word>>16&0xFFFF*width>>16) - reach
		c := int32(center[2]) + int32(word>>32&0xFFFF*width>>16) - reach
		d := int32(center[3]) + int32(word>>48*width>>16) - reach
		binary.LittleEndian.PutUint32(dst, uint32(a))
		binary.LittleEndian.PutUint32(dst[4:], uint32(b))
		binary.LittleEndian.PutUint32(dst[8:], uint32(c))
		binary.LittleEndian.PutUint32(dst[12:], uint32(d))
		squares += uint64(int64(a)*int64(a)) + uint64(int64(b)*int64(b)) + uint64(int64(c)*int64(c)) + uint64(int64(d)*int64(d))
		dst, center = dst[16:], center[4:]
	}

	word := mix(state + gamma)
	for i, c := range center {
		k := int32(c) + int32(word&0xFFFF*width>>16) - reach
		binary.LittleEndian.PutUint32(dst[4*i:], uint32(k))
		squares += uint64(int64(k) * int64(k))
		word >>= 16
	}
	return squares
}

// scaleOf returns what a vector is multiplied by, over 2^30, so that it has the length 1, which is 2^14 units; 0 for one without
// a length. The root has 9 bits after the point.
func scaleOf(squares uint64) uint64 {
	const rootBits, scaleBits = 9, 30
	if squares == 0 {
		return 0
	}
	return 1 << (vectorBits + scaleBits + rootBits) / root(squares<<(2*rootBits))
}

// root is the square root, rounded down, of x > 0.
func root(x uint64) uint64 {
	r := uint64(1) << ((bits.Len64(x) + 1) / 2) // more than the root, so that Newton's method falls to it
	for {
		next := (r + x/r) / 2
		if next >= r {
			return r
		}
		r = next
	}
}

// finish turns units into floating-point numbers, all times a scale over 2^30, or as they are for 0. No number of 2^15 units is
// scaled beyond 2^14, and 24 bits are exact: neither the conversion nor a power of two rounds.
//
// A scaled number is rounded by half a unit at most, so the length is 1 within √dims / 2^15: 0.0012 for 1,536 numbers, and
// some hundredths of that on average.
func finish(data []byte, scale uint64) {
	const unit = 1.0 / (1 << vectorBits)
	if scale == 0 {
		for ; len(data) >= rows.FloatBytes; data = data[rows.FloatBytes:] {
			k := int32(binary.LittleEndian.Uint32(data))
			binary.LittleEndian.PutUint32(data, math.Float32bits(float32(k)*unit))
		}
		return
	}

	for ; len(data) >= rows.FloatBytes; data = data[rows.FloatBytes:] {
		k := int64(int32(binary.LittleEndian.Uint32(data)))
		k = (k*int64(scale) + 1<<29) >> 30
		binary.LittleEndian.PutUint32(data, math.Float32bits(float32(int32(k))*unit))
	}
}
