package databend

import (
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
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

// dialect is how Databend writes what sqlload leaves open.
//
// DIV and // divide integers, / does not. DECIMAL has 76 digits at most; 38 fit into 128 bits and are faster. SUM of
// integers stays an integer of 64 bits, which the squares of a batch of three million rows go beyond. OCTET_LENGTH takes
// strings only. Values are read in the form that Fetch gives them back in: days, microseconds, and bytes as hexadecimal
// digits; the server's own output of bytes depends on a setting.
//
// A timestamp as BIGINT is its microseconds, which no time zone changes. It is compared with plain texts, which are
// read in the session's zone, UTC, when the statement is planned: ten thousand of them in a list take 0.14 s, and
// 0.21 s as TIMESTAMP '…'. Leading is not for Databend: it leaves out the blocks in whose range of values an
// expression cannot be true (range pruning, tried on 1.2.895), so the first column of a number needs no condition of
// its own.
func dialect() sqlload.Dialect {
	const decimal, whole = "DECIMAL(38, 0)", "CAST(%s AS BIGINT)"
	return sqlload.Dialect{
		Type: columnType, Hex: true, Quote: "`", Divide: "%s DIV %d", TextNumber: whole,
		Decimal: decimal, Wide: decimal, BytesLength: "LENGTH",
		TimeNumber: whole, TimeLiteral: "'%s'",
		Reads: map[rows.Type]string{rows.Date: whole, rows.Timestamp: whole, rows.Bytes: "TO_HEX(%s)"},
	}
}

// statements writes the SQL about one table. It is a value, so --dry-run has it without a server.
type statements struct{ sqlload.Statements }

func newStatements(n tableName, s rows.Schema) statements {
	return statements{sqlload.Statements{Dialect: dialect(), Schema: s, Table: n.quoted()}}
}

// createTable makes the target table. Databend has no primary keys. Every column is NOT NULL: a NULL that a CSV would
// be read into by accident is an error then.
func (s statements) createTable() string {
	lines := make([]string, len(s.Schema.Columns))
	for i, c := range s.Schema.Columns {
		lines[i] = "  " + quote(c.Name) + " " + columnType(c) + " NOT NULL"
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s\n) COMMENT = '%s'",
		s.Table, strings.Join(lines, ",\n"), loader.MadeBy)
}

// columnType is a column's type, as the server writes it itself.
func columnType(c rows.Column) string {
	switch c.Type {
	case rows.Bytes:
		return "BINARY"
	case rows.Text:
		return "VARCHAR"
	case rows.Date:
		return "DATE"
	case rows.Timestamp:
		return "TIMESTAMP"
	case rows.Decimal:
		return fmt.Sprintf("DECIMAL(%d, %d)", c.Digits, c.Scale)
	default:
		return "BIGINT"
	}
}

// formatOption is one option of a FILE_FORMAT. Streaming loads and COPY want them as SQL, attachments as JSON.
type formatOption struct {
	name, value string
	text        bool // a string in SQL; a word or a number otherwise
}

// formatOptions spell out everything that decides how rows are read, since defaults differ between versions and between
// the server's code and its manual (of COMPRESSION: NONE in the code, AUTO in the manual).
//
// An empty CSV field is the empty string, quoted or not: newer servers have QUOTED_EMPTY_FIELD_AS for the quoted one,
// with that default, and older ones do not know the word. The encoder writes no NULL.
func formatOptions(f batch.Format) []formatOption {
	switch f {
	case batch.NDJSON:
		return []formatOption{
			{name: "type", value: "NDJSON"},
			{name: "null_field_as", value: "NULL"},
			{name: "missing_field_as", value: "ERROR"},
			{name: "compression", value: "NONE"},
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
			{name: "compression", value: "NONE"},
		}
	}
}

// fileFormat is the options as SQL, on one line and in visible ASCII: a streaming load sends it in a header.
func fileFormat(f batch.Format) string {
	options := formatOptions(f)
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

// insertStreamed is the statement of a streaming load; the server knows no other form of it.
func (s statements) insertStreamed(f batch.Format) string {
	return fmt.Sprintf("INSERT INTO %s (%s) FROM @_databend_load %s", s.Table, s.Columns(s.Schema), fileFormat(f))
}

// insertAttached is the statement that an attached file's rows are the values of.
func (s statements) insertAttached() string {
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES", s.Table, s.Columns(s.Schema))
}

// copyInto loads files by name. A pattern would load what else lies there. FORCE would make the server forget that it
// has loaded a file, and with PURGE it would not even remember it: files are removed when the group is known to be in.
func (s statements) copyInto(stage string, files []string, f batch.Format) string {
	return fmt.Sprintf("COPY INTO %s (%s) FROM @%s FILES = (%s) %s ON_ERROR = abort",
		s.Table, s.Columns(s.Schema), stage, literals(files), fileFormat(f))
}

// deleteRows removes the rows with numbers of a batch.
func (s statements) deleteRows(r loader.KeyRange) string {
	return fmt.Sprintf("DELETE FROM %s WHERE %s", s.Table, s.Within(r))
}
