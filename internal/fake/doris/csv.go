package doris

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// record is one row of a file, before its types are known.
type record struct {
	fields []value // strings or nil; of JSON also int64 and float64
	line   []byte  // as it stood in the file
	bad    string  // why it cannot be a row
}

// readCSV splits a file into records. Doris' CSV is no RFC 4180: NULL is \N, an empty field is an empty string, and
// quotes are data unless enclose says otherwise.
func (s settings) readCSV(data []byte) []record {
	var all []record
	skip := s.skipLines
	for len(data) > 0 {
		fields, size := s.splitLine(data)
		line := bytes.TrimSuffix(data[:size], []byte(s.delimiter))
		data = data[size:]
		if skip > 0 {
			skip--
			continue
		}
		if len(line) == 0 {
			continue // the reader passes over empty lines
		}
		r := record{line: line}
		if !utf8.Valid(line) {
			r.bad = "Unable to display, only support csv data in utf8 codec, please check the data encoding"
		}
		for _, f := range fields {
			r.fields = append(r.fields, s.csvValue(f))
		}
		all = append(all, r)
	}
	return all
}

// splitLine finds the fields of the first line and its size with the delimiter.
func (s settings) splitLine(data []byte) (fields [][]byte, size int) {
	separator, delimiter := []byte(s.separator), []byte(s.delimiter)
	if s.enclose == 0 {
		line, _, found := bytes.Cut(data, delimiter)
		if size = len(line); found {
			size += len(delimiter)
		}
		return bytes.Split(line, separator), size
	}
	start, i, quoted := 0, 0, len(data) > 0 && data[0] == s.enclose
	if quoted {
		i = 1
	}
	for i < len(data) {
		rest := data[i:]
		switch {
		case s.escape != 0 && data[i] == s.escape && i+1 < len(data):
			i += 2
		case quoted && data[i] == s.enclose:
			if i+1 < len(data) && data[i+1] == s.enclose { // a doubled one is data
				i += 2
				continue
			}
			quoted = false
			i++
		case !quoted && bytes.HasPrefix(rest, delimiter):
			return append(fields, data[start:i]), i + len(delimiter)
		case !quoted && bytes.HasPrefix(rest, separator):
			fields = append(fields, data[start:i])
			i += len(separator)
			start = i
			if quoted = i < len(data) && data[i] == s.enclose; quoted {
				i++
			}
		default:
			i++
		}
	}
	return append(fields, data[start:]), len(data)
}

// csvValue reads one field. The enclosing quotes go, except a " without trim_double_quotes (csv_reader.cpp,
// _not_trim_enclose).
func (s settings) csvValue(field []byte) value {
	quote := byte(0)
	switch {
	case s.enclose != 0 && (s.enclose != '"' || s.trimQuotes):
		quote = s.enclose
	case s.enclose == 0 && s.trimQuotes:
		quote = '"'
	}
	if quote != 0 && len(field) > 1 && field[0] == quote && field[len(field)-1] == quote {
		field = field[1 : len(field)-1]
	}
	if string(field) == `\N` || s.emptyNull && len(field) == 0 {
		return nil
	}
	if s.escape == 0 && quote == 0 {
		return string(field)
	}
	var out []byte
	for i := 0; i < len(field); i++ {
		if i+1 < len(field) && (s.escape != 0 && field[i] == s.escape || quote != 0 && s.enclose != 0 && field[i] == quote && field[i+1] == quote) {
			i++
		}
		out = append(out, field[i])
	}
	return string(out)
}

// arrange puts the fields of a record in the table's order and types. An error is the reason why the row is filtered.
func (t *table) arrange(r record, at []int, strict bool) ([]value, error) {
	if r.bad != "" {
		return nil, fmt.Errorf("%s", r.bad)
	}
	if len(r.fields) != len(at) {
		more := "less"
		if len(r.fields) > len(at) {
			more = "more"
		}
		return nil, fmt.Errorf("actual column number in csv file is  %s than  schema column number.actual number: %d, schema column number: %d",
			more, len(r.fields), len(at))
	}
	row := make([]value, len(t.columns))
	given := make([]bool, len(t.columns))
	for i, f := range r.fields {
		if at[i] < 0 {
			continue // a column of the file that the table does not have
		}
		c := t.columns[at[i]]
		v, err := c.kind.fit(f)
		if err != nil && (strict || c.notNull || isTooLong(err)) {
			return nil, fmt.Errorf("column(%s) value is incorrect: %w", c.name, err)
		}
		if err != nil {
			v = nil // outside strict mode what cannot be converted becomes NULL
		}
		row[at[i]], given[at[i]] = v, true
	}
	return row, t.complete(row, given)
}

// complete sets defaults and checks for NULLs.
func (t *table) complete(row []value, given []bool) error {
	for i, c := range t.columns {
		if !given[i] && c.defaultValue != nil {
			v, err := c.kind.fit(*c.defaultValue)
			if err != nil {
				return err
			}
			row[i] = v
		}
		if row[i] == nil && c.notNull {
			return fmt.Errorf("column(%s) values is null while columns is not nullable", c.name)
		}
	}
	return nil
}
