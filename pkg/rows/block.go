package rows

// Vector holds one column of a block. Which of the slices is used follows from the column's type.
type Vector struct {
	Type Type
	Ints []int64 // Int64, Date, Timestamp and Decimal: one value a row
	// Bytes and Text: all values back to back, value i being Data[Ends[i-1]:Ends[i]] with Ends[-1] read as 0.
	Data []byte
	Ends []uint32
}

// Value returns row i's bytes of a Bytes or Text vector. They belong to the block and live until its next Reset.
func (v *Vector) Value(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = v.Ends[i-1]
	}
	return v.Data[from:v.Ends[i]]
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

// Reset makes room for n rows. Number columns have n undefined values; variable columns are empty, to be appended to.
func (b *Block) Reset(n int) {
	b.Rows = n
	for i := range b.Columns {
		v := &b.Columns[i]
		if v.Type.Variable() {
			v.Data, v.Ends = v.Data[:0], v.Ends[:0]
			continue
		}
		if cap(v.Ints) < n {
			v.Ints = make([]int64, n)
		}
		v.Ints = v.Ints[:n]
	}
}

// PayloadBytes counts the column data of the block: the length of a variable value, Type.Size for the others.
func (b *Block) PayloadBytes() int64 {
	var n int64
	for i := range b.Columns {
		v := &b.Columns[i]
		if v.Type.Variable() {
			n += int64(len(v.Data))
		} else {
			n += v.Type.Size() * int64(len(v.Ints))
		}
	}
	return n
}
