// Package rows describes rows: schemas, and blocks of rows, column by column. A dataset fills blocks, and an encoder
// turns them into a format.
package rows

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Column is one column of a dataset's table.
type Column struct {
	Name string
	Type Type
	// MaxBytes bounds the length of a value of a variable type; 0 for the others.
	MaxBytes int
	// Declared is the length that a table declares for a variable column if it is more than MaxBytes; 0 = MaxBytes. It is
	// for databases whose types have a length.
	Declared int
	// Digits and Scale of a decimal column: all digits, 1 to 18 of them, of a Wide one 19 to 38, and those after the
	// point, 0 to Digits. The values of a time are multiples of 10^Scale microseconds, 0 to SecondDigits.
	Digits, Scale int
	// Least and Most are the bounds of an integer column's values; both 0 = those of the type.
	Least, Most int64
	// JSON reports whether every value of a Text column is a JSON document, for databases that can check it. The column
	// stays text in the table, as it is; a column of type JSON is the database's own, where it has one.
	JSON bool
	// Labels are the values of an Enum column, in the order in which the database sorts them.
	Labels []string
	// Of is what the elements of an Arrays column are: a column of another type, without a name. Its values may be NULL.
	Of *Column
	// SQL is the type in the table if the user names one of the server's own, as inet; "" = what the back-end has for
	// Type, which is a Text or a JSON otherwise. The server parses the text of such a column, and may store another
	// one.
	SQL string
	// Nullable reports whether some values are NULL. Derived columns are not.
	Nullable bool
	// TakesNull reports whether a table that is made takes NULL there, although no value is NULL.
	TakesNull bool
	// Derived reports whether the value is a function of the row number alone. Derived columns are stamped into filled
	// buffers; all others are drawn from the seed. A derived value of a variable type is Plain and has MaxBytes bytes in
	// every row.
	Derived bool
	// Plain promises that no value holds a byte that any format escapes or reads as a delimiter: NUL, 0x01, 0x02, TAB,
	// LF, CR, 0x1A, " ' , and \. Encoders then copy values without a look at them, and know a row's size exactly. It is
	// for variable types only.
	Plain bool
	// ASCII promises that no value of a text has a byte above 127, so that it is the same in the character sets that
	// begin with ASCII, and so is its length.
	ASCII bool
}

// Text writes a value of a column whose values are in Vector.Ints for people: 2026-01-31, 12.50.
func (c Column) Text(v int64) string {
	switch c.Type {
	case Date:
		return time.Unix(v*24*60*60, 0).UTC().Format(time.DateOnly)
	case Timestamp, TimestampTZ, Time:
		if v%powerOfTen(c.Scale) != 0 { // what a server has made of a value
			c.Scale = 0
		}
		return string(c.AppendTime(nil, v))
	case Uint64:
		return strconv.FormatUint(uint64(v), 10)
	case Bool:
		return strconv.FormatBool(v != 0)
	case Float32:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(v))), 'g', -1, 32)
	case Float64:
		return strconv.FormatFloat(math.Float64frombits(uint64(v)), 'g', -1, 64)
	case Decimal:
		sign, all := "", uint64(v)
		if v < 0 {
			sign, all = "-", -all
		}
		digits := fmt.Sprintf("%0*d", c.Scale+1, all)
		if c.Scale == 0 {
			return sign + digits
		}
		point := len(digits) - c.Scale
		return sign + digits[:point] + "." + digits[point:]
	default:
		return strconv.FormatInt(v, 10)
	}
}

// SecondDigits is how many digits the seconds of a time have after the point, if its column's Scale is 0.
const SecondDigits = 6

// TextOf is Text of a value in the form of Vector.At, of a type that is not variable. A UUID is its digits.
func (c Column) TextOf(value any) string {
	switch v := value.(type) {
	case int64:
		return c.Text(v)
	case []byte:
		if c.Type == Wide {
			return string(AppendWideText(nil, v, c.Scale))
		}
		return fmt.Sprintf("%x", v)
	default:
		return "NULL"
	}
}

// AppendUUID appends the text of a UUID of 16 bytes, in small letters.
func AppendUUID(dst, value []byte) []byte {
	for i, bytes := range [...]int{4, 2, 2, 2, 6} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, value[:bytes])
		value = value[bytes:]
	}
	return dst
}

// AppendTime writes a value of a Timestamp, TimestampTZ or Time column as Text does, which is a multiple of the
// column's unit.
func (c Column) AppendTime(dst []byte, v int64) []byte {
	layout := "2006-01-02 15:04:05.000000"
	if c.Type == Time {
		layout = "15:04:05.000000"
	}
	layout = layout[:len(layout)-c.Scale]
	layout = strings.TrimSuffix(layout, ".")

	dst = time.UnixMicro(v).UTC().AppendFormat(dst, layout)
	if c.Type == TimestampTZ {
		dst = append(dst, "+00:00"...)
	}
	return dst
}

// Term is one summand of a row number: (value of Column − Minus) × Times.
type Term struct {
	// Column is an index into Schema.Columns; the column is derived, and an integer, a time, a Text, a Char or a UUID. The
	// value of a time is its microseconds since 1970. A Text or Char column holds the number's decimal digits, padded with
	// zeros on the left to MaxBytes of them, so that texts sort as their numbers do.
	Column int
	Minus  int64
	Times  int64
	// Hex reports whether the value is what the last 15 hexadecimal digits spell, of a UUID column, or of a Text or Char
	// column with the text of a UUID. Minus is 0 and Times 1.
	Hex bool
	// Stride above 0 exchanges the last two digits to base Stride of value − Minus, which is 0 or more. Times is 1.
	Stride int64
}

