package sqlload

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/rows"
)

// readRow reads a row of SelectRows into values, as loader.Fetcher wants them; nil is a NULL.
func (s Statements) readRow(row [][]byte, values []any) (number int64, err error) {
	if len(row) != len(values)+1 {
		return 0, fmt.Errorf("a row has %d values, and %d were asked for", len(row), len(values)+1)
	}
	if number, err = ParseNumber(string(row[0])); err != nil {
		return 0, err
	}
	for i, c := range s.Schema.Columns {
		if values[i], err = s.readValue(c, row[i+1]); err != nil {
			return number, fmt.Errorf("row %d, column %s: %w", number, c.Name, err)
		}
	}
	return number, nil
}

func (d Dialect) readValue(c rows.Column, text []byte) (any, error) {
	switch {
	case text == nil && d.EmptyIsNull && c.Type.Variable() && !c.Nullable:
		return []byte{}, nil
	case text == nil:
		return nil, nil
	case c.Type == rows.UUID:
		return readUUID(text)
	case c.Type == rows.Wide:
		return c.ParseWide(string(text))
	case c.Type == rows.Bytes && d.Hex:
		n, err := hex.Decode(text, text)
		return text[:n], err
	case c.Type == rows.Float32s:
		return readVector(text)
	case c.Type == rows.Arrays:
		return d.readArray(*c.Of, text)
	case c.Type.Variable():
		return text, nil
	}
	return readFixed(c, string(text))
}

// readFixed reads the text of a column that is not variable: a number, days, microseconds, or a decimal number without
// its point. Where Type.Read turns a date or a timestamp into an integer, it is read as one. Dates are taken as they
// stand: a driver would put them into a time zone. One that has a time of day, as Oracle's have, is refused unless it
// is midnight: what has moved it might not move another past midnight.
func readFixed(c rows.Column, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	switch c.Type {
	case rows.Bool:
		return readBool(text)
	case rows.Float32, rows.Float64:
		return readFloat(c, text)
	case rows.Date:
		if err == nil {
			return n, nil
		}
		date, clock, _ := strings.Cut(text, " ")
		if strings.Trim(clock, "0:") != "" {
			return 0, fmt.Errorf("the date %s has a time of day", text)
		}
		day, err := time.Parse(time.DateOnly, date)
		return day.Unix() / (24 * 60 * 60), err
	case rows.Timestamp, rows.TimestampTZ:
		if err == nil {
			return n, nil
		}
		text = strings.TrimSuffix(text, "+00:00")  // in JSON, a moment is as it was sent
		at, err := time.Parse(time.DateTime, text) // accepts a fraction after the seconds, too
		return at.UnixMicro(), err
	case rows.Time:
		return readClock(text)
	case rows.Uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		return int64(n), err
	case rows.Decimal:
		return readDecimal(c, text)
	default:
		return n, err
	}
}

// readClock reads a time of day.
func readClock(text string) (int64, error) {
	at, err := time.Parse(time.TimeOnly, text) // accepts a fraction after the seconds, too
	return at.Sub(at.Truncate(24 * time.Hour)).Microseconds(), err
}

// readUUID reads the text of a UUID, or its 16 bytes as they are.
func readUUID(text []byte) ([]byte, error) {
	if len(text) == rows.UUIDBytes {
		return text, nil
	}
	digits := bytes.ReplaceAll(bytes.TrimRight(text, " "), []byte("-"), nil)
	if len(digits) != 2*rows.UUIDBytes {
		return nil, fmt.Errorf("%.40q is no UUID", text)
	}
	n, err := hex.Decode(digits, digits)
	return digits[:n], err
}

// readVector reads the text of a vector, or its bytes in hexadecimal.
func readVector(text []byte) ([]byte, error) {
	if bytes.HasPrefix(text, []byte("[")) {
		return rows.ParseFloats(text)
	}
	n, err := hex.Decode(text, text)
	return text[:n], err
}

