package databend

import (
	"fmt"
	"math"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// A backslash escapes in Databend's strings.
var quote, literal = sqlload.Backtick, sqlload.EscapedLiteral

func literals(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = literal(t)
	}
	return strings.Join(quoted, ", ")
}

// dialect is Databend's sqlload.Dialect.
//
// DIV and // divide integers, / does not. DECIMAL has 76 digits at most; 38 fit into 128 bits and are faster. SUM of
// integers has 64 bits, which the squares of a batch of three million rows exceed. OCTET_LENGTH takes strings only.
// Fetch reads days, microseconds, and hexadecimal digits of bytes, whose plain output depends on a setting.
//
// A timestamp as BIGINT is its microseconds in any time zone. It is compared with plain texts, which are read in the
// session's zone, UTC, when the statement is planned: ten thousand of them in a list take 0.14 s, and 0.21 s as
// TIMESTAMP '…'. Leading is not needed: the server skips the blocks in whose range of values an expression cannot be
// true (range pruning, tried on 1.2.895).
func dialect() sqlload.Dialect {
	const decimal = "DECIMAL(38, 0)"
	return sqlload.Dialect{
		Types: types, Keys: sqlload.NoKeys, Hex: true, Backslash: true, Quote: "`", Divide: "%s DIV %d", TextNumber: whole,
		Decimal: decimal, Wide: decimal, Wider: "DECIMAL(76, %d)", BytesLength: "LENGTH",
		TimeNumber: whole, TimeLiteral: "'%s'", HexNumber: hexNumber(),
	}
}

// hexNumber adds up digit by digit: the server has no function that reads hexadecimal digits as a number, and CAST
// takes no 0x (tried on 1.2.895). It takes some 4 µs a row.
func hexNumber() string {
	const digits = 15
	var sum []string
	for k := digits; k > 0; k-- {
		sum = append(sum, fmt.Sprintf("LOCATE(SUBSTR(%%[1]s, -%d, 1), '123456789abcdef') * %d", k, int64(1)<<(4*(k-1))))
	}
	return "(" + strings.Join(sum, " + ") + ")"
}

// whole is a value as an integer.
const whole = "CAST(%s AS BIGINT)"

// types are Databend's. A decimal of another precision or scale would round, or keep digits that were not sent.
var types = sqlload.Types{
	{Ours: rows.Int64, Name: "bigint", SQL: "BIGINT"},
	{Ours: rows.Date, Name: "date", SQL: "DATE", Read: whole},
	{Ours: rows.Timestamp, Name: "timestamp", SQL: "TIMESTAMP", Read: whole},
	{Ours: rows.Decimal, Name: "decimal", SQL: "DECIMAL(%d, %d)", Fits: sqlload.SameScale},
	{Ours: rows.Wide, Name: "decimal", SQL: "DECIMAL(%d, %d)", Fits: sqlload.SameScale, Read: "CAST(%s AS VARCHAR)"},
	{Ours: rows.Uint64, Name: "bigint unsigned", SQL: "BIGINT UNSIGNED"},
	{Ours: rows.Uint32, Name: "int unsigned", Also: []string{"bigint unsigned"}, SQL: "INT UNSIGNED"},
	{Ours: rows.Uint16, Name: "smallint unsigned", Also: []string{"int unsigned"}, SQL: "SMALLINT UNSIGNED"},
	{Ours: rows.Bytes, Name: "binary", SQL: "BINARY", Read: "TO_HEX(%s)"},
	{Ours: rows.Text, Name: "varchar", SQL: "VARCHAR"},
	{Ours: rows.Int32, Name: "int", Also: []string{"bigint"}, SQL: "INT"},
	{Ours: rows.Int16, Name: "smallint", Also: []string{"int", "bigint"}, SQL: "SMALLINT"},
	{Ours: rows.Int16, Name: "tinyint", Least: math.MinInt8, Largest: math.MaxInt8},
	{Ours: rows.Int16, Name: "tinyint unsigned", Largest: math.MaxUint8},
	{Ours: rows.Bool, Name: "boolean", SQL: "BOOLEAN"},
	{Ours: rows.Float64, Name: "double", SQL: "DOUBLE"},
	{Ours: rows.Float32, Name: "float", Also: []string{"double"}, SQL: "FLOAT", Read: "CAST(%s AS DOUBLE)"},
	{Ours: rows.UUID, Name: "varchar", SQL: "VARCHAR"},
	{Ours: rows.JSON, Name: "variant", SQL: "VARIANT", Read: "JSON_PRETTY(%s)"},
	{Ours: rows.Char, Name: "varchar", SQL: "VARCHAR"},
	{Ours: rows.Enum, Name: "varchar", SQL: "VARCHAR"},
	{Ours: rows.TimestampTZ, Name: "timestamp", SQL: "TIMESTAMP", Read: whole},
	{
		Ours: rows.Float32s, Name: "vector", SQL: "VECTOR(%d)", Most: 4096, Fits: sqlload.SameDims,
		Read: "CAST(CAST(%s AS VARIANT) AS VARCHAR)",
	},
}