// Ordered reports whether values grow with the rows' numbers, so that an index on the column finds a range of rows.
func (t Term) Ordered() bool { return !t.Hex && t.Stride == 0 }

// Scatter exchanges the last two digits to base stride of v ≥ 0; it undoes itself.
func Scatter(v, stride int64) int64 { return v + (v%stride-v/stride%stride)*(stride-1) }

// value returns the column's value of a term that is not Hex, and what is left of a row's number for the terms behind
// it.
func (t Term) value(number int64) (value, rest int64) {
	value, rest = number/t.Times, number%t.Times
	if t.Stride > 0 {
		value = Scatter(value, t.Stride)
	}
	return value + t.Minus, rest
}

// Schema is the shape of a dataset's table.
type Schema struct {
	Dataset string // the dataset's name, which is also the default table name
	Columns []Column
	// Number is the row number as a sum of terms of the derived columns, by which verification groups rows. Every dialect
	// writes its own expression of it.
	//
	// The sum of the terms after the first is at least 0 and less than its Times, so that a range of rows is a range of
	// the first column too, if that is Ordered. A term that is not is the only one.
	Number []Term
	// Primary and Unique are the keys of a table that is made, as names of columns: of the primary key, and of each unique
	// one. Rows keep them. None: the table has columns alone.
	Primary []string
	Unique  [][]string
	// MeanRowBytes is the average column data of a row if lengths vary, by which sizes become numbers of rows; 0 =
	// MaxRowBytes in every row.
	MeanRowBytes int64
	// Limit is the largest row number if a derived column that is not in Number, Limiting, bounds it; 0 = none does.
	Limit    int64
	Limiting string
}

// RowBytes returns the average column data of a row.
func (s Schema) RowBytes() int64 {
	if s.MeanRowBytes > 0 {
		return s.MeanRowBytes
	}
	return s.MaxRowBytes()
}

// Key returns the column of the row number's first term, for primary keys, shard keys and range conditions.
func (s Schema) Key() Column { return s.Columns[s.Number[0].Column] }

// NumberNames lists the columns of the row number.
func (s Schema) NumberNames() []string {
	names := make([]string, len(s.Number))
	for i, t := range s.Number {
		names[i] = s.Columns[t.Column].Name
	}
	return names
}

// Ordered reports whether a range of rows is a range of the key's column.
func (s Schema) Ordered() bool { return s.Number[0].Ordered() }

// KeyValues returns the values of Number's columns in the row with a number; 0 of a term that is Hex.
func (s Schema) KeyValues(number int64) []int64 {
	values := make([]int64, len(s.Number))
	for i, t := range s.Number {
		if !t.Hex {
			values[i], number = t.value(number)
		}
	}
	return values
}

// TimeKey reports whether the row number is the microseconds between a base and one timestamp column. A row is then
// found by its timestamp, with an index.
func (s Schema) TimeKey() bool {
	return len(s.Number) == 1 && s.Number[0].Times == 1 && s.Key().Type.IsTime()
}

// MaxNumber returns the largest row number that the derived columns can hold, at most the largest int64.
func (s Schema) MaxNumber() int64 {
	if s.Limit > 0 {
		return min(s.Limit, s.numberBound())
	}
	return s.numberBound()
}

// numberBound is MaxNumber of the columns in Number. Only the first term bounds it; the others add less than that
// term's Times.
func (s Schema) numberBound() int64 {
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

// largest returns the largest number in a term's column, at most the largest int64.
func (c Column) largest() int64 {
	switch c.Type {
	case Int16:
		return math.MaxInt16
	case Int32:
		return math.MaxInt32
	case Uint16:
		return math.MaxUint16
	case Uint32:
		return math.MaxUint32
	case Timestamp, TimestampTZ:
		return lastMicros
	case Text, Char:
		if c.MaxBytes > 18 {
			return math.MaxInt64
		}
		return powerOfTen(c.MaxBytes) - 1
	default:
		return math.MaxInt64
	}
}

// Dims is how many numbers the values of a Float32s column have.
func (c Column) Dims() int { return c.MaxBytes / FloatBytes }

// powerOfTen is 10^n, 0 ≤ n ≤ 18.
func powerOfTen(n int) int64 {
	power := int64(1)
	for range n {
		power *= 10
	}
	return power
}

// MaxSize returns the most column data of a value in bytes.
func (c Column) MaxSize() int64 {
	if c.Type.Variable() {
		return int64(c.MaxBytes)
	}
	return c.Type.Size()
}

// Column returns the column of a name, whatever its case.
func (s Schema) Column(name string) (Column, bool) {
	for _, c := range s.Columns {
		if strings.EqualFold(c.Name, name) {
			return c, true
		}
	}
	return Column{}, false
}

// Names lists the column names in order.
func (s Schema) Names() []string {
	names := make([]string, len(s.Columns))
	for i, c := range s.Columns {
		names[i] = c.Name
	}
	return names
}

// MaxRowBytes returns the largest column data of a row.
func (s Schema) MaxRowBytes() int64 {
	var n int64
	for _, c := range s.Columns {
		n += c.MaxSize()
	}
	return n
}
