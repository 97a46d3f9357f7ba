package loader

import (
	"math/big"
	"math/bits"
	"math/rand/v2"
)

// Mix is a keyed checksum of row numbers. Summed over a bucket it tells other rows from the right ones where their
// number, their sum and the sum of their squares agree, as those of 0, 4, 5 and 1, 2, 6 do:
//
//	u = (offset + A)² mod p
//	u · ((u + offset)·(u + B) mod q)
//
// Servers compute it with 64-bit integers: no product exceeds 2^63. Two different sets of offsets have the same sum for
// about one key in p·q > 2^62. That is shown by trial with small primes (TestMix), not proven. It is no cryptographic
// hash: whoever knows A and B can make a second set.
type Mix struct{ A, B int64 } // both at least 2^29 and below 2^30

const (
	// MixP is the largest prime below 1.5·2^30.
	MixP = 1610612711
	// MixQ is the largest prime below 2^32.
	MixQ = 4294967291
	// MaxMixed is the most rows of a bucket.
	MaxMixed = 1 << 30
)

// NewMix makes a key.
func NewMix(seed uint64) Mix {
	random := rand.New(rand.NewPCG(seed, 1))
	return Mix{MaxMixed/2 + random.Int64N(MaxMixed/2), MaxMixed/2 + random.Int64N(MaxMixed/2)}
}

// Of returns the summand of a row.
func (m Mix) Of(offset int64) int64 { return m.of(offset, MixP, MixQ) }

func (m Mix) of(o, p, q int64) int64 {
	u := (o + m.A) * (o + m.A) % p
	return u * ((u + o) * (u + m.B) % q)
}

// Sum returns the sum of the rows 0 … n−1.
func (m Mix) Sum(n int64) *big.Int {
	var high, low, carry uint64
	for o := range n {
		low, carry = bits.Add64(low, uint64(m.Of(o)), 0)
		high += carry
	}
	sum := new(big.Int).SetUint64(high)
	return sum.Or(sum.Lsh(sum, 64), new(big.Int).SetUint64(low))
}
