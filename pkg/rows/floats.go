package rows

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// FloatBytes is the length of a number in a value of Float32s.
const FloatBytes = 4

// AppendFloats writes a value of Float32s as servers read it: [1,-0.5,0.25]. Its numbers are those of the shortest text from
// which a reader of 64 bits that rounds correctly makes the same number, so that all of 32 bits do, too.
func AppendFloats(dst, value []byte) []byte {
	before := byte('[')
	for ; len(value) >= FloatBytes; value = value[FloatBytes:] {
		dst = append(dst, before)
		dst = appendFloat(dst, math.Float32frombits(binary.LittleEndian.Uint32(value)))
		before = ','
	}
	return append(dst, ']')
}

// Numbers that are multiples of 2^−fractionBits have at most so many digits after the point.
const fractionBits = 14

// appendFloat writes a number. Multiples of 2^−14, as datasets draw them, are written in a third of strconv's time.
func appendFloat(dst []byte, f float32) []byte {
	units := f * (1 << fractionBits)
	n := int32(units)
	if float32(n) != units || n == 0 || n <= -1<<30 || n >= 1<<30 {
		return strconv.AppendFloat(dst, float64(f), 'g', -1, 64)
	}

	if n < 0 {
		dst, n = append(dst, '-'), -n
	}
	dst = strconv.AppendUint(dst, uint64(n>>fractionBits), 10)
	fraction := uint64(n & (1<<fractionBits - 1))
	if fraction == 0 {
		return dst
	}

	// A half is 5 tenths, and so on: times 5^14 all digits stand before the point.
	const fives = 6_103_515_625
	var digits [fractionBits]byte
	all := fraction * fives
	for i := fractionBits - 1; i >= 0; i-- {
		digits[i] = '0' + byte(all%10)
		all /= 10
	}
	dst = append(dst, '.')
	return append(dst, bytes.TrimRight(digits[:], "0")...)
}

// ParseFloats reads what servers write of a vector: [1,-0.5,0.25], perhaps with blanks.
func ParseFloats(text []byte) (value []byte, err error) {
	inner, opened := bytes.CutPrefix(bytes.TrimSpace(text), []byte("["))
	inner, closed := bytes.CutSuffix(inner, []byte("]"))
	if !opened || !closed {
		return nil, fmt.Errorf("%.40q is no vector", text)
	}

	for one := range bytes.SplitSeq(inner, []byte(",")) {
		f, err := strconv.ParseFloat(string(bytes.TrimSpace(one)), 32)
		if err != nil {
			return nil, fmt.Errorf("%.40q in a vector is no number of 32 bits", one)
		}
		value = binary.LittleEndian.AppendUint32(value, math.Float32bits(float32(f)))
	}
	return value, nil
}
