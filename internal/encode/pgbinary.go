package encode

import (
	"encoding/binary"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// pgBinary is PostgreSQL's COPY … (FORMAT binary), manual page "COPY", Binary Format: a signature, flags and the length
// of a header extension (both 0); then for every row the number of columns as int16 and for every column its length as
// int32 and its bytes, all big-endian; finally the int16 −1. Columns must have the exact types int8, bytea, text (or
// varchar), date, timestamp and numeric: the server checks lengths and converts nothing.
func pgBinary(columns int) layout {
	return layout{
		format: batch.PGBinary,
		head:   "PGCOPY\n\xFF\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00",
		tail:   "\xFF\xFF",
		begin:  string(binary.BigEndian.AppendUint16(nil, uint16(columns))),
		value: func(c rows.Column, _ int) writer {
			switch c.Type {
			case rows.Int64:
				return enclosed{"\x00\x00\x00\x08", "", &bigEndian{}}
			case rows.Bytes, rows.Text:
				return &counted{maxBytes: c.MaxBytes}
			case rows.Date:
				return enclosed{"\x00\x00\x00\x04", "", &pgDates{}}
			case rows.Timestamp:
				return enclosed{"\x00\x00\x00\x08", "", &pgTimes{}}
			case rows.Decimal:
				return newPGNumerics(c)
			default:
				return nil
			}
		},
	}
}

// counted writes values as they are, after their length.
type counted struct{ maxBytes int }

func (v *counted) max() int { return 4 + v.maxBytes }

func (v *counted) append(dst []byte, column *rows.Vector, i int) []byte {
	b := column.Value(i)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, b...)
}

// bigEndian writes integers as PostgreSQL's int8send does. Their length is written before them.
type bigEndian struct{}

func (*bigEndian) max() int { return 8 }

func (*bigEndian) append(dst []byte, column *rows.Vector, i int) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(column.Ints[i]))
}

func (*bigEndian) stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int) {
	for i, v := range column.Ints[:n] {
		p := int(at[i*stride])
		binary.BigEndian.PutUint64(buf[p:p+8], uint64(v))
	}
}

// pgDates writes Date columns as PostgreSQL's date_send does: days since 2000-01-01 as int32.
type pgDates struct{}

const (
	pgEpochDay    = 10_957 // 2000-01-01 in days since 1970-01-01
	pgEpochMicros = pgEpochDay * daySeconds * secondMicros
)

func (*pgDates) max() int { return 4 }

func (*pgDates) append(dst []byte, column *rows.Vector, i int) []byte {
	checkDate(column.Ints[i])
	return binary.BigEndian.AppendUint32(dst, uint32(column.Ints[i]-pgEpochDay))
}

func (*pgDates) stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int) {
	for i, v := range column.Ints[:n] {
		checkDate(v)
		p := int(at[i*stride])
		binary.BigEndian.PutUint32(buf[p:p+4], uint32(v-pgEpochDay))
	}
}

// pgTimes writes Timestamp columns as PostgreSQL's timestamp_send does: microseconds since 2000-01-01 as int64.
type pgTimes struct{}

func (*pgTimes) max() int { return 8 }

func (*pgTimes) append(dst []byte, column *rows.Vector, i int) []byte {
	checkTime(column.Ints[i])
	return binary.BigEndian.AppendUint64(dst, uint64(column.Ints[i]-pgEpochMicros))
}

func (*pgTimes) stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int) {
	for i, v := range column.Ints[:n] {
		checkTime(v)
		p := int(at[i*stride])
		binary.BigEndian.PutUint64(buf[p:p+8], uint64(v-pgEpochMicros))
	}
}

// pgNumerics writes Decimal columns as PostgreSQL's numeric_send does (src/backend/utils/adt/numeric.c), after their
// length: as int16 the number of base-10000 digits, the weight of the first one as a power of 10000, the sign and the
// decimal digits after the point; then the base-10000 digits, without zeros at either end.
type pgNumerics struct {
	scale   int
	most    uint64 // the largest value
	lowest  uint64 // range of the decimal digits in the last base-10000 digit: 10 … 10000 …
	shift   uint64 // … and their factor, 10000 / lowest
	behind  int    // base-10000 digits after the point
	largest int    // bytes
}

const (
	pgBase     = 10_000
	pgNegative = 0x4000
)

func newPGNumerics(c rows.Column) *pgNumerics {
	behind := (c.Scale + 3) / 4
	lowest := powerOfTen(c.Scale - (behind-1)*4)
	return &pgNumerics{
		scale: c.Scale, most: powerOfTen(c.Digits) - 1,
		lowest: lowest, shift: pgBase / lowest, behind: behind,
		largest: 4 + 8 + 2*((c.Digits-c.Scale+3)/4+behind),
	}
}

func (p *pgNumerics) max() int { return p.largest }

func (p *pgNumerics) append(dst []byte, column *rows.Vector, i int) []byte {
	v := column.Ints[i]
	u := magnitude(v, p.most)
	// Digits from the last to the first: those after the point, then those before it.
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
