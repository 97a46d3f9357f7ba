// Package rows describes what a table holds: columns with types, and blocks of rows held column by column.
//
// It is the bottom of the data path. A dataset fills blocks, an encoder turns them into a format, and neither knows a
// database.
package rows

import (
	"fmt"
	"math"
)

// Type is what a column holds.
type Type uint8

// The types a dataset may use. A format that cannot carry one of them refuses the schema when its encoder is made.
const (
	Int64     Type = iota + 1 // 64-bit signed integer
	Bytes                     // any bytes, 0 … MaxBytes of them
	Text                      // valid UTF-8, 0 … MaxBytes bytes of it
	Date                      // days since 1970-01-01, between years 1 and 9999
	Timestamp                 // microseconds since 1970-01-01 00:00:00, without a time zone, between years 1 and 9999
	Decimal                   // a number with Column.Scale digits behind the point: its value times 10^Scale, which has at most Column.Digits digits
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
	case Date:
		return "date"
	case Timestamp:
		return "timestamp"
	case Decimal:
		return "decimal"
	default:
		return fmt.Sprintf("rows.Type(%d)", uint8(t))
	}
}

// Variable reports whether values of the type have a length of their own, which verification sums up.
func (t Type) Variable() bool { return t == Bytes || t == Text }

// Size returns the column data of a value in bytes, as payload is counted; 0 for the variable types.
func (t Type) Size() int64 {
	switch t {
	case Int64, Timestamp, Decimal:
		return 8
	case Date:
		return 4
	default:
		return 0
	}
}

// Column is one column of a dataset's table.
type Column struct {
	Name string
	Type Type
	// MaxBytes bounds the length of a value of a variable type; 0 for the others.
	MaxBytes int
	// Declared is the length that a table declares for a variable column where that is more than MaxBytes, since the
	// table comes from elsewhere; 0 = MaxBytes. It is for databases whose types have a length, and costs no memory here.
	Declared int
	// Digits and Scale of a Decimal column: all digits, 1 to 18 of them, and those behind the point, 1 to Digits.
	Digits, Scale int
	// JSON reports whether every value of a Text column is a JSON document, for databases that can check it.
	JSON bool
	// Derived reports whether the value is a function of the row number alone. Derived columns are stamped into buffers
	// that were filled before the clock started; all others are drawn from the seed. A derived value of a variable type
	// is Plain and has MaxBytes bytes in every row, or it could not be stamped.
	Derived bool
	// Plain promises that no value holds a byte that any format escapes or reads as a delimiter: NUL, 0x01, 0x02, TAB,
	// LF, CR, 0x1A, " ' , and \. Encoders then copy values without looking at them, and a row's size is known exactly
	// instead of twice too large. It means nothing for types that are not variable.
	Plain bool
}

// Term is one summand of a row number: (value of Column − Minus) × Times.
type Term struct {
	// Column is an index into Schema.Columns; the column is derived, and an Int64, a Timestamp or a Text. The value of
	// a Timestamp column is its microseconds since 1970. A Text column holds the number's decimal digits, padded with
	// zeros on the left to MaxBytes of them, so that texts sort as their numbers do.
	Column int
	Minus  int64
	Times  int64
}

// Schema is the shape of a dataset's table.
type Schema struct {
	Dataset string // the dataset's name, which is also the default table name
	Columns []Column
	// Number gives the row number back from a row's derived columns, as a sum of terms: proof of arrival groups the
	// rows found in a table by it. It is data, not SQL, so that every dialect writes its own expression.
	//
	// What the terms behind the first add up to is at least 0 and less than its Times, as the digits behind the first one
	// of a number are: so a range of rows is a range of the first column, too.
	Number []Term
	// MeanRowBytes is the column data of a row on average, rounded to whole bytes, where lengths vary; 0 = MaxRowBytes in
	// every row. Sizes become numbers of rows by it; it bounds nothing.
	MeanRowBytes int64
}

// RowBytes returns the column data of a row on average, which the size of a run is counted by.
func (s Schema) RowBytes() int64 {
	if s.MeanRowBytes > 0 {
		return s.MeanRowBytes
	}
	return s.MaxRowBytes()
}

// Key returns the column that the row number is read from first: the one a primary key, a shard key or a range
// condition is made of.
func (s Schema) Key() Column { return s.Columns[s.Number[0].Column] }

// TextKey reports whether a row's number is, by itself, the digits of the one text column that it is read from: then a
// row is found by that text, without a conversion that no index is made for.
func (s Schema) TextKey() bool {
	return len(s.Number) == 1 && s.Number[0].Minus == 0 && s.Number[0].Times == 1 && s.Key().Type == Text
}

// TimeKey reports whether a row's number is, by itself, the microseconds between a base and the one timestamp that it
// is read from: then a row is found by that timestamp, which an index is made of.
func (s Schema) TimeKey() bool {
	return len(s.Number) == 1 && s.Number[0].Times == 1 && s.Key().Type == Timestamp
}

// MaxNumber returns the largest row number that the derived columns carry, up to the largest int64: rows 0 … MaxNumber
// can be made and found again. Only the first term of Number bounds it; what the others add is less than that term's
// Times.
func (s Schema) MaxNumber() int64 {
	first := s.Number[0]
	most := s.Columns[first.Column].largest()
	if first.Minus < 0 && most > math.MaxInt64+first.Minus {
		return math.MaxInt64
	}
	most -= first.Minus
	if most > (math.MaxInt64-(first.Times-1))/first.Times {
		return math.MaxInt64
	}
	return most*first.Times + first.Times - 1
}

// lastMicros is the last value of a Timestamp: a microsecond before the year 10000.
const lastMicros = 2_932_897*24*60*60*1_000_000 - 1

// largest returns the largest value of a term's column, or the largest number whose digits it holds, as far as an
// int64 goes.
func (c Column) largest() int64 {
	switch c.Type {
	case Timestamp:
		return lastMicros
	case Text:
		if c.MaxBytes > 18 {
			return math.MaxInt64
		}
		return powerOfTen(c.MaxBytes) - 1
	default:
		return math.MaxInt64
	}
}

// powerOfTen is 10^n, 0 ≤ n ≤ 18.
func powerOfTen(n int) int64 {
	power := int64(1)
	for range n {
		power *= 10
	}
	return power
}

// Names lists the column names in order.
func (s Schema) Names() []string {
	names := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		names[i] = c.Name
	}
	return names
}

// MaxRowBytes returns the most column data one row can hold: MaxBytes for a variable column, Type.Size for the others.
func (s Schema) MaxRowBytes() int64 {
	var n int64
	for _, c := range s.Columns {
		if c.Type.Variable() {
			n += int64(c.MaxBytes)
		} else {
			n += c.Type.Size()
		}
	}
	return n
}
