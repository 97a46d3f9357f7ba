package encode

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/terapush/terapush/pkg/rows"
)

// number is how text formats write an Int64 column: derived ones in a fixed number of digits.
func number(c rows.Column, digits int) value {
	if c.Derived {
		return padded{width: digits, pad: '0'}
	}
	return decimal{}
}

// decimal writes integers in as many characters as they need.
type decimal struct{}

func (decimal) max() int { return len("-9223372036854775808") }

func (decimal) append(dst []byte, column *rows.Vector, i int) []byte {
	return strconv.AppendInt(dst, column.Ints[i], 10)
}

// padded writes integers of 0 … 10^width−1 in that many characters. Leading zeros mean nothing to MySQL, PostgreSQL
// and CSV readers, in data as in SQL literals; JSON forbids them and takes blanks.
type padded struct {
	width int
	pad   byte // '0' or ' '
}

func (p padded) max() int { return p.width }

func (p padded) append(dst []byte, column *rows.Vector, i int) []byte {
	var text [MaxDigits]byte
	p.format(text[:p.width], column.Ints[i])
	return append(dst, text[:p.width]...)
}

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

// stamp makes use of keys that follow one another: only the last digit changes from row to row, and the nine rows after
// a full decimal number are that number with another last digit. Ten divisions a row would cost more than all the rest.
// The last digit is written by itself, since changing it in text and copying text at once stalls the CPU (the wide
// read would have to wait for the narrow write).
func (p padded) stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int) {
	var memory [MaxDigits]byte
	text := memory[:p.width]
	last := len(text) - 1
	var tens int64 = -1 // what text holds, without its last digit
	for i, v := range column.Ints[:n] {
		digit := v - tens*10
		if tens < 0 || digit < 0 || digit > 9 {
			p.format(text, v)
			tens, digit = v/10, v%10
		}
		to := buf[at[i*stride]:]
		copy(to, text)
		to[last] = '0' + byte(digit)
	}
}

// bigEndian writes integers as PostgreSQL's int8send does, after their length.
type bigEndian struct{}

func (bigEndian) max() int { return 4 + 8 }

func (bigEndian) append(dst []byte, column *rows.Vector, i int) []byte {
	dst = append(dst, 0, 0, 0, 8)
	return binary.BigEndian.AppendUint64(dst, uint64(column.Ints[i]))
}

func (bigEndian) stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int) {
	for i, v := range column.Ints[:n] {
		binary.BigEndian.PutUint64(buf[at[i*stride]+4:], uint64(v))
	}
}

// width is the number of decimal digits of v, which is not negative.
func width(v int64) int {
	n := 1
	for v >= 10 {
		v /= 10
		n++
	}
	return n
}
