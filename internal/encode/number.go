package encode

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/terapush/terapush/pkg/rows"
)

// plainNumber writes integers in as many characters as they need.
type plainNumber struct{}

func (*plainNumber) max() int { return len("-9223372036854775808") }

func (*plainNumber) append(dst []byte, column *rows.Vector, i int) []byte {
	v, n := uint64(column.Ints[i]), len(dst)
	if v < 10 {
		return append(dst, '0'+byte(v))
	}
	if v >= 1e8 || cap(dst)-n < 8 {
		return strconv.AppendInt(dst, int64(v), 10)
	}
	digits := eightDigits(v)
	zeros := leadingZeros(digits)
	binary.LittleEndian.PutUint64(dst[n:n+8], (digits|ascii)>>zeros)
	return dst[:n+8-zeros/8]
}

// unsignedNumber writes integers of 64 bits without a sign.
type unsignedNumber struct{ plainNumber }

func (u *unsignedNumber) append(dst []byte, column *rows.Vector, i int) []byte {
	if v := column.Ints[i]; v < 0 {
		return strconv.AppendUint(dst, uint64(v), 10)
	}
	return u.plainNumber.append(dst, column, i)
}

// ascii makes digits of eight bytes 0 … 9.
const ascii = 0x3030303030303030

// eightDigits splits v < 10^8 into digits, the first one in the lowest byte.
func eightDigits(v uint64) uint64 {
	return uint64(fourDigits[v/10_000]) | uint64(fourDigits[v%10_000])<<32
}

// fourDigits has the digits of 0 … 9999, the first one in the lowest byte. To compute them takes 1 to 2 ns a number more.
var fourDigits = func() (digits [10_000]uint32) {
	for v := range uint32(len(digits)) {
		digits[v] = v/1000 | v/100%10<<8 | v/10%10<<16 | v%10<<24
	}
	return digits
}()

// leadingZeros returns how many of eight digits are leading zeros, in bits. The last digit does not count.
func leadingZeros(digits uint64) int { return bits.TrailingZeros64(digits|1<<56) &^ 7 }

// padded writes derived integers of 0 … 10^width−1 in that many characters. MySQL, PostgreSQL and CSV readers ignore
// leading zeros, in data as in SQL literals; JSON forbids them and allows blanks.
type padded struct {
	width int
	pad   byte // '0' or ' '
}

func (p padded) max() int { return p.width }

// format writes v over all of text.
func (p padded) format(text []byte, v int64) {
	rest := uint64(v)
	last := len(text) - 1
	text[last] = '0' + byte(rest%10)
	rest /= 10
	k := last - 1
	for ; k >= 0 && rest != 0; k-- {
		text[k] = '0' + byte(rest%10)
		rest /= 10
	}
	for ; k >= 0; k-- {
		text[k] = p.pad
	}
	if rest != 0 || v < 0 {
		panic(fmt.Sprintf("encode: %d does not fit the %d digits planned for a derived column", v, p.width))
	}
}

// stamp relies on consecutive keys: within a hundred of them only the last two digits change. Ten divisions a row would
// cost more than all the rest. Below 100, where the tens may be a blank, only the last digit is taken to change.
func (p padded) stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int) {
	var memory [MaxDigits]byte
	var text rolling
	for i := 0; i < n; {
		v := column.Ints[i]
		p.format(memory[:p.width], v)
		digits, span := 2, int64(100)
		if v < 100 {
			digits, span = 1, 10
		}
		text.set(memory[:p.width], digits)
		i += text.run(buf, at[i*stride:], stride, column.Ints[i:n], v-v%span, uint64(span))
	}
}

// width returns the number of decimal digits of v ≥ 0.
func width(v int64) int {
	n := 1
	for v >= 10 {
		v /= 10
		n++
	}
	return n
}
