package encode

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"github.com/terapush/terapush/pkg/rows"
)

// notation is how a format of text writes the values that are not variable.
type notation struct {
	quote   string // around dates, times and UUIDs
	list    string // around vectors, which have commas
	arrays  *arrays
	zone    string // after a moment, which is in UTC
	no, yes string
}

// numeric returns the text writer of a column of numbers, times or UUIDs; nil for others.
func (n notation) numeric(c rows.Column, digits int) writer {
	switch c.Type {
	case rows.Int64, rows.Int32, rows.Int16, rows.Uint64, rows.Uint32, rows.Uint16:
		return n.integer(c, digits)
	case rows.Time:
		return enclosed{n.quote, n.quote, &clocks{}}
	case rows.Wide:
		return newWideDecimals(c)
	case rows.Date:
		return enclosed{n.quote, n.quote, newDates()}
	case rows.Timestamp:
		return enclosed{n.quote, n.quote, &times{}}
	case rows.TimestampTZ:
		return enclosed{n.quote, n.zone + n.quote, &times{}}
	case rows.UUID:
		return enclosed{n.quote, n.quote, &uuids{}}
	case rows.Decimal:
		return newDecimals(c)
	case rows.Bool:
		return &bools{[2]string{n.no, n.yes}}
	case rows.Float32, rows.Float64:
		return &floats{c.Type}
	case rows.Arrays:
		if n.arrays == nil {
			return nil
		}
		return n.arrays.writer(c, n)
	case rows.Float32s:
		return enclosed{n.list, n.list, &vectors{c.Dims()}}
	default:
		return nil
	}
}

// integer returns the text writer of a column of integers.
func (n notation) integer(c rows.Column, digits int) writer {
	switch {
	case c.Derived:
		return padded{width: digits, pad: '0'}
	case c.Type == rows.Uint64:
		return &unsignedNumber{}
	default:
		return &plainNumber{}
	}
}

// nullable writes the values of a column of which some are NULL. Their delimiters are its own: a NULL has none.
type nullable struct {
	value
	open, close, null constant
}

func (n *nullable) max() int {
	return max(len(n.open.text)+n.value.max()+len(n.close.text), len(n.null.text))
}

func (n *nullable) append(dst []byte, column *rows.Vector, i int) []byte {
	if column.IsNull(i) {
		return n.null.append(dst)
	}
	dst = n.open.append(dst)
	dst = n.value.append(dst, column, i)
	return n.close.append(dst)
}

// bools writes one of two words.
type bools struct{ words [2]string }

func (b *bools) max() int { return max(len(b.words[0]), len(b.words[1])) }

func (b *bools) append(dst []byte, column *rows.Vector, i int) []byte {
	return append(dst, b.words[checkBool(column.Ints[i])]...)
}

func checkBool(v int64) int64 {
	if uint64(v) > 1 {
		panic(fmt.Sprintf("encode: %d in a column of type bool", v))
	}
	return v
}

// floats writes the shortest text from which a reader that rounds correctly makes the same bits. Of 32 bits it is that of the
// 64 bits with the same value: MySQL reads every number as 64 bits, and refuses -3.4028235e+38, which is beyond a FLOAT then.
type floats struct{ of rows.Type }

func (*floats) max() int { return len("-2.2250738585072014e-308") }

func (f *floats) append(dst []byte, column *rows.Vector, i int) []byte {
	if f.of == rows.Float32 {
		return strconv.AppendFloat(dst, float64(checkFloat32(column.Ints[i])), 'g', -1, 64)
	}
	return strconv.AppendFloat(dst, checkFloat64(column.Ints[i]), 'g', -1, 64)
}

// checkFloat64 returns the number of some bits. It panics if it is not finite, which JSON and MySQL cannot say.
func checkFloat64(v int64) float64 {
	f := math.Float64frombits(uint64(v))
	if math.IsInf(f, 0) || math.IsNaN(f) {
		panic(fmt.Sprintf("encode: %v is no finite number", f))
	}
	return f
}

func checkFloat32(v int64) float32 {
	f := math.Float32frombits(uint32(v))
	checkFloat64(int64(math.Float64bits(float64(f))))
	return f
}

// checkWidth panics if an integer does not fit its type, for formats that would cut it off; other readers refuse it.
func checkWidth(t rows.Type, v int64) {
	fits := true
	switch t {
	case rows.Int32:
		fits = v == int64(int32(v))
	case rows.Int16:
		fits = v == int64(int16(v))
	case rows.Uint32:
		fits = v == int64(uint32(v))
	case rows.Uint16:
		fits = v == int64(uint16(v))
	}
	if !fits {
		panic(fmt.Sprintf("encode: %d in a column of type %s", v, t))
	}
}

// uuids writes UUIDs as RFC 9562 does, in small letters.
type uuids struct{}

const uuidBytes = len("00000000-0000-0000-0000-000000000000")

func (*uuids) max() int { return uuidBytes }

func (*uuids) append(dst []byte, column *rows.Vector, i int) []byte {
	n := len(dst)
	dst = extend(dst, uuidBytes)
	formatUUID(dst[n:], column.UUID(i))
	return dst
}

func (*uuids) stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int) {
	for i := range n {
		p := int(at[i*stride])
		formatUUID(buf[p:p+uuidBytes], column.UUID(i))
	}
}

// formatUUID writes over the first uuidBytes of text.
func formatUUID(text, id []byte) {
	text, id = text[:uuidBytes], id[:rows.UUIDBytes]
	for i, to := range uuidPlaces {
		binary.LittleEndian.PutUint16(text[to:], hexPairs[id[i]])
	}
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
}

// uuidPlaces is where the digits of each byte are in the text.
var uuidPlaces = [rows.UUIDBytes]int{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34}

// hexPairs has the digits of each byte, the first one in the lower byte.
var hexPairs = func() (pairs [256]uint16) {
	for b := range pairs {
		pairs[b] = binary.LittleEndian.Uint16(hex.AppendEncode(nil, []byte{byte(b)}))
	}
	return pairs
}()
