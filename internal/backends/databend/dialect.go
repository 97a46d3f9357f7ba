package databend

import (
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

// statements are the SQL about one table.
type statements struct{ sqlload.Statements }

func newStatements(n tableName, s rows.Schema) statements {
	return statements{sqlload.Statements{Dialect: dialect(), Schema: s, Table: n.quoted()}}
}

// createTable makes every column NOT NULL that has no NULLs, so that a value that is read as NULL by accident is an
// error. Databend has no primary keys.
func (s statements) createTable() string {
	lines := make([]string, len(s.Schema.Columns))
	for i, c := range s.Schema.Columns {
		lines[i] = "  " + s.Define(c)
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s\n) COMMENT = '%s'",
		s.Table, strings.Join(lines, ",\n"), loader.MadeBy)
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

// formatOption is one option of a FILE_FORMAT, as SQL in streaming loads and COPY, as JSON in attachments.
type formatOption struct {
	name, value string
	text        bool // a string in SQL; a word or a number otherwise
}

// formatOptions leave nothing to defaults, which differ between versions, and between the server's code and its manual
// (COMPRESSION is NONE in the code, AUTO in the manual).
//
// An empty CSV field is the empty string. For a quoted one newer servers have QUOTED_EMPTY_FIELD_AS, with that default;
// older ones do not know it. The encoder writes no NULL.
func formatOptions(f batch.Format) []formatOption {
	f, how := f.Compression()
	compression := map[string]string{"": "NONE", batch.Gzip: "GZIP", batch.Zstd: "ZSTD"}[how]
	switch f {
	case batch.NDJSON:
		return []formatOption{
			{name: "type", value: "NDJSON"},
			{name: "null_field_as", value: "NULL"},
			{name: "missing_field_as", value: "ERROR"},
			{name: "compression", value: compression},
		}
	case batch.Parquet:
		return []formatOption{
			{name: "type", value: "PARQUET"},
			{name: "missing_field_as", value: "ERROR"},
		}
	default:
		return []formatOption{
			{name: "type", value: "CSV"},
			{name: "field_delimiter", value: ",", text: true},
			{name: "record_delimiter", value: "\n", text: true},
			{name: "quote", value: `"`, text: true},
			{name: "escape", value: "", text: true},
			{name: "skip_header", value: "0"},
			{name: "empty_field_as", value: "STRING"},
			{name: "error_on_column_count_mismatch", value: "true"},
			{name: "compression", value: compression},
		}
	}
}

// fileFormat is the options as SQL, on one line and in visible ASCII: a streaming load sends it in a header.
func fileFormat(f batch.Format) string { return inSQL(formatOptions(f)) }

// recordFormat is the options for users' files, in which a name that a JSON object lacks is NULL; the encoder writes
// all.
func recordFormat(f batch.Format) string {
	options := formatOptions(f)
	for i, o := range options {
		if f == batch.NDJSON && o.name == "missing_field_as" {
			options[i].value = "NULL"
		}
	}
	return inSQL(options)
}

func inSQL(options []formatOption) string {
	all := make([]string, len(options))
	for i, o := range options {
		value := o.value
		if o.text {
			value = strings.ReplaceAll(literal(value), "\n", `\n`)
		}
		all[i] = o.name + " = " + value
	}
	return "FILE_FORMAT = (" + strings.Join(all, ", ") + ")"
}

// attachedFormat is the options as a stage attachment takes them.
func attachedFormat(f batch.Format) map[string]string {
	all := make(map[string]string)
	for _, o := range formatOptions(f) {
		all[o.name] = o.value
	}
	return all
}

// insertStreamed is the statement of a streaming load, in the only form that the server takes.
func (s statements) insertStreamed(f batch.Format) string {
	return fmt.Sprintf("INSERT INTO %s (%s) FROM @_databend_load %s", s.Table, s.Columns(s.Schema), fileFormat(f))
}

// insertAttached takes its values from an attached file.
func (s statements) insertAttached() string {
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES", s.Table, s.Columns(s.Schema))
}

// copyInto loads files by name: a pattern would load other files too. FORCE would load a file twice, and with PURGE the
// server would not remember it: files are removed when the group is known to be in.
func (s statements) copyInto(stage string, files []string, f batch.Format) string {
	return s.copyFiles(stage, s.Columns(s.Schema), files, fileFormat(f))
}

func (s statements) copyFiles(stage, columns string, files []string, format string) string {
	return fmt.Sprintf("COPY INTO %s (%s) FROM @%s FILES = (%s) %s ON_ERROR = abort",
		s.Table, columns, stage, literals(files), format)
}

func (s statements) deleteRows(r loader.KeyRange) string {
	return fmt.Sprintf("DELETE FROM %s WHERE %s", s.Table, s.Within(r))
}
