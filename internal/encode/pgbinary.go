package encode

import (
	"encoding/binary"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// pgBinary is PostgreSQL's COPY … (FORMAT binary), manual page "COPY", Binary Format: a signature, flags and the length
// of a header extension (both 0); then for every row the number of columns as int16 and for every column its length as
// int32 and its bytes, all big-endian; finally the int16 −1. The length of a NULL is −1. Columns must have the exact types
// int8, int4, int2, float8, float4, bool, uuid, bytea, text (or varchar, char(n) or an enum, which are received as text is),
// jsonb, date, time, timestamp, timestamptz, numeric, pgvector's vector and arrays: the server checks lengths and converts nothing.
// An unsigned integer goes into the next wider type, which of 64 bits is a numeric.
func pgBinary(columns int) layout {
	return layout{
		format: batch.PGBinary,
		head:   "PGCOPY\n\xFF\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00",
		tail:   "\xFF\xFF",
		begin:  string(binary.BigEndian.AppendUint16(nil, uint16(columns))),
		null:   "\xFF\xFF\xFF\xFF",
		value: func(c rows.Column, _ int) writer {
			switch c.Type {
			case rows.Int64:
				return enclosed{"\x00\x00\x00\x08", "", &bigEndian{}}
			case rows.Uint32:
				return enclosed{"\x00\x00\x00\x08", "", &narrow{c.Type, 8}}
			case rows.Int32, rows.Float32, rows.Uint16:
				return enclosed{"\x00\x00\x00\x04", "", &narrow{c.Type, 4}}
			case rows.Int16:
				return enclosed{"\x00\x00\x00\x02", "", &narrow{c.Type, 2}}
			case rows.Bool:
				return enclosed{"\x00\x00\x00\x01", "", &narrow{c.Type, 1}}
			case rows.Float64:
				return enclosed{"\x00\x00\x00\x08", "", &narrow{c.Type, 8}}
			case rows.UUID:
				return enclosed{"\x00\x00\x00\x10", "", &rawUUIDs{}}
			case rows.JSON:
				return &counted{before: "\x01", maxBytes: c.MaxBytes} // the version of jsonb_recv
			case rows.Bytes, rows.Text, rows.Char, rows.Enum:
				return &counted{maxBytes: c.MaxBytes}
			case rows.Date:
				return enclosed{"\x00\x00\x00\x04", "", &pgDates{}}
			case rows.Timestamp, rows.TimestampTZ: // timestamptz_send's are UTC
				return enclosed{"\x00\x00\x00\x08", "", &pgTimes{}}
			case rows.Time:
				return enclosed{"\x00\x00\x00\x08", "", &narrow{c.Type, 8}}
			case rows.Decimal:
				return newPGNumerics(c)
			case rows.Float32s:
				return enclosed{pgVectorHead(c.Dims()), "", &pgVectors{c.Dims()}}
			case rows.Arrays:
				return newPGArrays(c, pgBinary(columns).value(*c.Of, 0))
			case rows.Wide, rows.Uint64:
				if c.Derived {
					return nil // a numeric has no fixed length
				}
				return newPGWide(c)
			default:
				return nil
			}
		},
	}
}

// counted writes values as they are, after their length and what else is before them.
type counted struct {
	before   string
	maxBytes int
}

func (v *counted) max() int { return 4 + len(v.before) + v.maxBytes }

func (v *counted) append(dst []byte, column *rows.Vector, i int) []byte {
	b := column.Value(i)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(v.before)+len(b)))
	if v.before != "" {
		dst = append(dst, v.before...)
	}
	return append(dst, b...)
}

// narrow writes the lowest bytes of numbers: int2send, int4send, float4send, float8send and boolsend.
type narrow struct {
	of    rows.Type
	bytes int
}

func (w *narrow) max() int { return w.bytes }

func (w *narrow) append(dst []byte, column *rows.Vector, i int) []byte {
	n := len(dst)
	dst = extend(dst, w.bytes)
	w.put(dst[n:], column.Ints[i])
	return dst
}

func (w *narrow) stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int) {
	for i, v := range column.Ints[:n] {
		w.put(buf[at[i*stride]:], v)
	}
}

func (w *narrow) put(to []byte, v int64) {
	switch w.of {
	case rows.Float64:
		checkFloat64(v)
	case rows.Float32:
		checkFloat32(v)
	case rows.Time:
		checkClock(v)
	default:
		checkWidth(w.of, v)
	}

	switch w.bytes {
	case 8:
		binary.BigEndian.PutUint64(to, uint64(v))
	case 4:
		binary.BigEndian.PutUint32(to, uint32(v))
	case 2:
		binary.BigEndian.PutUint16(to, uint16(v))
	default:
		to[0] = byte(checkBool(v))
	}
}

// rawUUIDs writes UUIDs as uuid_send does, as they are.
type rawUUIDs struct{}

func (*rawUUIDs) max() int { return rows.UUIDBytes }

func (*rawUUIDs) append(dst []byte, column *rows.Vector, i int) []byte {
	return append(dst, column.UUID(i)...)
}

func (*rawUUIDs) stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int) {
	for i := range n {
		copy(buf[at[i*stride]:][:rows.UUIDBytes], column.UUID(i))
	}
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
	lowest := uint64(pgBase)
	if behind > 0 {
		lowest = powerOfTen(c.Scale - (behind-1)*4)
	}
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
	if p.behind == 0 { // the first digit was one before the point
		weight = 0
	}
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
