package oracle

import (
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
		HexNumber: "TO_NUMBER(SUBSTR(%s, -15), 'XXXXXXXXXXXXXXX')", UUIDText: "RAWTOHEX(%s)",
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

// types are Oracle's: without padding, rounding or conversion. Lengths are in bytes whatever NLS_LENGTH_SEMANTICS is,
// and timestamps have no time zone, so that the session's cannot move them.
var types = sqlload.Types{
	{Ours: rows.Int64, Name: "number", SQL: "NUMBER(19)", Fits: wholeNumber, Read: "TO_CHAR(%s)"},
	{
		Ours: rows.Decimal, Name: "number", SQL: "NUMBER(%d,%d)",
		Fits: sqlload.SameScale, Read: "TO_CHAR(%s, 'TM9', " + withPoint + ")",
	},
	{Ours: rows.Date, Name: "date", SQL: "DATE", Read: "TO_CHAR(%s, '" + secondsMask + "')"},
	{
		Ours: rows.Timestamp, Name: "timestamp", SQL: "TIMESTAMP(6)",
		Fits: sqlload.SecondDigits(0), Read: "TO_CHAR(%s, '" + microsMask + "')",
	},
	{Ours: rows.Bytes, Name: "raw", SQL: "RAW(%d)", Fits: sqlload.LongEnough},
	{Ours: rows.Text, Name: "varchar2", SQL: "VARCHAR2(%d BYTE)", Fits: sqlload.LongEnough},
}

// lengthOf is the declared length of a variable column.
func lengthOf(c rows.Column) int { return max(c.MaxBytes, c.Declared, 1) }

// wholeNumber fits all 64 bits. A NUMBER without parameters has them, and a negative scale rounds to tens.
func wholeNumber(params []int, _ rows.Column) bool {
	return len(params) < 2 || params[1] >= 0 && params[0]-params[1] >= 19
}
