package encode

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/terapush/terapush/pkg/rows"
)

// decimals is how text formats write a Decimal column: a minus where it is negative, at least one digit in front of the
// point, and all Scale digits behind it. That is the exact number to SQL and CSV readers.
type decimals struct {
	scale int
	one   uint64 // 10^scale
	most  uint64 // the largest value
	bytes int
}

func newDecimals(c rows.Column) decimals {
	return decimals{
		scale: c.Scale, one: powerOfTen(c.Scale), most: powerOfTen(c.Digits) - 1,
		bytes: len("-") + max(c.Digits-c.Scale, 1) + len(".") + c.Scale,
	}
}

// decimalFits reports whether the column has a number of digits that rows.Column allows.
func decimalFits(c rows.Column) bool {
	return c.Digits >= 1 && c.Digits <= 18 && c.Scale >= 1 && c.Scale <= c.Digits && !c.Derived
}

// powerOfTen is 10^n, 0 ≤ n ≤ 19.
func powerOfTen(n int) uint64 {
	power := uint64(1)
	for range n {
		power *= 10
	}
	return power
}

// magnitude is v without its sign. A value that has more digits than the column would take room that is not there.
func magnitude(v int64, most uint64) uint64 {
	u := uint64(v)
	if v < 0 {
		u = -u
	}
	if u > most {
		panic(fmt.Sprintf("encode: %d in a decimal column whose values are not beyond %d", v, most))
	}
	return u
}

func (d decimals) max() int { return d.bytes }

func (d decimals) append(dst []byte, column *rows.Vector, i int) []byte {
	v := column.Ints[i]
	u, n := magnitude(v, d.most), len(dst)
	if v < 0 || u >= 1e8 || d.scale > 7 || cap(dst)-n < 9 {
		return d.appendAny(dst, v < 0, u)
	}
	digits := eightDigits(u)
	zeros := min(leadingZeros(digits), 8*(7-d.scale)) // one digit stays in front of the point
	text := (digits | ascii) >> zeros
	whole := 64 - zeros - 8*d.scale // bits in front of the point
	before := text & (1<<whole - 1)
	to := dst[n : n+9]
	binary.LittleEndian.PutUint64(to, before|'.'<<whole|(text^before)<<8)
	to[8] = byte(text >> 56)
	return dst[:n+9-zeros/8]
}

// appendAny is append for values of any number of digits.
func (d decimals) appendAny(dst []byte, negative bool, u uint64) []byte {
	if negative {
		dst = append(dst, '-')
	}
	dst = strconv.AppendUint(dst, u/d.one, 10)
	dst = append(dst, '.')
	n := len(dst)
	dst = extend(dst, d.scale)
	for rest, k := u%d.one, n+d.scale-1; k >= n; k-- {
		dst[k] = '0' + byte(rest%10)
		rest /= 10
	}
	return dst
}

// pgNumerics writes Decimal columns as PostgreSQL's numeric_send does (src/backend/utils/adt/numeric.c), after their
// length: four int16, which are how many digits to base 10000 follow, the power of 10000 that the first one counts,
// the sign and the number of decimal digits behind the point; then those digits, without zeros at either end.
type pgNumerics struct {
	scale   int
	most    uint64 // the largest value
	lowest  uint64 // as many units as the last digit behind the point has room for: 10 … 10000 …
	shift   uint64 // … and what its value is multiplied by, 10000 / lowest
	behind  int    // digits to base 10000 behind the point
	largest int    // bytes
}

const (
	pgBase     = 10_000
	pgNegative = 0x4000
)

func newPGNumerics(c rows.Column) pgNumerics {
	behind := (c.Scale + 3) / 4
	lowest := powerOfTen(c.Scale - (behind-1)*4)
	return pgNumerics{
		scale: c.Scale, most: powerOfTen(c.Digits) - 1,
		lowest: lowest, shift: pgBase / lowest, behind: behind,
		largest: 4 + 8 + 2*((c.Digits-c.Scale+3)/4+behind),
	}
}

func (p pgNumerics) max() int { return p.largest }

func (p pgNumerics) append(dst []byte, column *rows.Vector, i int) []byte {
	v := column.Ints[i]
	u := magnitude(v, p.most)
	// Digits from the last one on: those behind the point, then those before it.
	var memory [10]uint16
	first, last := len(memory), len(memory)
	put := func(digit uint64) {
		first--
		memory[first] = uint16(digit)
		if digit == 0 && first == last-1 {
			last--
		}
	}
	put(u % p.lowest * p.shift)
	u /= p.lowest
	for range p.behind - 1 {
		put(u % pgBase)
		u /= pgBase
	}
	weight := -1
	for ; u > 0; weight++ {
		put(u % pgBase)
		u /= pgBase
	}
	for first < last && memory[first] == 0 { // 0.00001234
		first++
		weight--
	}
	sign := uint16(0)
	if v < 0 {
		sign = pgNegative
	}
	if first == last {
		weight = 0
	}
	n := last - first
	dst = binary.BigEndian.AppendUint32(dst, uint32(8+2*n))
	dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	dst = binary.BigEndian.AppendUint16(dst, uint16(weight))
	dst = binary.BigEndian.AppendUint16(dst, sign)
	dst = binary.BigEndian.AppendUint16(dst, uint16(p.scale))
	for _, digit := range memory[first:last] {
		dst = binary.BigEndian.AppendUint16(dst, digit)
	}
	return dst
}