// readArray reads the text of an array of elements of a type: PostgreSQL's, {1,NULL,"a \"b\""}, or JSON's.
func (d Dialect) readArray(of rows.Column, text []byte) (value []byte, err error) {
	elements, err := splitArray(text)
	if err != nil {
		return nil, err
	}

	value = []byte{}
	one := rows.Vector{Type: of.Type, Ints: []int64{0}, Ends: []uint32{0}}
	for _, element := range elements {
		found, err := d.readValue(of, element)
		if err != nil {
			return nil, err
		}
		one.Nulls = one.Nulls[:0]
		switch found := found.(type) {
		case nil:
			one.SetNulls(1)
			one.Nulls[0] = 1
		case int64:
			one.Ints[0] = found
		case []byte:
			if of.Type == rows.Char {
				found = bytes.TrimRight(found, " ")
			}
			one.Data, one.Ends[0] = found, uint32(len(found))
		}
		value = rows.AppendElement(value, &one, 0)
	}
	return value, nil
}

// splitArray returns the texts of an array's elements; nil is a NULL.
func splitArray(text []byte) (elements [][]byte, err error) {
	if bytes.HasPrefix(text, []byte("[")) {
		return splitJSON(text)
	}
	inner, opened := bytes.CutPrefix(text, []byte("{"))
	inner, closed := bytes.CutSuffix(inner, []byte("}"))
	if !opened || !closed {
		return nil, fmt.Errorf("%.40q is no array", text)
	}

	for len(inner) > 0 {
		element, rest, err := cutElement(inner)
		if err != nil {
			return nil, err
		}
		elements, inner = append(elements, element), rest
	}
	return elements, nil
}

// splitJSON is splitArray of JSON.
func splitJSON(text []byte) (elements [][]byte, err error) {
	var all []json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%.40q is no array: %w", text, err)
	}

	for _, element := range all {
		switch {
		case string(element) == "null":
			element = nil
		case element[0] == '"':
			var s string
			if err := json.Unmarshal(element, &s); err != nil {
				return nil, err
			}
			element = []byte(s)
		}
		elements = append(elements, element)
	}
	return elements, nil
}

// cutElement cuts the first element of an array's text off; nil is a NULL.
func cutElement(text []byte) (element, rest []byte, err error) {
	if text[0] != '"' {
		element, rest, _ = bytes.Cut(text, []byte(","))
		if string(element) == "NULL" {
			element = nil
		}
		return element, rest, nil
	}

	element = []byte{}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
			if i < len(text) {
				element = append(element, text[i])
			}
		case '"':
			return element, bytes.TrimPrefix(text[i+1:], []byte(",")), nil
		default:
			element = append(element, text[i])
		}
	}
	return nil, nil, fmt.Errorf("%.40q in an array does not end", text)
}

// readBool reads what servers write: t, true and 1, in any case.
func readBool(text string) (int64, error) {
	yes, err := strconv.ParseBool(strings.ToLower(text))
	if yes {
		return 1, err
	}
	return 0, err
}

// readFloat returns the bits of a number. Its text is decimal, or x and the bits of a double in hexadecimal. A number
// of 32 bits may be read as a double; one that was not sent as such is another number then.
func readFloat(c rows.Column, text string) (int64, error) {
	var f float64
	var err error
	if digits, is := strings.CutPrefix(text, "x"); is {
		var bits uint64
		bits, err = strconv.ParseUint(digits, 16, 64)
		f = math.Float64frombits(bits)
	} else {
		f, err = strconv.ParseFloat(text, 64)
	}
	if c.Type == rows.Float32 {
		return int64(math.Float32bits(float32(f))), err
	}
	return int64(math.Float64bits(f)), err
}

// readDecimal reads a number times 10^Scale. Servers write 1.50 as 1.5 or, without the zero, .5 for 0.5; what has more
// digits after the point than the column may, or more in all, is not what was sent.
func readDecimal(c rows.Column, text string) (int64, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	missing := c.Scale - len(fraction)
	switch {
	case digits == "", point && fraction == "", strings.Trim(digits, "0123456789.") != "":
		return 0, fmt.Errorf("%q is no decimal number", text)
	case missing < 0:
		return 0, fmt.Errorf("%s has more than %d digits after the point", text, c.Scale)
	}
	all := whole + fraction + strings.Repeat("0", missing)
	if len(strings.TrimLeft(all, "0")) > c.Digits {
		return 0, fmt.Errorf("%s has more than %d digits", text, c.Digits)
	}
	n, err := strconv.ParseInt(all, 10, 64)
	if negative {
		n = -n
	}
	return n, err
}
