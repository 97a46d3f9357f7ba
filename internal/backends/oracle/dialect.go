package oracle

import (
	"slices"

	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// maxValueBytes is the longest VARCHAR2 or RAW there is, with MAX_STRING_SIZE = EXTENDED; 4000 and 2000 without.
const maxValueBytes = 32767

// dialect is Oracle's SQL. Every number is read as digits and every date in a fixed format, since the drivers convert
// NUMBER, DATE and TIMESTAMP differently. VSIZE counts the bytes of texts and of RAW.
//
// The difference of two timestamps is an interval, whose fields are exact; that of two dates is a fraction of a day,
// which is not.
//
// PURGE keeps the dropped table out of the recycle bin, where it would occupy its space.
func dialect() sqlload.Dialect {
	return sqlload.Dialect{
		Types: types, Quote: `"`, Upper: true, EmptyIsNull: true,
		Drop: "DROP TABLE %s PURGE", Any: "SELECT 1 FROM %s WHERE ROWNUM = 1",
		Divide: "TRUNC(%s / %d)", Modulo: "MOD(%s, %d)", Digits: "TO_CHAR(%s)", TextNumber: "TO_NUMBER(%s)",
		TextLength: "VSIZE", BytesLength: "VSIZE",
		HexNumber:  "TO_NUMBER(SUBSTR(RTRIM(%s), -15), 'XXXXXXXXXXXXXXX')", // a CHAR is filled up with blanks
		TimeNumber: microsSince1970, TimeLiteral: "TIMESTAMP '%s'", Leading: true,
		MaxList: 1000, // ORA-01795
	}
}

const (
	secondsMask = "YYYY-MM-DD HH24:MI:SS"
	microsMask  = secondsMask + ".FF6"
)

// withPoint makes a conversion's decimal point a point, whatever NLS_LANG, the territory or --set says.
const withPoint = "'NLS_NUMERIC_CHARACTERS=''.,'''"

const microsSince1970 = "(EXTRACT(DAY FROM (%[1]s - " + year1970 + ")) * 86400000000 + " +
	"EXTRACT(HOUR FROM (%[1]s - " + year1970 + ")) * 3600000000 + " +
	"EXTRACT(MINUTE FROM (%[1]s - " + year1970 + ")) * 60000000 + " +
	"EXTRACT(SECOND FROM (%[1]s - " + year1970 + ")) * 1000000)"

const year1970 = "TIMESTAMP '1970-01-01 00:00:00'"

// ownerOf is the schema of a name as an expression: without one, current_schema, which --set may have changed.
func ownerOf(schema string) string {
	if schema == "" {
		return "SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')"
	}
	return sqlload.Literal(schema)
}

// What reads a number, whatever the session's settings are: an integer, or one with a point.
const (
	readDigits  = "TO_CHAR(%s)"
	readDecimal = "TO_CHAR(%s, 'TM9', " + withPoint + ")"
)

// readBits reads the bits of a floating-point number: "Conversions from character strings or NUMBER to BINARY_DOUBLE can
// be inexact", and those from BINARY_FLOAT are exact (SQL Language Reference, "TO_BINARY_DOUBLE"). What is joined to a
// NULL is none.
const readBits = "NVL2(%[1]s, 'x' || RAWTOHEX(UTL_RAW.CAST_FROM_BINARY_DOUBLE(TO_BINARY_DOUBLE(%[1]s))), NULL)"

// types are Oracle's: without padding, rounding or conversion. Lengths are in bytes whatever NLS_LENGTH_SEMANTICS is,
// and timestamps have no time zone, so that the session's cannot move them.
//
// Every integer is a NUMBER: those with as many digits as a type of ours makes are read as that type, and others as one
// that has more values. Those at the end are what takes a type of ours besides.
var types = slices.Concat(sqlload.Types{
	{Ours: rows.Bool, Name: "number", SQL: "NUMBER(1)", Fits: ofDigits(1, 1), Read: readDigits},
	{Ours: rows.Int16, Name: "number", SQL: "NUMBER(5)", Fits: ofDigits(5, 5), Read: readDigits},
	{Ours: rows.Int32, Name: "number", SQL: "NUMBER(10)", Fits: ofDigits(10, 10), Read: readDigits},
	{Ours: rows.Int64, Name: "number", SQL: "NUMBER(19)", Fits: ofDigits(19, allDigits), Read: readDigits},
}, narrow(rows.Int16, 4), narrow(rows.Int64, 18), narrow(rows.Int32, 9), sqlload.Types{
	{Ours: rows.Decimal, Name: "number", SQL: "NUMBER(%d,%d)", Fits: sqlload.SameScale, Read: readDecimal},
	{Ours: rows.Wide, Name: "number", SQL: "NUMBER(%d,%d)", Fits: sqlload.SameScale, Read: readDecimal},
	{Ours: rows.Float64, Name: "binary_double", SQL: "BINARY_DOUBLE", Read: readBits},
	{Ours: rows.Float32, Name: "binary_float", Also: []string{"binary_double"}, SQL: "BINARY_FLOAT", Read: readBits},
	{Ours: rows.Date, Name: "date", SQL: "DATE", Read: "TO_CHAR(%s, '" + secondsMask + "')"},
	{
		Ours: rows.Timestamp, Name: "timestamp", SQL: "TIMESTAMP(%d)",
		Fits: sqlload.SecondDigits(0), Read: "TO_CHAR(%s, '" + microsMask + "')",
	},
	{Ours: rows.Bytes, Name: "raw", SQL: "RAW(%d)", Fits: sqlload.LongEnough},
	{Ours: rows.Text, Name: "varchar2", SQL: "VARCHAR2(%d BYTE)", Fits: sqlload.LongEnough},
	{Ours: rows.Char, Name: "char", Also: []string{"varchar2"}, SQL: "CHAR(%d BYTE)", Most: 2000, Fits: sqlload.LongEnough},
	{Ours: rows.Enum, Name: "varchar2", SQL: "VARCHAR2(%d BYTE)", Check: "%[1]s IN (%[2]s)", Fits: sqlload.LongEnough},
	// Without a CHECK (… IS JSON), which before 21c refuses a document that is a single value.
	{Ours: rows.JSON, Name: "varchar2", SQL: "VARCHAR2(%d BYTE)", Fits: sqlload.LongEnough},
	{Ours: rows.UUID, Name: "varchar2", SQL: "VARCHAR2(36 BYTE)", Fits: uuidLong},
	{Ours: rows.UUID, Name: "char", Fits: ofDigits(uuidText, uuidText)}, // a longer one would have blanks behind the digits of a key

	{Ours: rows.Bool, Name: "number", Fits: wholeNumber(1)},
	{Ours: rows.Int16, Name: "number", Fits: wholeNumber(5)},
	{Ours: rows.Int32, Name: "number", Fits: wholeNumber(10)},
	{Ours: rows.Int64, Name: "number", Fits: wholeNumber(19)},
	{Ours: rows.Uint16, Name: "number", SQL: "NUMBER(5)", Fits: sqlload.WholeNumber(5), Read: readDigits},
	{Ours: rows.Uint32, Name: "number", SQL: "NUMBER(10)", Fits: sqlload.WholeNumber(10), Read: readDigits},
	{Ours: rows.Uint64, Name: "number", SQL: "NUMBER(20)", Fits: sqlload.WholeNumber(20), Read: readDigits},
})

// narrow are the NUMBERs of at most so many digits for a type of ours.
func narrow(ours rows.Type, digits int) (all sqlload.Types) {
	most := int64(0)
	for n := range digits {
		most = 10*most + 9
		all = append(all, sqlload.Type{Ours: ours, Name: "number", Least: -most, Largest: most, Fits: ofDigits(n+1, n+1)})
	}
	return all
}

// allDigits are those of a NUMBER without parameters.
const allDigits = 38

// ofDigits fits a type of so many digits, or so long, with none behind the point.
func ofDigits(least, most int) sqlload.Fit {
	return func(params []int, _ rows.Column) bool {
		if len(params) == 0 {
			return most == allDigits
		}
		return least <= params[0] && params[0] <= most && (len(params) == 1 || params[1] == 0)
	}
}

const uuidText = len("00000000-0000-0000-0000-000000000000")

func uuidLong(params []int, _ rows.Column) bool { return len(params) > 0 && params[0] >= uuidText }

// lengthOf is the declared length of a variable column.
func lengthOf(c rows.Column) int { return max(c.MaxBytes, c.Declared, 1) }

// wholeNumber fits so many digits before the point, which a NUMBER without parameters has. A negative scale rounds to
// tens.
func wholeNumber(digits int) sqlload.Fit {
	return func(params []int, _ rows.Column) bool {
		scale := 0
		if len(params) > 1 {
			scale = params[1]
		}
		return len(params) == 0 || scale >= 0 && params[0]-scale >= digits
	}
}
