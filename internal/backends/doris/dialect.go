package doris

import (
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// dialect is Doris' sqlload.Dialect. The SUM of BIGINT is BIGINT and wraps around silently, which the squares of a
// large batch's offsets would do; LARGEINT has 128 bits. LENGTH counts bytes.
//
// MICROSECONDS_DIFF subtracts days and times of day as integers of 64 bits, without a time zone (vdatetime_value.h).
// MICROSECOND_TIMESTAMP and UNIX_TIMESTAMP read the column in the session's zone; the latter returns a DECIMAL. A text
// that is compared with a column of times is converted when the statement is planned, with its own number of decimals:
// hence six in both. Rows are sorted by the key, so a condition on its first column narrows what is read.
func dialect() sqlload.Dialect {
	return sqlload.Dialect{
		Types: types, Keys: sqlload.OnlyPrimary, Fold: true,
		Quote: "`", Divide: "%s DIV %d", TextNumber: "CAST(%s AS BIGINT)", Decimal: "DECIMAL(38, 0)", Wide: "LARGEINT",
		HexNumber:  "CAST(CONV(RIGHT(%s, 15), 16, 10) AS BIGINT)",
		TimeNumber: "MICROSECONDS_DIFF(%s, '1970-01-01 00:00:00.000000')", TimeLiteral: "'%s'", Leading: true,
		TextLength: "LENGTH", BytesLength: "LENGTH",
	}
}

// A backslash escapes: NO_BACKSLASH_ESCAPES is off by default, and the sessions do not set it.
var quote, literal = sqlload.Backtick, sqlload.EscapedLiteral

// types are Doris'. Lengths are in bytes, and a key must not be a STRING. information_schema calls every decimal number
// decimalv3, whatever it was made as.
var types = sqlload.Types{
	{Ours: rows.Int64, Name: "bigint", Also: []string{"largeint"}, SQL: "BIGINT"},
	{Ours: rows.Date, Name: "date", Also: []string{"datev2"}, SQL: "DATE"},
	{Ours: rows.Timestamp, Name: "datetime", Also: []string{"datetimev2"}, SQL: "DATETIME(6)", Fits: sqlload.SecondDigits(0)},
	{Ours: rows.Decimal, Name: "decimal", Also: []string{"decimalv3"}, SQL: "DECIMAL(%d, %d)", Fits: sqlload.SameScale},
	{Ours: rows.Text, Name: "varchar", SQL: "VARCHAR(%d)", Most: 65533, Fits: sqlload.LongEnough},
	{Ours: rows.Text, Name: "string", Also: []string{"text"}, SQL: "STRING"},
}
