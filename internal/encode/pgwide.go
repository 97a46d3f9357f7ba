package encode

import (
	"encoding/binary"

	"github.com/terapush/terapush/pkg/rows"
)

// pgWide writes Wide columns, and Uint64 ones, as pgNumerics writes Decimal ones. It has the digits as characters and
// cuts them into those of base 10000.
type pgWide struct {
	of            rows.Type
	spare         int // of rows.WideDigits, those that the column does not have
	scale         int
	before, after int // base-10000 digits before and after the point
}

// uint64Digits are those of the largest unsigned integer.
const uint64Digits = 20

func newPGWide(c rows.Column) *pgWide {
	digits, scale := c.Digits, c.Scale
	if c.Type == rows.Uint64 {
		digits, scale = uint64Digits, 0
	}
	return &pgWide{
		of: c.Type, spare: rows.WideDigits - digits, scale: scale,
		before: (rows.WideDigits - scale + 3) / 4, after: (scale + 3) / 4,
	}
}

func (p *pgWide) max() int { return 4 + 8 + 2*(p.before+p.after) }

func (p *pgWide) append(dst []byte, column *rows.Vector, i int) []byte {
	digits, negative := p.digits(column, i)

	// The digits with zeros around them, so that the point is between two of base 10000.
	var memory [4 * 12]byte
	aligned := memory[:4*(p.before+p.after)]
	copy(aligned[4*p.before+p.scale-rows.WideDigits:], digits[:])
	var all [12]uint16
	for k := range all[:p.before+p.after] {
		var digit uint16
		for _, c := range aligned[4*k : 4*k+4] {
			digit = digit*10 + uint16(c&0x0F) // of '0' as of the zeros around, 0
		}
		all[k] = digit
	}

	first, last := 0, p.before+p.after
	for first < last && all[first] == 0 {
		first++
	}
	for last > first && all[last-1] == 0 {
		last--
	}
	weight, sign := p.before-1-first, uint16(0)
	if first == last {
		weight = 0
	}
	if negative {
		sign = pgNegative
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(8+2*(last-first)))
	dst = binary.BigEndian.AppendUint16(dst, uint16(last-first))
	dst = binary.BigEndian.AppendUint16(dst, uint16(weight))
	dst = binary.BigEndian.AppendUint16(dst, sign)
	dst = binary.BigEndian.AppendUint16(dst, uint16(p.scale))
	for _, digit := range all[first:last] {
		dst = binary.BigEndian.AppendUint16(dst, digit)
	}
	return dst
}

func (p *pgWide) digits(column *rows.Vector, i int) (digits [rows.WideDigits]byte, negative bool) {
	if p.of == rows.Uint64 {
		var value [rows.UUIDBytes]byte
		binary.BigEndian.PutUint64(value[8:], uint64(column.Ints[i]))
		return rows.WideMagnitude(value[:])
	}
	value := column.UUID(i)
	checkWide(value, p.spare)
	return rows.WideMagnitude(value)
}
