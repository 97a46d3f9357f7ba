package encode

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/terapush/terapush/pkg/rows"
)

// decimals writes Decimal columns as text: a minus if negative, at least one digit before the point, and all Scale digits
// after it; without such digits there is no point. SQL and CSV readers read exactly that number.
type decimals struct {
	scale int
	one   uint64 // 10^scale
	most  uint64 // the largest value
	short uint64 // values below it have at most 8 digits, and no more than the column
	bytes int
}

func newDecimals(c rows.Column) *decimals {
	return &decimals{
		scale: c.Scale, one: powerOfTen(c.Scale), most: powerOfTen(c.Digits) - 1, short: powerOfTen(min(c.Digits, 8)),
		bytes: len("-") + max(c.Digits-c.Scale, 1) + len(".") + c.Scale,
	}
}

// The most digits of a Decimal column; a Wide one has more.
const narrowDigits = 18

// decimalFits reports whether rows.Column allows the column's digits.
func decimalFits(c rows.Column) bool {
	least, most := 1, narrowDigits
	if c.Type == rows.Wide {
		least, most = narrowDigits+1, rows.WideDigits
	}
	return c.Digits >= least && c.Digits <= most && c.Scale >= 0 && c.Scale <= c.Digits && !c.Derived
}

// wideDecimals writes Wide columns as decimals writes the others.
type wideDecimals struct {
	scale int
	bytes int
	spare int // of WideDigits, those that the column does not have
}

func newWideDecimals(c rows.Column) *wideDecimals {
	return &wideDecimals{
		scale: c.Scale, spare: rows.WideDigits - c.Digits,
		bytes: len("-") + max(c.Digits-c.Scale, 1) + len(".") + c.Scale,
	}
}

func (d *wideDecimals) max() int { return d.bytes }

func (d *wideDecimals) append(dst []byte, column *rows.Vector, i int) []byte {
	value := column.UUID(i)
	checkWide(value, d.spare)
	return rows.AppendWideText(dst, value, d.scale)
}

// checkWide panics if one of the first digits, of which the column has none, is not 0.
func checkWide(value []byte, spare int) {
	digits, _ := rows.WideMagnitude(value)
	for _, digit := range digits[:spare] {
		if digit != '0' {
			panic(fmt.Sprintf("encode: %s in a decimal column of %d digits", digits, rows.WideDigits-spare))
		}
	}
}

// powerOfTen returns 10^n, 0 ≤ n ≤ 19.
func powerOfTen(n int) uint64 {
	power := uint64(1)
	for range n {
		power *= 10
	}
	return power
}

// magnitude returns v without its sign. It panics if v has more digits than the column, for which there is no room.
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

func (d *decimals) max() int { return d.bytes }

func (d *decimals) append(dst []byte, column *rows.Vector, i int) []byte {
	u, n := uint64(column.Ints[i]), len(dst)
	if u >= d.short || uint(d.scale-1) > 6 || cap(dst)-n < 9 { // a scale of 0, or more than 7
		return d.appendAny(dst, int64(u))
	}
	digits := eightDigits(u)
	zeros := min(leadingZeros(digits), 8*(7-d.scale)) // one digit stays before the point
	text := (digits | ascii) >> zeros
	whole := 64 - zeros - 8*d.scale // bits before the point
	before := text & (1<<whole - 1)
	to := dst[n : n+9]
	binary.LittleEndian.PutUint64(to, before|'.'<<whole|(text^before)<<8)
	to[8] = byte(text >> 56)
	return dst[:n+9-zeros/8]
}

// appendAny is append for values of any number of digits.
func (d *decimals) appendAny(dst []byte, v int64) []byte {
	u := magnitude(v, d.most)
	if v < 0 {
		dst = append(dst, '-')
	}
	dst = strconv.AppendUint(dst, u/d.one, 10)
	if d.scale == 0 {
		return dst
	}
	dst = append(dst, '.')
	n := len(dst)
	dst = extend(dst, d.scale)
	for rest, k := u%d.one, n+d.scale-1; k >= n; k-- {
		dst[k] = '0' + byte(rest%10)
		rest /= 10
	}
	return dst
}
