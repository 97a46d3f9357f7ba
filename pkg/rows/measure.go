package rows

import "math/big"

// Measure is a sum over a column, by which a proof compares all rows of a batch with what was sent. Every dialect writes
// its own expression of it.
type Measure struct {
	Column int // index into Schema.Columns
	Of     Measured
}

// Measured is what a Measure sums.
type Measured uint8

// What is summed of the values of a column.
const (
	Nulls  Measured = iota + 1 // how many are NULL
	Length                     // bytes of texts and raw bytes
	Number                     // integers, and decimals times 10^Scale
)

// Measures lists what is summed of a schema's columns, in their order: the NULLs of nullable columns, the lengths of Text
// and Bytes, and the numbers that are drawn, since the derived ones are those of the row numbers. What a server keeps in a
// form of its own, as JSON, is not measured.
func (s Schema) Measures() (all []Measure) {
	for i, c := range s.Columns {
		if c.Nullable {
			all = append(all, Measure{i, Nulls})
		}
		switch {
		case c.SQL != "":
		case c.Type == Text || c.Type == Bytes:
			all = append(all, Measure{i, Length})
		case !c.Derived && (c.Type.IsInteger() || c.Type.IsDecimal()):
			all = append(all, Measure{i, Number})
		}
	}
	return all
}

// Add adds what the vector of the measure's column has to a sum.
func (m Measure) Add(sum *big.Int, v *Vector) {
	switch m.Of {
	case Nulls:
		sum.Add(sum, big.NewInt(v.CountNulls()))
	case Length:
		sum.Add(sum, big.NewInt(int64(len(v.Data))))
	case Number:
		if v.Type == Wide {
			addWide(sum, v.Data)
			return
		}
		addInts(sum, v)
	}
}

// addInts adds numbers in halves, which do not overflow: a block has less than 2^31 rows.
func addInts(sum *big.Int, v *Vector) {
	var high, low int64
	for _, n := range v.Ints {
		high += n >> 32
		low += n & (1<<32 - 1)
	}
	if v.Type == Uint64 {
		for _, n := range v.Ints { // n>>32 has taken the highest bit for a sign
			high += int64(uint64(n)>>63) << 32
		}
	}
	both := new(big.Int).Lsh(big.NewInt(high), 32)
	sum.Add(sum, both.Add(both, big.NewInt(low)))
}

// Value returns what one value adds, in the form in which loader.Fetcher returns it.
func (m Measure) Value(value any) int64 {
	switch v := value.(type) {
	case nil:
		if m.Of == Nulls {
			return 1
		}
	case []byte:
		if m.Of == Length {
			return int64(len(v))
		}
	case int64:
		if m.Of == Number {
			return v
		}
	}
	return 0
}
