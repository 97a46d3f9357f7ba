package rows

import "fmt"

// Type is what a column holds.
type Type uint8

// The types. A format that cannot carry one of them refuses the schema when its encoder is made.
const (
	Int64     Type = iota + 1 // 64-bit signed integer
	Bytes                     // any bytes, 0 … MaxBytes of them
	Text                      // valid UTF-8, 0 … MaxBytes bytes of it
	Date                      // days since 1970-01-01, between years 1 and 9999
	Timestamp                 // microseconds since 1970-01-01 00:00:00, without a time zone, between years 1 and 9999
	Decimal                   // a number with Column.Scale digits after the point: its value times 10^Scale, which has at most Column.Digits digits

	Bool        // 0 or 1
	Int16       // 16-bit signed integer
	Int32       // 32-bit signed integer
	Float32     // math.Float32bits of a finite number
	Float64     // math.Float64bits of a finite number
	UUID        // 16 bytes, in the order of its text
	TimestampTZ // a moment: microseconds since 1970-01-01 00:00:00 UTC, between years 1 and 9999
	JSON        // a JSON document in UTF-8 without line breaks, 2 … MaxBytes bytes
	Char        // text of at most MaxBytes bytes that does not end in blanks, for a database's type that fills up with them
	Enum        // one of Column.Labels, none of which is longer than MaxBytes
	Float32s    // a vector: Column.Dims finite numbers, and MaxBytes bytes: 4 of each, those of math.Float32bits, the lowest first
	Arrays      // elements of Column.Of, one behind the other, as AppendElement writes them

	Time   // a time of day: microseconds since midnight, less than a day
	Uint16 // 16-bit unsigned integer
	Uint32 // 32-bit unsigned integer
	Uint64 // 64-bit unsigned integer, whose bits are those of the int64
	Wide   // a Decimal of 19 to 38 digits: 16 bytes, as AppendWide writes them
)

// Types lists all of them.
func Types() (all []Type) {
	for t := range Type(len(typeNames)) {
		if typeNames[t] != "" {
			all = append(all, t)
		}
	}
	return all
}

var typeNames = [...]string{
	Int64: "int64", Bytes: "bytes", Text: "text", Date: "date", Timestamp: "timestamp", Decimal: "decimal",
	Bool: "bool", Int16: "int16", Int32: "int32", Float32: "float32", Float64: "float64", UUID: "uuid",
	TimestampTZ: "timestamptz", JSON: "json", Char: "char", Enum: "enum", Float32s: "vector", Arrays: "array",
	Time: "time", Uint16: "uint16", Uint32: "uint32", Uint64: "uint64", Wide: "wide decimal",
}

// String names the type in messages; it is not a database's type name.
func (t Type) String() string {
	if int(t) >= len(typeNames) || typeNames[t] == "" {
		return fmt.Sprintf("rows.Type(%d)", uint8(t))
	}
	return typeNames[t]
}

// Variable reports whether values of the type are bytes with an end, which differ in length but for those of Float32s.
func (t Type) Variable() bool { return t == Bytes || t == Float32s || t == Arrays || t.IsText() }

// IsText reports whether values are UTF-8 of different lengths.
func (t Type) IsText() bool { return t == Text || t == JSON || t == Char || t == Enum }

// IsList reports whether values are made of others.
func (t Type) IsList() bool { return t == Float32s || t == Arrays }

// IsElement reports whether arrays may have elements of the type.
func (t Type) IsElement() bool {
	switch t {
	case Int64, Int32, Int16, Bool, Decimal, Float32, Float64, Text, Char, Bytes, UUID, Date, Timestamp, TimestampTZ:
		return true
	default:
		return false
	}
}

// IsInteger reports whether values are integers of some width.
func (t Type) IsInteger() bool { return t == Int64 || t == Int32 || t == Int16 || t.IsUnsigned() }

// IsUnsigned reports whether values are integers of some width, none of which is below 0.
func (t Type) IsUnsigned() bool { return t == Uint64 || t == Uint32 || t == Uint16 }

// IsDecimal reports whether values have a point: the types of a decimal differ in how many digits they have.
func (t Type) IsDecimal() bool { return t == Decimal || t == Wide }

// InBytes reports whether values are UUIDBytes bytes of Vector.Data each.
func (t Type) InBytes() bool { return t == UUID || t == Wide }

// HasSeconds reports whether values are times, whose seconds have some digits after the point.
func (t Type) HasSeconds() bool { return t.IsTime() || t == Time }

// IsTime reports whether values are microseconds since 1970.
func (t Type) IsTime() bool { return t == Timestamp || t == TimestampTZ }

// Size returns the column data of a value in bytes, as payload is counted; 0 for the variable types.
func (t Type) Size() int64 {
	switch t {
	case UUID, Wide:
		return UUIDBytes
	case Int64, Timestamp, TimestampTZ, Decimal, Float64, Time, Uint64:
		return 8
	case Date, Int32, Float32, Uint32:
		return 4
	case Int16, Uint16:
		return 2
	case Bool:
		return 1
	default:
		return 0
	}
}

// UUIDBytes is the length of a UUID, and of a Wide decimal.
const UUIDBytes = 16
