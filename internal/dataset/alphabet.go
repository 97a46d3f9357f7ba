package dataset

import "math/bits"

// Kind is what a payload is made of.
type Kind string

// The kinds of payload. Both alphabets omit every byte that a format escapes or uses as a delimiter (see
// rows.Column.Plain), so that a row has the same length in every format that carries it raw.
const (
	Bytes Kind = "bytes" // 245 of the 256 bytes; not valid UTF-8
	Text  Kind = "text"  // 90 of the 94 graphic ASCII characters; no blank, since some databases trim blanks
)

// alphabet turns random words into symbols.
type alphabet struct {
	// symbols is longer than any alphabet, so that indexing it by a byte needs no bounds check.
	symbols [256]byte
	size    uint64
}

func isGraphic(c byte) bool { return 0x21 <= c && c <= 0x7E }

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// alphabetOf returns the chosen bytes that are plain, in ascending order.
func alphabetOf(chosen func(byte) bool) *alphabet {
	var a alphabet
	for c := range 256 {
		if isPlain([]byte{byte(c)}) && chosen(byte(c)) {
			a.symbols[a.size] = byte(c)
			a.size++
		}
	}
	return &a
}

// gamma is SplitMix64's step. It is odd, so the counter takes all 2^64 values before one repeats.
const gamma = 0x9E3779B97F4A7C15

// mix is the output function of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// 2014), with the constants of Vigna's splitmix64.c. It is a bijection.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// draw fills dst with symbols, 8 from each word that SplitMix64 gives from state on.
//
// A word is a fraction of 2^64. Multiplied by the alphabet's size, the upper half of the product is the first symbol's
// index, and the lower half the fraction for the next one. 245^8 is less than 2^64, so each string of 8 symbols comes from
// one or two words: at each position all symbols are equally likely, and 8 of them have 63.4 of the 63.5 bits that are
// possible. Smaller alphabets are closer to uniform.
//
// The loop is unrolled because Go does not unroll, and stores single bytes because that is faster than composing a word:
// 1.9 GB/s; 1.5 with shifts and one store, 1.2 not unrolled, 1.6 with two independent 32-bit halves.
func (a *alphabet) draw(dst []byte, state uint64) {
	for ; len(dst) >= 8; dst = dst[8:] {
		state += gamma
		x := mix(state)
		h0, x := bits.Mul64(x, a.size)
		h1, x := bits.Mul64(x, a.size)
		h2, x := bits.Mul64(x, a.size)
		h3, x := bits.Mul64(x, a.size)
		h4, x := bits.Mul64(x, a.size)
		h5, x := bits.Mul64(x, a.size)
		h6, x := bits.Mul64(x, a.size)
		h7, _ := bits.Mul64(x, a.size)
		dst[0] = a.symbols[byte(h0)]
		dst[1] = a.symbols[byte(h1)]
		dst[2] = a.symbols[byte(h2)]
		dst[3] = a.symbols[byte(h3)]
		dst[4] = a.symbols[byte(h4)]
		dst[5] = a.symbols[byte(h5)]
		dst[6] = a.symbols[byte(h6)]
		dst[7] = a.symbols[byte(h7)]
	}
	x := mix(state + gamma)
	var h uint64
	for i := range dst {
		h, x = bits.Mul64(x, a.size)
		dst[i] = a.symbols[byte(h)]
	}
}
