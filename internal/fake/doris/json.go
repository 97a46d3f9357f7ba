package doris

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode/utf8"
)

// readJSON reads rows of objects: one a line, the elements of an array, or one object. columns are the names wanted,
// in the order of the fields.
func (s settings) readJSON(data []byte, columns []string) ([]record, error) {
	if s.byLine {
		var all []record
		for line := range bytes.SplitSeq(data, []byte(s.delimiter)) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				all = append(all, readObject(line, columns))
			}
		}
		return all, nil
	}
	var elements []json.RawMessage
	if !s.outerArray {
		return []record{readObject(bytes.TrimSpace(data), columns)}, nil
	}
	if err := json.Unmarshal(data, &elements); err != nil {
		return nil, fmt.Errorf("[DATA_QUALITY_ERROR]Parse json data for array failed: %w", err)
	}
	var all []record
	for _, e := range elements {
		all = append(all, readObject(e, columns))
	}
	return all, nil
}

func readObject(line []byte, columns []string) record {
	r := record{line: line}
	if !utf8.Valid(line) { // encoding/json would replace what is not
		r.bad = "Parse json data failed. code: 10, error info: The input is not valid UTF-8"
		return r
	}
	object, err := decodeObject(line)
	if err != nil {
		r.bad = fmt.Sprintf("Parse json data failed: %v", err)
		return r
	}
	r.fields = make([]value, len(columns))
	for i, name := range columns {
		switch v := object[name].(type) {
		case json.Number:
			r.fields[i] = v.String()
		case string:
			r.fields[i] = v
		case bool:
			r.fields[i] = map[bool]string{true: "1", false: "0"}[v]
		case nil:
		default: // an object or array goes into a string column as its text
			text, err := json.Marshal(v)
			if err != nil {
				r.bad = err.Error()
				return r
			}
			r.fields[i] = string(text)
		}
	}
	return r
}

func decodeObject(line []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one value in a line")
	}
	return object, nil
}

const openBrace = json.Delim('{')

func newDecoder(data []byte) *json.Decoder { return json.NewDecoder(bytes.NewReader(data)) }
