package doris

import (
	"math"
	"slices"

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
		Types: types, KeyTypes: keyTypes, Keys: sqlload.OnlyPrimary, Fold: true,
		Quote: "`", Divide: "%s DIV %d", TextNumber: "CAST(%s AS BIGINT)", Decimal: "DECIMAL(38, 0)", Wide: "LARGEINT",
		HexNumber:  "CAST(CONV(RIGHT(%s, 15), 16, 10) AS BIGINT)",
		TimeNumber: "MICROSECONDS_DIFF(%s, '1970-01-01 00:00:00.000000')", TimeLiteral: "'%s'", Leading: true,
		TextLength: "LENGTH", BytesLength: "LENGTH", Wider: "DECIMAL(76, %d)",
	}
}

// A backslash escapes: NO_BACKSLASH_ESCAPES is off by default, and the sessions do not set it.
var quote, literal = sqlload.Backtick, sqlload.EscapedLiteral

// mostVarchar is the longest VARCHAR in bytes, and mostChar the longest CHAR.
const (
	mostVarchar = 65533
	mostChar    = 255
)

// types are Doris'. Lengths are in bytes, and a key must not be a STRING. information_schema calls every decimal number
// decimalv3, whatever it was made as, and a BOOLEAN tinyint(1), where a TINYINT is tinyint(4)
// (schema_columns_scanner.cpp). There are no unsigned integers: each is the next wider one, which is also how Doris
// reads them from Parquet (schema_desc.cpp). A number of 32 bits may be shown with seven digits only, so there is none.
// JSON is a text: the server's own type would write it in another form.
var types = sqlload.Types{
	{Ours: rows.Int64, Name: "bigint", Also: []string{"largeint"}, SQL: "BIGINT"},
	{Ours: rows.Int32, Name: "int", Also: []string{"bigint", "largeint"}, SQL: "INT"},
	{Ours: rows.Int16, Name: "smallint", Also: []string{"int", "bigint", "largeint"}, SQL: "SMALLINT"},
	{Ours: rows.Bool, Name: "boolean", SQL: "BOOLEAN"},
	{Ours: rows.Bool, Name: "tinyint", Fits: isBoolean},
	{Ours: rows.Int16, Name: "tinyint", Least: math.MinInt8, Largest: math.MaxInt8},
	{Ours: rows.Uint64, Name: "largeint", SQL: "LARGEINT"},
	{Ours: rows.Uint32, Name: "bigint", Also: []string{"largeint"}, SQL: "BIGINT"},
	{Ours: rows.Uint16, Name: "int", Also: []string{"bigint", "largeint"}, SQL: "INT"},
	{Ours: rows.Float64, Name: "double", SQL: "DOUBLE"},
	{Ours: rows.Date, Name: "date", Also: []string{"datev2"}, SQL: "DATE"},
	{
		Ours: rows.Timestamp, Name: "datetime", Also: []string{"datetimev2"}, SQL: "DATETIME(%d)",
		Fits: sqlload.SecondDigits(0),
	},
	{Ours: rows.Decimal, Name: "decimal", Also: []string{"decimalv3"}, SQL: "DECIMAL(%d, %d)", Fits: sqlload.SameScale},
	{Ours: rows.Wide, Name: "decimal", Also: []string{"decimalv3"}, SQL: "DECIMAL(%d, %d)", Fits: sqlload.SameScale},
	{Ours: rows.Text, Name: "varchar", SQL: "VARCHAR(%d)", Most: mostVarchar, Fits: sqlload.LongEnough},
	{Ours: rows.Text, Name: "string", Also: anyLength, SQL: "STRING"},
	{Ours: rows.Char, Name: "char", SQL: "CHAR(%d)", Most: mostChar, Fits: sqlload.LongEnough},
	{Ours: rows.Char, Name: "varchar", SQL: "VARCHAR(%d)", Most: mostVarchar, Fits: sqlload.LongEnough},
	{Ours: rows.Char, Name: "string", Also: anyLength},
	{Ours: rows.UUID, Name: "varchar", Also: []string{"char"}, SQL: "VARCHAR(36)", Fits: uuidLong},
	{Ours: rows.UUID, Name: "string", Also: anyLength},
	{
		Ours: rows.Enum, Name: "varchar", Also: []string{"char"}, SQL: "VARCHAR(%d)", Most: mostVarchar,
		Fits: sqlload.LongEnough,
	},
	{Ours: rows.Enum, Name: "string", Also: anyLength},
	{Ours: rows.JSON, Name: "string", Also: anyLength, SQL: "STRING"},
	{Ours: rows.JSON, Name: "varchar", Fits: sqlload.LongEnough},
}

// anyLength are the names of a STRING in some releases.
var anyLength = []string{"text"}

// keyTypes are those of columns in keys, of which none is a STRING or a floating-point number.
var keyTypes = sqlload.Types{
	{Ours: rows.Text, SQL: "VARCHAR(%d)", Most: mostVarchar},
	{Ours: rows.JSON},
	{Ours: rows.Float64},
}

// isBoolean fits the TINYINT(1) that stands for a BOOLEAN.
func isBoolean(params []int, _ rows.Column) bool { return slices.Equal(params, []int{1}) }

// uuidLong fits the text of a UUID.
func uuidLong(params []int, want rows.Column) bool {
	want.MaxBytes = len("00000000-0000-0000-0000-000000000000")
	return sqlload.LongEnough(params, want)
}
