package databend

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// format is a FILE_FORMAT: names in lower case.
type format map[string]string

// text is an option, or what the server takes without it.
func (f format) text(name, without string) string {
	if v, ok := f[name]; ok {
		return v
	}
	return without
}

var formatOption = regexp.MustCompile(`([A-Za-z_]+)\s*=\s*('(?:[^'\\]|\\.|'')*'|\w+)`)

// parseFormat reads the options as SQL has them.
func parseFormat(text string) (format, error) {
	f := format{}
	for _, m := range formatOption.FindAllStringSubmatch(text, -1) {
		f[strings.ToLower(m[1])] = unquote(m[2])
	}
	if rest := strings.Trim(formatOption.ReplaceAllString(text, ""), ", \n"); rest != "" {
		return nil, failed(1005, "unexpected `%s` in FILE_FORMAT", rest)
	}
	return f, f.check()
}

func (f format) check() error {
	known := map[string]bool{
		"type": true, "compression": true, "field_delimiter": true, "record_delimiter": true, "quote": true, "escape": true,
		"skip_header": true, "empty_field_as": true, "error_on_column_count_mismatch": true,
		"null_field_as": true, "missing_field_as": true,
	}
	for name := range f {
		if !known[name] {
			return failed(1006, "Invalid option: %s", name)
		}
	}
	if c := f.text("compression", "NONE"); !strings.EqualFold(c, "NONE") && !strings.EqualFold(c, "AUTO") {
		return failed(1006, "the stand-in decompresses nothing: %s", c)
	}
	switch kind := strings.ToUpper(f.text("type", "")); kind {
	case "CSV", "NDJSON":
		return nil
	default:
		return failed(1006, "the stand-in reads CSV and NDJSON, no %q", kind)
	}
}

// unquote reads an SQL literal.
func unquote(text string) string {
	inner, ok := strings.CutPrefix(text, "'")
	if !ok {
		return text
	}
	inner = strings.TrimSuffix(inner, "'")
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\'`, "'", `\"`, `"`, `''`, "'").Replace(inner)
}

// decode reads rows for the named columns of a table. whole is false for a body that broke off: its last, unfinished
// row is left out.
func (t *table) decode(data []byte, f format, names []string, whole bool) ([][]any, error) {
	at, err := t.places(names)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(f["type"], "NDJSON") {
		return t.decodeNDJSON(data, at, whole)
	}
	return t.decodeCSV(data, f, at, whole)
}

// field is one value of a CSV.
type field struct {
	text   string
	quoted bool
}

func (t *table) decodeCSV(data []byte, f format, at []int, whole bool) ([][]any, error) {
	skip, err := strconv.Atoi(f.text("skip_header", "0"))
	if err != nil {
		return nil, failed(1006, "skip_header: %v", err)
	}
	var rows [][]any
	for line := 1; len(data) > 0; line++ {
		record, rest, ended, err := csvRecord(data, f)
		if !ended && !whole {
			break
		}
		if err != nil {
			return nil, err
		}
		data = rest
		if line <= skip {
			continue
		}
		if len(record) != len(at) {
			return nil, failed(1046, "Number of columns in file (%d) does not match that of the corresponding table (%d)\nat line %d",
				len(record), len(at), line)
		}
		row := make([]any, len(t.columns))
		for i, v := range record {
			if row[at[i]], err = t.columns[at[i]].csvValue(v, f); err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, t.complete(rows)
}

// csvRecord reads one record. ended tells that its delimiter was there.
func csvRecord(data []byte, f format) (record []field, rest []byte, ended bool, err error) {
	comma, newline, quote := f.text("field_delimiter", ",")[0], f.text("record_delimiter", "\n"), f.text("quote", `"`)[0]
	for {
		var v field
		if len(data) > 0 && data[0] == quote {
			v.quoted = true
			if v.text, data, err = csvQuoted(data[1:], quote); err != nil {
				return nil, nil, false, err
			}
		} else {
			end := bytes.IndexAny(data, string(comma)+newline)
			if end < 0 {
				end = len(data)
			}
			v.text, data = string(data[:end]), data[end:]
		}
		record = append(record, v)
		switch {
		case len(data) == 0:
			return record, nil, false, nil
		case bytes.HasPrefix(data, []byte(newline)):
			return record, data[len(newline):], true, nil
		case data[0] == comma:
			data = data[1:]
		default:
			return nil, nil, false, failed(1046, "unexpected %q behind a quote", data[0])
		}
	}
}

// csvQuoted reads a field up to the quote that closes it; two of them are one.
func csvQuoted(data []byte, quote byte) (string, []byte, error) {
	var text []byte
	for {
		end := bytes.IndexByte(data, quote)
		if end < 0 {
			return "", nil, failed(1046, "a quote is not closed")
		}
		text, data = append(text, data[:end]...), data[end+1:]
		if len(data) == 0 || data[0] != quote {
			return string(text), data, nil
		}
		text, data = append(text, quote), data[1:]
	}
}

