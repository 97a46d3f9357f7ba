package databend

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
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
	{Ours: rows.Float32s, Name: "vector", SQL: "VECTOR(%d)", Most: 4096, Fits: sqlload.SameDims, Read: inJSON},
	{Ours: rows.Arrays, Name: "[]", SQL: "ARRAY(%s)", Read: inJSON},
}

// inJSON is a list as JSON, whose numbers have all their digits.
const inJSON = "CAST(CAST(%[1]s AS VARIANT) AS VARCHAR)"

// What the server does not read in a format (tried on 1.2.895).
var (
	arraysInCSV = loader.Refusal{
		Format: batch.CSV, Type: rows.Arrays,
		Why: "it has PostgreSQL's {1,2}, and Databend reads [1,2]: use ndjson or parquet",
	}
	nullVectors = loader.Refusal{
		Format: batch.Parquet, Type: rows.Float32s, Nulls: true,
		Why: "Databend makes no VECTOR of a NULL: use csv or ndjson, --method stage-load, " +
			"or remove nulls from the dataset's file",
	}
)

// elementNames are the types of elements that the catalog writes in another way than those of columns.
var elementNames = map[string]string{
	"int64": "bigint", "int32": "int", "int16": "smallint", "int8": "tinyint", "uint64": "bigint unsigned",
	"uint32": "int unsigned", "uint16": "smallint unsigned", "uint8": "tinyint unsigned",
	"float64": "double", "float32": "float", "string": "varchar",
}

// arrayType reads ARRAY(DECIMAL(9, 2)) as sqlload has arrays; is reports whether it is one.
func arrayType(text string) (array sqlload.ServerType, is bool) {
	element, is := strings.CutPrefix(strings.ToLower(text), "array(")
	if !is {
		return array, false
	}
	array = sqlload.ParseType(strings.TrimSuffix(element, ")"))
	array.Name = cmp.Or(elementNames[array.Name], array.Name) + "[]"
	return array, true
}
