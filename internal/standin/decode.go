package standin

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/terapush/terapush/pkg/rows"
)

// Format is how rows look in the body of a load.
type Format struct {
	Kind           Kind
	Comma, Newline string // of Separated: what ends a field and a row
}

// Kind is a format's family.
type Kind int

// The kinds.
const (
	CSV       Kind = iota + 1 // RFC 4180
	Separated                 // nothing is quoted or escaped; \N is NULL
	NDJSON                    // one object a line, by column names
	Parquet                   // flat, by column names
	Values                    // (12,'a'),(13,'b'), with the escapes of MySQL
)

// Decode reads the rows of a body. columns are the names of the fields where they have none of their own, without
// quotes; none are all of the table's. An error names the row, from 1.
func (t *Table) Decode(f Format, columns []string, data []byte) ([]Row, error) {
	if len(columns) == 0 {
		columns = t.Schema.Names()
	}
	var (
		records [][]any // in the order of the columns: string, int64, the bytes of a value, or nil
		err     error
	)
	switch f.Kind {
	case CSV:
		var lines [][]string
		lines, err = csv.NewReader(bytes.NewReader(data)).ReadAll()
		records = untyped(lines)
	case Separated:
		records = readSeparated(f, string(data))
	case NDJSON:
		records, err = readNDJSON(columns, data)
	case Parquet:
		records, err = t.readParquet(columns, data)
	case Values:
		records, err = readValues(data)
	default:
		err = fmt.Errorf("format %d", f.Kind)
	}
	if err != nil {
		return nil, err
	}
	all := make([]Row, len(records))
	for i, record := range records {
		if all[i], err = t.row(columns, record); err != nil {
			return nil, fmt.Errorf("row %d: %w", i+1, err)
		}
	}
	return all, nil
}

func (t *Table) row(columns []string, record []any) (Row, error) {
	if len(record) != len(columns) {
		return Row{}, fmt.Errorf("%d fields for %d columns", len(record), len(columns))
	}
	values := make([]any, len(t.Schema.Columns))
	for i, name := range columns {
		at := t.Index(name)
		if at < 0 || values[at] != nil {
			return Row{}, fmt.Errorf("column %s is none of the table's, or named twice", name)
		}
		values[at] = record[i]
		if text, is := record[i].(string); is {
			var err error
			if t.Column(name).Type == "UUID" {
				if text = strings.ToLower(text); !uuidShape.MatchString(text) {
					return Row{}, fmt.Errorf("column %s: %q is no UUID", name, text)
				}
			}
			if values[at], err = Parse(t.Schema.Columns[at], text); err != nil {
				return Row{}, err
			}
		}
	}
	for i, c := range t.Schema.Columns {
		if values[i] == nil && !t.Column(c.Name).Nullable {
			return Row{}, fmt.Errorf("column %s must not be NULL", c.Name)
		}
	}
	return t.Row(values)
}

func readSeparated(f Format, data string) (records [][]any) {
	var lines [][]string
	for line := range strings.SplitSeq(strings.TrimSuffix(data, f.Newline), f.Newline) {
		lines = append(lines, strings.Split(line, f.Comma))
	}
	records = untyped(lines)
	for _, record := range records {
		for i, field := range record {
			if field == `\N` {
				record[i] = nil
			}
		}
	}
	return records
}

func untyped(lines [][]string) (records [][]any) {
	for _, line := range lines {
		var record []any
		for _, field := range line {
			record = append(record, field)
		}
		records = append(records, record)
	}
	return records
}

func readNDJSON(columns []string, data []byte) (records [][]any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // what is beyond 2^53 stays what it is
	for {
		var object map[string]any
		if err := d.Decode(&object); errors.Is(err, io.EOF) {
			return records, nil
		} else if err != nil {
			return nil, fmt.Errorf("row %d: %w", len(records)+1, err)
		}
		record := make([]any, len(columns))
		for i, name := range columns {
			switch v := object[name].(type) {
			case nil, string:
				record[i] = v
			case json.Number:
				record[i] = v.String()
			default:
				text, err := json.Marshal(v) // of a column of JSON
				if err != nil {
					return nil, err
				}
				record[i] = string(text)
			}
		}
		records = append(records, record)
	}
}

