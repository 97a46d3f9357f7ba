package databend

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

// format is how the rows of a file lie in it: as a text, or as Parquet.
type format struct {
	parquet bool
	text    sink.Text
}

// The formats of files in a stage, by their names.
var ofNames = map[string]format{
	".csv":     {text: sink.Text{Quote: '"', Separator: ",", Filled: true}},
	".ndjson":  {text: sink.Text{Filled: true}},
	".tsv":     {},
	".parquet": {parquet: true},
}

func formatOfName(name string) (format, error) {
	f, known := ofNames[path.Ext(name)]
	if !known {
		return f, failed(codeUnimplemented,
			"rows are counted by the name of their file, which ends in .csv, .ndjson, .tsv or .parquet")
	}
	return f, nil
}

func (f format) counter() (sink.RowCounter, error) {
	if f.parquet {
		return &sink.Parquet{}, nil
	}
	return sink.NewDelimited(f.text)
}

var (
	fileFormat   = regexp.MustCompile(`(?is)\bFILE_FORMAT\s*=\s*\((.*)$`)
	formatOption = regexp.MustCompile(`(?i)\b(\w+)\s*=\s*('(?:[^'\\]|\\.|'')*'|\w+)`)
)

// formatOfSQL reads FILE_FORMAT out of a statement. Without one rows are lines.
func formatOfSQL(sql string) (format, error) {
	m := fileFormat.FindStringSubmatch(sql)
	if m == nil {
		return format{}, nil
	}
	options := map[string]string{}
	for _, o := range formatOption.FindAllStringSubmatch(m[1], -1) {
		options[strings.ToLower(o[1])] = sink.Unquote(o[2], sink.Backslash)
	}
	return formatOf(options)
}

// formatOf reads options by their names (Databend manual, "Input & Output File Formats").
func formatOf(options map[string]string) (f format, err error) {
	if c := strings.ToLower(options["compression"]); c != "" && c != "none" && c != "auto" {
		return f, failed(codeUnimplemented, "rows cannot be counted in what is compressed ("+c+")")
	}
	kind := strings.ToLower(options["type"])
	f, known := ofNames["."+kind]
	if !known && kind != "" {
		return f, failed(codeUnimplemented, "rows cannot be counted in format "+kind+"; take CSV, TSV, NDJSON or PARQUET")
	}

	if end := options["record_delimiter"]; end != "\n" && end != "\r\n" {
		f.text.End = end
	}
	if kind == "csv" {
		if quote, given := options["quote"]; given {
			f.text.Quote = (quote + "\x00")[0] // none, or another one
		}
		if separator := options["field_delimiter"]; separator != "" {
			f.text.Separator = separator
		}
		f.text.Escape = (options["escape"] + "\x00")[0]
	}
	if skip := options["skip_header"]; skip != "" {
		if f.text.Skip, err = strconv.ParseInt(skip, 10, 32); err != nil {
			return f, failed(codeSyntax, "skip_header is a number")
		}
	}
	return f, nil
}
