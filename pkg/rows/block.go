package rows

import (
	"math/bits"
	"slices"
)

// Vector holds one column of a block. Which of the slices is used follows from the column's type.
type Vector struct {
	Type Type
	Ints []int64 // one value a row, of all types but those InBytes and the variable ones
	// The variable types: all values back to back, value i being Data[Ends[i-1]:Ends[i]] with Ends[-1] read as 0. UUID
	// and Wide: the values back to back, without Ends.
	Data []byte
	Ends []uint32
	// Nulls says which rows are NULL, in bit i%64 of word i/64; without words none is. The value of such a row is 0 or
	// empty. Bits behind the last row are 0.
	Nulls []uint64
}

// IsNull reports whether row i is NULL.
func (v *Vector) IsNull(i int) bool { return len(v.Nulls) > 0 && v.Nulls[i/64]>>(i%64)&1 != 0 }

// SetNulls makes Nulls the bitmap of n rows of which none is NULL, to be filled in.
func (v *Vector) SetNulls(n int) {
	words := (n + 63) / 64
	v.Nulls = slices.Grow(v.Nulls[:0], words)[:words]
	clear(v.Nulls)
}

// CountNulls returns how many rows are NULL.
func (v *Vector) CountNulls() (n int64) {
	for _, word := range v.Nulls {
		n += int64(bits.OnesCount64(word))
	}
	return n
}

// UUID returns row i's bytes of a vector of a type InBytes. They belong to the block and live until its next Reset.
func (v *Vector) UUID(i int) []byte { return v.Data[i*UUIDBytes:][:UUIDBytes:UUIDBytes] }

// Value returns row i's bytes of a vector of a variable type. They belong to the block and live until its next Reset.
func (v *Vector) Value(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = v.Ends[i-1]
	}
	return v.Data[from:v.Ends[i]]
}

// At returns row i's value as proofs compare it: nil for a NULL, the bytes of a variable type or one InBytes, and else the
// int64 of Ints. Bytes belong to the block, as those of Value do.
func (v *Vector) At(i int) any {
	switch {
	case v.IsNull(i):
		return nil
	case v.Type.Variable():
		return v.Value(i)
	case v.Type.InBytes():
		return v.UUID(i)
	default:
		return v.Ints[i]
	}
}

// Block is a number of rows, column by column. It is filled by one goroutine and reused; it grows to its largest size
// and then allocates nothing.
type Block struct {
	Rows    int
	Columns []Vector // one per column of the schema, in its order
}

// NewBlock makes an empty block for the schema.
func NewBlock(s Schema) *Block {
	b := &Block{Columns: make([]Vector, len(s.Columns))}
	for i, c := range s.Columns {
		b.Columns[i].Type = c.Type
	}
	return b
}

// Reset makes room for n rows, of which none is NULL. Fixed columns have n undefined values; variable columns are empty,
// to be appended to.
func (b *Block) Reset(n int) {
	b.Rows = n
	for i := range b.Columns {
		v := &b.Columns[i]
		v.Nulls = v.Nulls[:0]
		if v.Type.Variable() {
			v.Data, v.Ends = v.Data[:0], v.Ends[:0]
			continue
		}
		if v.Type.InBytes() {
			v.Data = slices.Grow(v.Data[:0], n*UUIDBytes)[:n*UUIDBytes]
			continue
		}
		if cap(v.Ints) < n {
			v.Ints = make([]int64, n)
		}
		v.Ints = v.Ints[:n]
	}
}

// PayloadBytes counts the column data of the block: the length of a variable value, Type.Size for the others, and nothing
// for a NULL.
func (b *Block) PayloadBytes() int64 {
	var n int64
	for i := range b.Columns {
		v := &b.Columns[i]
		if v.Type.Variable() {
			n += int64(len(v.Data))
		} else {
			n += v.Type.Size() * (int64(b.Rows) - v.CountNulls())
		}
	}
	return n
}
