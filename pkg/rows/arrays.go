package rows

import (
	"encoding/binary"
	"fmt"
	"math"
)

// nullElement is the length of an element that is NULL.
const nullElement = math.MaxUint32

// AppendElement appends row i of a vector to a value of Arrays: its length in 4 bytes, the lowest first, and its bytes. A number
// has Type.Size of them, the lowest first.
func AppendElement(dst []byte, of *Vector, i int) []byte {
	var value []byte
	switch {
	case of.IsNull(i):
		return binary.LittleEndian.AppendUint32(dst, nullElement)
	case of.Type.Variable():
		value = of.Value(i)
	case of.Type == UUID:
		value = of.UUID(i)
	default:
		size := int(of.Type.Size())
		dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
		dst = binary.LittleEndian.AppendUint64(dst, uint64(of.Ints[i]))
		return dst[:len(dst)-8+size]
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}

// TakeElement makes the vector the first element of a value of Arrays, and returns the rest of the value. The vector then has one
// row, whose bytes it shares with the value; of its memory, only Ints, Ends and Nulls are its own.
func (v *Vector) TakeElement(value []byte) (rest []byte) {
	size := binary.LittleEndian.Uint32(value)
	value = value[4:]
	v.Ints, v.Ends, v.Nulls = append(v.Ints[:0], 0), append(v.Ends[:0], 0), v.Nulls[:0]
	if size == nullElement {
		v.SetNulls(1)
		v.Nulls[0] = 1
		return value
	}

	v.Data, rest = value[:size:size], value[size:]
	v.Ends[0] = size
	if v.Type.Variable() || v.Type == UUID {
		return rest
	}
	switch size {
	case 1:
		v.Ints[0] = int64(v.Data[0])
	case 2:
		v.Ints[0] = int64(int16(binary.LittleEndian.Uint16(v.Data)))
	case 4:
		v.Ints[0] = int64(int32(binary.LittleEndian.Uint32(v.Data)))
	default:
		v.Ints[0] = int64(binary.LittleEndian.Uint64(v.Data))
	}
	return rest
}

// AppendList writes a value of a type that IsList for people: [1,-0.5], {1,NULL,"a"}.
func (c Column) AppendList(dst, value []byte) []byte {
	if c.Type == Float32s {
		return AppendFloats(dst, value)
	}

	one := Vector{Type: c.Of.Type}
	dst = append(dst, '{')
	for n := 0; len(value) > 0; n++ {
		if n > 0 {
			dst = append(dst, ',')
		}
		value = one.TakeElement(value)
		switch {
		case one.IsNull(0):
			dst = append(dst, "NULL"...)
		case one.Type == UUID, one.Type == Bytes:
			dst = fmt.Appendf(dst, "%x", one.Data)
		case one.Type.Variable():
			dst = fmt.Appendf(dst, "%q", one.Data)
		default:
			dst = append(dst, c.Of.Text(one.Ints[0])...)
		}
	}
	return append(dst, '}')
}
