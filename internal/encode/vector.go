package encode

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/terapush/terapush/pkg/rows"
)

// vectors writes vectors as rows.AppendFloats does.
type vectors struct{ dims int }

func (v *vectors) max() int { return len("[]") + v.dims*len("-1.1754943508222875e-38,") }

func (v *vectors) append(dst []byte, column *rows.Vector, i int) []byte {
	return rows.AppendFloats(dst, vectorOf(column, i, v.dims))
}

// pgVectors writes vectors as pgvector's vector_send does (its src/vector.c), after their length: as int16 the number of
// dimensions and a 0, then the numbers; all big-endian. What is before the numbers is the same in every row.
type pgVectors struct{ dims int }

// pgVectorHead is what is before the numbers.
func pgVectorHead(dims int) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(2+2+dims*rows.FloatBytes))
	head = binary.BigEndian.AppendUint16(head, uint16(dims))
	return string(append(head, 0, 0))
}

func (v *pgVectors) max() int { return v.dims * rows.FloatBytes }

func (v *pgVectors) append(dst []byte, column *rows.Vector, i int) []byte {
	from := vectorOf(column, i, v.dims)
	n := len(dst)
	dst = extend(dst, len(from))
	to := dst[n:]
	for len(from) >= 8 && len(to) >= 8 { // two at a time: reversed, the second comes first
		both := bits.ReverseBytes64(binary.LittleEndian.Uint64(from))
		binary.LittleEndian.PutUint64(to, bits.RotateLeft64(both, 32))
		from, to = from[8:], to[8:]
	}
	if len(from) > 0 {
		binary.BigEndian.PutUint32(to, binary.LittleEndian.Uint32(from))
	}
	return dst
}

// vectorOf returns value i of a column of vectors. It panics if it has another number of dimensions.
func vectorOf(column *rows.Vector, i, dims int) []byte {
	value := column.Value(i)
	if len(value) != dims*rows.FloatBytes {
		panic(fmt.Sprintf("encode: %d bytes in a column of vectors of %d numbers", len(value), dims))
	}
	return value
}
