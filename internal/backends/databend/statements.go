package databend

import (
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

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
	from := "@" + stage
	if f == batch.Parquet {
		from = s.fromParquet(from)
	}
	return s.copyFiles(from, s.Columns(s.Schema), files, fileFormat(f))
}

// fromParquet is where COPY takes the columns from. It makes a VECTOR of an array by itself, but not of a NULL, which has no
// numbers: "Array value cast to a vector has incorrect dimension", whatever is around that cast (1.2.895).
func (s statements) fromParquet(stage string) string {
	values, differ := make([]string, len(s.Schema.Columns)), false
	for i, c := range s.Schema.Columns {
		values[i] = s.Column(c.Name)
		if c.Type == rows.Float32s && c.Nullable {
			zeros := strings.TrimSuffix(strings.Repeat("0,", c.Dims()), ",")
			values[i] = fmt.Sprintf("IF(%[1]s IS NULL, NULL, CAST(IF(%[1]s IS NULL, [%[2]s], %[1]s) AS %[3]s))",
				values[i], zeros, s.SQL(c))
			differ = true
		}
	}
	if !differ {
		return stage
	}
	return fmt.Sprintf("(SELECT %s FROM %s)", strings.Join(values, ", "), stage)
}

func (s statements) copyFiles(from, columns string, files []string, format string) string {
	return fmt.Sprintf("COPY INTO %s (%s) FROM %s FILES = (%s) %s ON_ERROR = abort",
		s.Table, columns, from, literals(files), format)
}

func (s statements) deleteRows(r loader.KeyRange) string {
	return fmt.Sprintf("DELETE FROM %s WHERE %s", s.Table, s.Within(r))
}
