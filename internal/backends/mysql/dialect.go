package mysql

import (
	"math"
	"slices"

	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// A backslash escapes: checkSettings refuses NO_BACKSLASH_ESCAPES.
var quote, literal = sqlload.Backtick, sqlload.EscapedLiteral

func dialect(f flavour) sqlload.Dialect {
	d := sqlload.Dialect{
		Types: f.types(), KeyTypes: keyTypes, Fold: true, Backslash: true,
		Quote: "`", Divide: "%s DIV %d", TextNumber: "CAST(%s AS SIGNED)", Decimal: "DECIMAL(65, 0)", Leading: true,
		HexNumber: "CAST(CONV(RIGHT(%s, 15), 16, 10) AS SIGNED)", UUIDText: "CASE LENGTH(%[1]s) WHEN 16 THEN HEX(%[1]s) ELSE %[1]s END",
		TimeNumber: "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', %s)", TimeLiteral: "CAST('%s' AS DATETIME(6))", Tuples: "(%s)",
	}
	if f == singleStore {
		d.Keys, d.Unique = sqlload.ShardedKeys, "UNIQUE KEY (%s) USING HASH"
	}
	return d
}

// What holds texts and raw bytes, the longest first.
var (
	blobs = []string{"longblob", "mediumblob", "blob", "tinyblob", "varbinary"}
	texts = []string{"longtext", "mediumtext", "text", "tinytext", "varchar"}
)

// narrowTexts are the texts of an ASCII character set.
var narrowTexts = []string{
	"longtext" + narrowCharset, "mediumtext" + narrowCharset, "text" + narrowCharset, "tinytext" + narrowCharset, "varchar" + narrowCharset,
}

// asciiFits fits a text that is long enough, for values of ASCII alone.
func asciiFits(params []int, want rows.Column) bool {
	return want.ASCII && sqlload.LongEnough(params, want)
}

// keyTypes are those of columns in keys. A LONGTEXT cannot be indexed without a length, and sorts and temporary tables
// with one go to disk. An index of InnoDB and of TiDB has 3,072 bytes, and utf8mb4 four for a character.
var keyTypes = sqlload.Types{
	{Ours: rows.Text, SQL: "VARCHAR(%d) CHARACTER SET utf8mb4", Most: 768},
	{Ours: rows.Bytes, SQL: "VARBINARY(%d)", Most: 3072},
	{Ours: rows.JSON},
	{Ours: rows.Float32s},
	{Ours: rows.Arrays},
}

// types are those of the flavour. SingleStore's others are not known well enough: no server has been asked.
func (f flavour) types() sqlload.Types {
	switch f {
	case singleStore:
		known := madeFor(rows.Int32, rows.Int16, rows.Bool, rows.Float64, rows.Wide, rows.UUID)
		return slices.Concat(commonTypes, known, jsonAsText)
	case mySQL:
		return slices.Concat(unsignedTypes, commonTypes, moreTypes, vectorType("HEX(%s)"))
	case tiDB:
		return slices.Concat(unsignedTypes, commonTypes, moreTypes, vectorType("CAST(%s AS CHAR)"))
	default:
		return slices.Concat(unsignedTypes, commonTypes, moreTypes)
	}
}

// madeFor are those of moreTypes by which columns of some types are made.
func madeFor(some ...rows.Type) (found sqlload.Types) {
	for _, t := range moreTypes {
		if t.SQL != "" && slices.Contains(some, t.Ours) {
			found = append(found, t)
		}
	}
	return found
}

// jsonAsText is for a server whose JSON may be another document.
var jsonAsText = sqlload.Types{{
	Ours: rows.JSON, Name: "longtext", Also: texts, SQL: "LONGTEXT CHARACTER SET utf8mb4", Fits: sqlload.LongEnough,
}}

// vectorType is VECTOR. MySQL's VECTOR_TO_STRING shows six digits only, and so does all that OceanBase has (seekdb
// 1.4.0), whose vectors could not be proven. No server with MariaDB's has been asked.
func vectorType(read string) sqlload.Types {
	return sqlload.Types{{Ours: rows.Float32s, Name: "vector", SQL: "VECTOR(%d)", Most: 16_383, Fits: sqlload.SameDims, Read: read}}
}

// unsignedTypes are before the others, which take such columns for signed values.
var unsignedTypes = sqlload.Types{
	{Ours: rows.Uint64, Name: "bigint unsigned", SQL: "BIGINT UNSIGNED"},
	{Ours: rows.Uint32, Name: "int unsigned", Also: []string{"bigint unsigned"}, SQL: "INT UNSIGNED"},
	{Ours: rows.Uint16, Name: "smallint unsigned", Also: []string{"int unsigned"}, SQL: "SMALLINT UNSIGNED"},
}

// mostScale is how many digits a DECIMAL may have behind the point.
const mostScale = 30

// commonTypes are those of the family. A TIMESTAMP would be moved by the session's time zone; another scale, or fewer
// digits of a second, would round in silence.
var commonTypes = sqlload.Types{
	{Ours: rows.Int64, Name: "bigint", SQL: "BIGINT"},
	{Ours: rows.Int64, Name: "bigint unsigned", Unsigned: true}, // a difference below 0 is an error (1690)
	{Ours: rows.Date, Name: "date", SQL: "DATE"},
	{Ours: rows.Timestamp, Name: "datetime", SQL: "DATETIME(%d)", Fits: sqlload.SecondDigits(0)},
	{Ours: rows.Decimal, Name: "decimal", SQL: "DECIMAL(%d,%d)", Fits: sqlload.SameScale},
	{Ours: rows.Bytes, Name: "longblob", Also: blobs, SQL: "LONGBLOB", Fits: sqlload.LongEnough},
	{
		Ours: rows.Text, Name: "longtext", Also: slices.Concat(texts, blobs),
		SQL: "LONGTEXT CHARACTER SET utf8mb4", Fits: sqlload.LongEnough,
	},
}

// moreTypes are those of all but SingleStore. A float whose digits are given rounds to them. A UUID is its text, which
// MariaDB's own type takes, too; of a BINARY(16) see loadData. MariaDB's JSON is a LONGTEXT. A TIMESTAMP is a moment,
// which sessions in UTC write and read as it is.
var moreTypes = sqlload.Types{
	{Ours: rows.Text, Name: narrowTexts[0], Also: narrowTexts[1:], Fits: asciiFits},
	{Ours: rows.Char, Name: narrowTexts[0], Also: narrowTexts[1:], Fits: asciiFits},
	{Ours: rows.Decimal, Name: "decimal unsigned", Fits: sqlload.SameScale},
	{Ours: rows.Wide, Name: "decimal", Also: []string{"decimal unsigned"}, SQL: "DECIMAL(%d,%d)", Most: mostScale, Fits: sqlload.SameScale},
	{Ours: rows.Time, Name: "time", SQL: "TIME(%d)", Fits: sqlload.SecondDigits(0)},
	{Ours: rows.Int16, Name: "tinyint", Least: math.MinInt8, Largest: math.MaxInt8, Fits: noBoolean},
	{Ours: rows.Int16, Name: "tinyint unsigned", Largest: math.MaxUint8, Fits: noBoolean},
	{Ours: rows.Int32, Name: "mediumint", Least: -1 << 23, Largest: 1<<23 - 1},
	{Ours: rows.Int32, Name: "mediumint unsigned", Largest: 1<<24 - 1},
	{Ours: rows.Int32, Name: "int", Also: []string{"bigint"}, SQL: "INT"},
	{Ours: rows.Int32, Name: "int unsigned", Also: []string{"bigint unsigned"}},
	{Ours: rows.Int16, Name: "smallint", Also: []string{"mediumint", "int", "bigint"}, SQL: "SMALLINT"},
	{Ours: rows.Int16, Name: "smallint unsigned", Also: []string{"mediumint unsigned", "int unsigned", "bigint unsigned"}},
	{Ours: rows.Bool, Name: "tinyint", Also: []string{"tinyint unsigned", "smallint", "int", "bigint"}, SQL: "TINYINT(1)"},
	{Ours: rows.Float64, Name: "double", Also: []string{"double unsigned"}, SQL: "DOUBLE", Fits: noDigits},
	{Ours: rows.Float32, Name: "float", Also: []string{"float unsigned", "double", "double unsigned"}, SQL: "FLOAT", Fits: noDigits, Read: "%s + 0e0"}, // alone it is shown with 6 digits
	{Ours: rows.Char, Name: "char", Also: texts, SQL: "CHAR(%d) CHARACTER SET utf8mb4", Fits: sqlload.LongEnough},
	{Ours: rows.UUID, Name: "char", Also: []string{"varchar", "varchar" + narrowCharset, "varchar" + otherCharset}, SQL: "CHAR(36)", Fits: uuidLong},
	{Ours: rows.UUID, Name: "uuid"},
	{Ours: rows.UUID, Name: "binary", Fits: func(params []int, _ rows.Column) bool { return slices.Equal(params, []int{rows.UUIDBytes}) }},
	{Ours: rows.JSON, Name: "json", SQL: "JSON"},
	{Ours: rows.JSON, Name: "longtext", Also: texts, Fits: sqlload.LongEnough},
	{Ours: rows.Arrays, Name: "json", Also: texts[:1], SQL: "JSON"},
	{Ours: rows.Enum, Name: "enum", SQL: "ENUM(%s) CHARACTER SET utf8mb4"},
	{Ours: rows.Enum, Name: "longtext", Also: append([]string{"char"}, texts...), Fits: sqlload.LongEnough},
	{Ours: rows.TimestampTZ, Name: "timestamp", SQL: "TIMESTAMP(%d)", Fits: sqlload.SecondDigits(0)},
	{Ours: rows.Uint64, Name: "decimal", Also: []string{"decimal unsigned"}, Fits: sqlload.WholeNumber(20)},
}

// noBoolean fits a TINYINT that is no TINYINT(1), which is how the family writes BOOLEAN.
func noBoolean(params []int, _ rows.Column) bool { return !slices.Equal(params, []int{1}) }

// noDigits fits a type without parameters.
func noDigits(params []int, _ rows.Column) bool { return len(params) == 0 }

// uuidLong fits the text of a UUID.
func uuidLong(params []int, _ rows.Column) bool { return len(params) == 1 && params[0] >= 36 }
