// Package rows describes what a table holds: columns with types, and blocks of rows held column by column.
//
// It is the bottom of the data path. A dataset fills blocks, an encoder turns them into a format, and neither knows a
// database.
package rows

import "fmt"

// Type is what a column holds.
type Type uint8

// The types a dataset may use. A format that cannot carry one of them refuses the schema when its encoder is made.
const (
	Int64 Type = iota + 1 // 64-bit signed integer
	Bytes                 // any bytes, 0 … MaxBytes of them
	Text                  // valid UTF-8, 0 … MaxBytes bytes of it
)

// String names the type in messages; it is not a database's type name.
func (t Type) String() string {
	switch t {
	case Int64:
		return "int64"
	case Bytes:
		return "bytes"
	case Text:
		return "text"
	default:
		return fmt.Sprintf("rows.Type(%d)", uint8(t))
	}
}

// Variable tells whether values of the type have a length of their own, which verification sums up.
func (t Type) Variable() bool { return t == Bytes || t == Text }

// Column is one column of a dataset's table.
type Column struct {
	Name string
	Type Type
	// MaxBytes bounds the length of a value of a variable type; 0 for the others.
	MaxBytes int
	// Derived says that the value is a function of the row number alone. Derived columns are stamped into buffers that
	// were filled before the clock started; all others are drawn from the seed.
	Derived bool
	// Plain promises that no value holds a byte that any format escapes or reads as a delimiter: NUL, 0x01, 0x02, TAB,
	// LF, CR, 0x1A, " ' , and \. Encoders then copy values without looking at them, and a row's size is known exactly
	// instead of twice too large. It means nothing for types that are not variable.
	Plain bool
}

// Term is one summand of a row number: (value of Column − Minus) × Times.
type Term struct {
	Column int // index into Schema.Columns; the column is derived
	Minus  int64
	Times  int64
}

// Schema is the shape of a dataset's table.
type Schema struct {
	Dataset string // the dataset's name, which is also the default table name
	Columns []Column
	// Number gives the row number back from a row's derived columns, as a sum of terms: proof of arrival groups the
	// rows found in a table by it. It is data, not SQL, so that every dialect writes its own expression.
	Number []Term
}

// Key is the column that the row number is read from first: the one a primary key, a shard key or a range condition
// is made of.
func (s Schema) Key() Column { return s.Columns[s.Number[0].Column] }

// Names lists the column names in order.
func (s Schema) Names() []string {
	names := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		names[i] = c.Name
	}
	return names
}

// MaxRowBytes is the most column data one row can hold: 8 bytes for a number, MaxBytes for a variable column.
func (s Schema) MaxRowBytes() int64 {
	var n int64
	for _, c := range s.Columns {
		if c.Type.Variable() {
			n += int64(c.MaxBytes)
		} else {
			n += 8
		}
	}
	return n
}