func (t *Table) readParquet(columns []string, data []byte) (records [][]any, err error) {
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	to := make([]int, len(file.Schema().Columns()))
	for i, path := range file.Schema().Columns() {
		to[i] = slices.IndexFunc(columns, func(name string) bool { return strings.EqualFold(name, path[0]) })
		if to[i] < 0 || len(path) != 1 {
			return nil, fmt.Errorf("column %s of the file is none of the table's", strings.Join(path, "."))
		}
	}
	reader := parquet.NewReader(file)
	defer func() { _ = reader.Close() }()
	buffer := make([]parquet.Row, 64)
	for {
		n, err := reader.ReadRows(buffer)
		for _, row := range buffer[:n] {
			record := make([]any, len(columns))
			for _, v := range row {
				at := to[v.Column()]
				var of rows.Column
				if i := t.Index(columns[at]); i >= 0 {
					of = t.Schema.Columns[i]
				}
				if record[at], err = parquetValue(of, v); err != nil {
					return nil, err
				}
			}
			records = append(records, record)
		}
		if errors.Is(err, io.EOF) {
			return records, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// parquetValue returns days, microseconds and decimals as the integers that the file has: terapush writes no other
// units.
func parquetValue(c rows.Column, v parquet.Value) (any, error) {
	if v.IsNull() {
		return nil, nil
	}
	switch v.Kind() {
	case parquet.Int32:
		if c.Type.IsUnsigned() {
			return int64(v.Uint32()), nil
		}
		return int64(v.Int32()), nil
	case parquet.Int64:
		return v.Int64(), nil
	case parquet.Boolean:
		return parseBool(strconv.FormatBool(v.Boolean()))
	case parquet.Float:
		return int64(math.Float32bits(v.Float())), nil
	case parquet.Double:
		return int64(math.Float64bits(v.Double())), nil
	case parquet.ByteArray:
		return string(v.ByteArray()), nil
	case parquet.FixedLenByteArray:
		return bytes.Clone(v.ByteArray()), nil
	default:
		return nil, fmt.Errorf("a Parquet value of kind %v", v.Kind())
	}
}

var escapes = strings.NewReplacer(
	`\0`, "\x00", `\n`, "\n", `\r`, "\r", `\t`, "\t", `\Z`, "\x1a", `\\`, `\`, `\'`, `'`, `\"`, `"`, `''`, `'`,
)

// readValues reads what stands behind VALUES.
func readValues(data []byte) (records [][]any, err error) {
	var record []any
	for len(data) > 0 {
		c := data[0]
		data = data[1:]
		switch {
		case c == '(':
			record = []any{}
		case c == ')':
			records, record = append(records, record), nil
		case c == ',' || c == ' ' || c == '\n':
		case record == nil:
			return nil, fmt.Errorf("%q between two rows", c)
		case c == '\'':
			end := 0
			for ; end < len(data) && (data[end] != '\'' || end+1 < len(data) && data[end+1] == '\''); end++ {
				if data[end] == '\\' || data[end] == '\'' {
					end++
				}
			}
			if end >= len(data) {
				return nil, errors.New("a string is not closed")
			}
			record = append(record, escapes.Replace(string(data[:end])))
			data = data[end+1:]
		default:
			end := bytes.IndexAny(data, ",)")
			if end < 0 {
				return nil, errors.New("a row is not closed")
			}
			var value any
			if word := string(c) + string(data[:end]); word != "NULL" {
				value = word
			}
			record, data = append(record, value), data[end:]
		}
	}
	if record != nil {
		return nil, errors.New("a row is not closed")
	}
	return records, nil
}