func (c column) csvValue(v field, f format) (any, error) {
	switch {
	case v.text == `\N` && !v.quoted:
		return c.null()
	case v.text != "":
		return c.parse(v.text)
	case v.quoted || strings.EqualFold(f.text("empty_field_as", "NULL"), "STRING"):
		if c.kind == "VARCHAR" || c.kind == "BINARY" {
			return "", nil
		}
		return c.null()
	case strings.EqualFold(f.text("empty_field_as", "NULL"), "FIELD_DEFAULT") && !c.nullable:
		return c.zero(), nil
	}
	return c.null()
}

func (c column) null() (any, error) {
	if !c.nullable {
		return nil, failed(1046, "column %s is NOT NULL", c.name)
	}
	return nil, nil
}

func (c column) zero() any {
	switch c.kind {
	case "BIGINT":
		return int64(0)
	case "VARCHAR", "BINARY":
		return ""
	case "DATE":
		return "1970-01-01"
	case "TIMESTAMP":
		return "1970-01-01 00:00:00.000000"
	}
	return new(big.Rat).FloatString(c.scale)
}

const timestampLayout = "2006-01-02 15:04:05.000000"

// parse reads a value as the column keeps it.
func (c column) parse(text string) (any, error) {
	if c.digits > 0 {
		return c.decimal(text)
	}
	var err error
	var at time.Time
	switch c.kind {
	case "BIGINT":
		var n int64
		if n, err = strconv.ParseInt(text, 10, 64); err == nil {
			return n, nil
		}
	case "DATE":
		if _, err = time.Parse(time.DateOnly, text); err == nil {
			return text, nil
		}
	case "TIMESTAMP":
		if at, err = time.Parse("2006-01-02 15:04:05.999999", strings.Replace(text, "T", " ", 1)); err == nil {
			return at.Format(timestampLayout), nil
		}
	case "BINARY":
		var raw []byte
		if raw, err = hex.DecodeString(text); err == nil {
			return string(raw), nil
		}
	default:
		return text, nil
	}
	return nil, failed(1046, "column %s (%s) cannot be read from %q: %v", c.name, c.kind, text, err)
}

var decimalShape = regexp.MustCompile(`^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?$`)

// decimal reads a decimal number as the engine (1.2.895) does: digits behind the scale are rounded away, halves from zero,
// and what has more in front than there is room for is refused.
func (c column) decimal(text string) (any, error) {
	n, ok := new(big.Rat).SetString(text)
	if !ok || !decimalShape.MatchString(text) {
		return nil, failed(1046, "Invalid value '%s' for column %s (%s): bad decimal literal", text, c.name, c.kind)
	}
	rounded := n.FloatString(c.scale)
	n.SetString(rounded)
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.digits-c.scale)), nil)
	if n.Abs(n).Cmp(new(big.Rat).SetInt(limit)) >= 0 {
		return nil, failed(1046, "Invalid value '%s' for column %s (%s): Decimal overflow", text, c.name, c.kind)
	}
	return rounded, nil
}

func (t *table) decodeNDJSON(data []byte, at []int, whole bool) ([][]any, error) {
	var rows [][]any
	for len(data) > 0 {
		line, rest, ended := bytes.Cut(data, []byte("\n"))
		data = rest
		if !ended && !whole {
			break
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var object map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		if err := d.Decode(&object); err != nil {
			return nil, failed(1046, "a line is no JSON object: %v", err)
		}
		row := make([]any, len(t.columns))
		for _, i := range at {
			v, err := t.columns[i].jsonValue(object)
			if err != nil {
				return nil, err
			}
			row[i] = v
		}
		rows = append(rows, row)
	}
	return rows, t.complete(rows)
}

func (c column) jsonValue(object map[string]any) (any, error) {
	v, ok := object[c.name]
	switch v := v.(type) {
	case string:
		return c.parse(v)
	case json.Number:
		// The engine makes a double of it, loses a hundredth in one number of twenty, and keeps what does not fit.
		if c.digits > 0 {
			return nil, failed(1046, "column %s (%s): the stand-in takes decimals as strings, which the server reads exactly", c.name, c.kind)
		}
		return c.parse(v.String())
	case nil:
		if !ok {
			return nil, failed(1046, "missing field: %s", c.name)
		}
		return c.null()
	}
	return nil, failed(1046, "column %s: %v is no string and no number", c.name, v)
}

// complete refuses rows that leave out a column that must have a value.
func (t *table) complete(rows [][]any) error {
	for _, row := range rows {
		for i, c := range t.columns {
			if row[i] == nil && !c.nullable {
				return failed(1046, "column %s has no value", c.name)
			}
		}
	}
	return nil
}
