package rows

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/bits"
	"strings"
)

// WideDigits is the most digits of a decimal number.
const WideDigits = 38

// AppendWide appends a value of a Wide column: the two's complement of its number times 10^Scale, the highest byte first,
// as Parquet and Java's BigInteger have it.
func AppendWide(dst []byte, high int64, low uint64) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(high))
	return binary.BigEndian.AppendUint64(dst, low)
}

// ReadWide returns what AppendWide has written.
func ReadWide(value []byte) (high int64, low uint64) {
	_ = value[UUIDBytes-1]
	return int64(binary.BigEndian.Uint64(value)), binary.BigEndian.Uint64(value[8:])
}

// WideMagnitude returns the digits of a value without a sign, as characters, zeros in front. It panics on more than
// WideDigits.
func WideMagnitude(value []byte) (digits [WideDigits]byte, negative bool) {
	signed, low := ReadWide(value)
	high := uint64(signed)
	if negative = signed < 0; negative {
		var borrow uint64
		low, borrow = bits.Sub64(0, low, 0)
		high, _ = bits.Sub64(0, high, borrow)
	}

	const half = 10_000_000_000_000_000_000 // 10^19: half of the digits
	if high >= half {
		panic(tooWide(string(value)))
	}
	before, after := bits.Div64(high, low, half)
	if before >= half {
		panic(tooWide(string(value)))
	}
	for i := WideDigits/2 - 1; i >= 0; i-- {
		digits[i], digits[i+WideDigits/2] = '0'+byte(before%10), '0'+byte(after%10)
		before, after = before/10, after/10
	}
	return digits, negative
}

// tooWide takes a copy, so that the values of a hot path stay where they are.
func tooWide(value string) string {
	return fmt.Sprintf("rows: %x has more than %d digits", value, WideDigits)
}

// AppendWideText appends a value of a Wide column as SQL writes it: 12.50, with all Scale digits after the point.
func AppendWideText(dst, value []byte, scale int) []byte {
	digits, negative := WideMagnitude(value)
	if negative {
		dst = append(dst, '-')
	}
	point := WideDigits - scale
	first := 0
	for first < point-1 && digits[first] == '0' {
		first++
	}
	if point == 0 {
		dst = append(dst, '0')
	}
	dst = append(dst, digits[first:point]...)
	if scale == 0 {
		return dst
	}
	dst = append(dst, '.')
	return append(dst, digits[point:]...)
}

// ParseWide reads a decimal number of the column, which has no more digits than it, before and after the point.
func (c Column) ParseWide(text string) ([]byte, error) {
	unsigned, negative := strings.CutPrefix(text, "-")
	whole, fraction, point := strings.Cut(unsigned, ".")
	whole = strings.TrimLeft(whole, "0")
	switch {
	case whole+fraction == "" && !strings.Contains(unsigned, "0"), point && fraction == "", strings.Trim(whole+fraction, "0123456789") != "":
		return nil, fmt.Errorf("%.60q is no decimal number", text)
	case len(fraction) > c.Scale:
		return nil, fmt.Errorf("%.60s has more than %d digits after the point", text, c.Scale)
	case len(whole) > c.Digits-c.Scale:
		return nil, fmt.Errorf("%.60s has more than %d digits before the point", text, c.Digits-c.Scale)
	}

	n, _ := new(big.Int).SetString("0"+whole+fraction+strings.Repeat("0", c.Scale-len(fraction)), 10)
	if negative {
		n.Neg(n)
	}
	return FromBig(n), nil
}

// FromBig returns a number of at most WideDigits as AppendWide writes it.
func FromBig(n *big.Int) []byte {
	value := make([]byte, UUIDBytes)
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), 8*UUIDBytes))
	}
	return n.FillBytes(value)
}

// BigOf returns the number of a value of a Wide column.
func BigOf(value []byte) *big.Int {
	n := new(big.Int).SetBytes(value)
	if value[0] >= 1<<7 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), 8*UUIDBytes))
	}
	return n
}

// addWide adds values of a Wide column to a sum, in words of 32 bits, whose sums do not overflow.
func addWide(sum *big.Int, values []byte) {
	var words [4]int64
	for ; len(values) >= UUIDBytes; values = values[UUIDBytes:] {
		for i := range words {
			words[i] += int64(binary.BigEndian.Uint32(values[4*i:]))
		}
		words[0] -= int64(values[0]>>7) << 32
	}
	all := new(big.Int)
	for _, word := range words {
		all.Lsh(all, 32)
		all.Add(all, big.NewInt(word))
	}
	sum.Add(sum, all)
}
