package verify

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Record is a record of a user's files, as texts of the columns that are compared; nil is NULL.
type Record struct {
	Place  string // file and line
	Line   int64
	Fields [][]byte
}

// rereadAtOnce is how many records one statement reads back.
const rereadAtOnce = 100

// Compare reads records back by their key, one of the columns, and compares them field by field. A field in a form that
// only the server reads, as a date with the name of its month, is not compared, and is counted in NotCompared.
func (r *Result) Compare(ctx context.Context, from loader.Rereader, columns []rows.Column, key int, all []Record,
	ask func(context.Context, string, func(context.Context) error) error,
) error {
	unread := make([]int64, len(columns))
	for some := range slices.Chunk(all, rereadAtOnce) {
		texts, byKey := keysOf(columns, key, some)
		var found comparison
		err := ask(ctx, "records", func(ctx context.Context) error {
			found = comparison{
				columns: columns, key: key, unread: make([]int64, len(columns)), seen: make(map[string]int),
			}
			return from.Reread(ctx, columns, key, texts, func(values []any) error { return found.row(byKey, values) })
		})
		if err != nil {
			return fmt.Errorf("verify: reading records back: %w", err)
		}
		r.SampledRows += int64(len(byKey))
		for text, one := range byKey {
			switch n := found.seen[text]; {
			case n == 0:
				found.bad = append(found.bad, BadRow{Key: one.Line, Name: one.named(text), Reason: Missing})
			case n > 1:
				found.bad = append(found.bad, BadRow{Key: one.Line, Name: one.named(text), Reason: Doubled})
			}
		}
		for _, bad := range found.bad {
			r.addRow(bad)
		}
		for i, n := range found.unread {
			unread[i] += n
		}
	}
	for i, n := range unread {
		if n > 0 {
			r.NotCompared = append(r.NotCompared, fmt.Sprintf("%d fields of %s", n, columns[i].Name))
		}
	}
	r.OK = r.OK && r.BadRowCount == 0
	return nil
}

func (r Record) named(key string) string {
	return fmt.Sprintf("the record of %s (key %.40q)", r.Place, key)
}

// comparison is of the records that one statement reads back.
type comparison struct {
	columns []rows.Column
	key     int
	seen    map[string]int // how many rows have a key
	unread  []int64        // fields by column that were not compared
	bad     []BadRow
}

// keysOf returns the keys of records as the server is asked for them, and the records by these. One without a key, or
// with that of another one, is left out.
func keysOf(columns []rows.Column, key int, some []Record) (texts []string, byKey map[string]Record) {
	byKey = make(map[string]Record, len(some))
	for _, one := range some {
		field := one.Fields[key]
		if field == nil {
			continue
		}
		value, known := valueOf(columns[key], field)
		if !known {
			continue
		}

		text := keyText(columns[key], value)
		if _, twice := byKey[text]; !twice {
			byKey[text] = one
			texts = append(texts, text)
		}
	}
	return texts, byKey
}

// keyText writes the value of a key as a text that is the same for equal ones.
func keyText(c rows.Column, value any) string {
	switch v := value.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case []byte:
		if c.Type == rows.UUID {
			return string(rows.AppendUUID(nil, v))
		}
		if c.Type == rows.Char {
			v = bytes.TrimRight(v, " ")
		}
		return string(v)
	default:
		return fmt.Sprint(v)
	}
}

// row compares a row of the table.
func (c *comparison) row(byKey map[string]Record, values []any) error {
	if len(values) != len(c.columns) {
		return fmt.Errorf("the back-end returned %d columns instead of %d", len(values), len(c.columns))
	}
	if values[c.key] == nil {
		return nil
	}
	key := keyText(c.columns[c.key], values[c.key])
	one, asked := byKey[key]
	if !asked { // one that the server takes for equal
		return nil
	}
	c.seen[key]++
	for i, column := range c.columns {
		detail, offset, compared, err := differField(column, one.Fields[i], values[i])
		switch {
		case err != nil:
			return err
		case !compared:
			c.unread[i]++
		case detail != "":
			c.bad = append(c.bad, BadRow{
				Key: one.Line, Name: one.named(key), Reason: Differs,
				Column: column.Name, Offset: offset, Detail: detail,
			})
			return nil
		}
	}
	return nil
}

// differField compares the text of a field with what the table has. compared is false where only the server knows what
// the text means.
func differField(c rows.Column, field []byte, found any) (detail string, offset int, compared bool, err error) {
	if found == nil && (c.Type == rows.Date || c.Type.IsTime()) && endless.Match(field) { // of which nobody makes a number
		return "", 0, false, nil
	}
	if field == nil || found == nil {
		var want any
		if field != nil {
			want = field
		}
		detail, offset, err = differValue(c, want, found)
		return detail, offset, true, err
	}
	if text, raw := found.(string); raw { // no value of the column's type of ours, such as a number beyond it
		return "", 0, text == string(field) || sameNumber(c, text, string(field)), nil
	}
	switch c.Type {
	case rows.Bytes:
		return differRaw(field, found)
	case rows.Enum:
		if label, is := found.([]byte); is && bytes.EqualFold(label, field) {
			return "", 0, true, nil
		}
		if _, err := strconv.Atoi(string(field)); err == nil { // a label's number
			return "", 0, false, nil
		}
	}

	want, known := valueOf(c, field)
	if !known {
		return "", 0, false, nil
	}
	if (c.Type == rows.Float32 || c.Type == rows.Float64) && sameFloat(c, want, found) {
		return "", 0, true, nil
	}
	detail, offset, err = differValue(c, want, found)
	return detail, offset, true, err
}

// endless finds PostgreSQL's infinite days and times.
var endless = regexp.MustCompile(`(?i)^\s*[-+]?infinity\s*$`)

// sameFloat reports whether two numbers are the same, though their bits may differ: NaN is NaN, and -0 is 0.
func sameFloat(c rows.Column, want, found any) bool {
	w, f := floatOf(c, want), floatOf(c, found)
	return w == f || math.IsNaN(w) && math.IsNaN(f)
}

func floatOf(c rows.Column, value any) float64 {
	bits, _ := value.(int64)
	if c.Type == rows.Float32 {
		return float64(math.Float32frombits(uint32(bits)))
	}
	return math.Float64frombits(uint64(bits))
}

// differRaw compares bytes, which are written as they are, or as hexadecimal digits, perhaps behind \x.
func differRaw(field []byte, found any) (detail string, offset int, compared bool, err error) {
	have, is := found.([]byte)
	if !is {
		return "", 0, false, fmt.Errorf("the back-end returned a %T for bytes", found)
	}
	if bytes.Equal(field, have) {
		return "", 0, true, nil
	}
	digits, prefixed := bytes.CutPrefix(field, []byte(`\x`))
	read, err := hex.DecodeString(string(digits))
	switch {
	case err == nil && bytes.Equal(read, have):
		return "", 0, true, nil
	case bytes.IndexByte(digits, '\\') >= 0: // escapes
		return "", 0, false, nil
	case err == nil && prefixed:
		field = read
	}
	detail, offset = differBytes(field, have)
	return detail, offset, true, nil
}

// sameNumber reports whether two texts are the same decimal number, of any length.
func sameNumber(c rows.Column, a, b string) bool {
	if !c.Type.IsInteger() && !c.Type.IsDecimal() || strings.ContainsAny(a+b, "eE/_xX") {
		return false
	}
	x, isX := new(big.Rat).SetString(a)
	y, isY := new(big.Rat).SetString(b)
	return isX && isY && x.Cmp(y) == 0
}

// valueOf reads the text of a field as a value of its column, as loader.Fetcher has it. known is false where only the
// server knows what it means, or the column cannot hold it as it is.
func valueOf(c rows.Column, field []byte) (value any, known bool) {
	text := string(field)
	switch {
	case c.Type == rows.UUID:
		id, err := hex.DecodeString(strings.ReplaceAll(text, "-", ""))
		return id, err == nil && len(id) == rows.UUIDBytes
	case c.Type == rows.Char:
		return bytes.TrimRight(field, " "), true
	case c.Type == rows.Arrays:
		return nil, false
	case c.Type == rows.Float32s:
		vector, err := rows.ParseFloats(field)
		return vector, err == nil
	case c.Type.Variable():
		return field, true
	case c.Type == rows.Wide:
		value, err := c.ParseWide(strings.TrimPrefix(strings.TrimSpace(text), "+"))
		return value, err == nil
	case c.Type == rows.Uint64:
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		return int64(n), err == nil
	case c.Type.IsInteger():
		n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		return n, err == nil
	}

	switch c.Type {
	case rows.Bool:
		return truth(strings.ToLower(text))
	case rows.Float32:
		f, err := strconv.ParseFloat(text, 32)
		return int64(math.Float32bits(float32(f))), err == nil
	case rows.Float64:
		f, err := strconv.ParseFloat(text, 64)
		return int64(math.Float64bits(f)), err == nil
	case rows.Decimal:
		return decimalOf(c, text)
	case rows.Date:
		day, err := time.Parse(time.DateOnly, text)
		return day.Unix() / (24 * 60 * 60), err == nil
	case rows.Timestamp, rows.TimestampTZ:
		return timeOf(c, text)
	case rows.Time:
		at, err := time.Parse(time.TimeOnly, text)
		return at.Sub(at.Truncate(24 * time.Hour)).Microseconds(), err == nil && at.Nanosecond()%1000 == 0
	}
	return nil, false
}

// truth reads a boolean in the forms that PostgreSQL takes; the others take some of them.
func truth(text string) (value any, known bool) {
	switch text {
	case "1", "t", "true", "y", "yes", "on":
		return int64(1), true
	case "0", "f", "false", "n", "no", "off":
		return int64(0), true
	}
	return nil, false
}

// decimalOf reads a decimal number times 10^Scale.
func decimalOf(c rows.Column, text string) (n int64, known bool) {
	if strings.ContainsAny(text, "eE/_xX") {
		return 0, false
	}
	r, is := new(big.Rat).SetString(text)
	if !is {
		return 0, false
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Scale)), nil)))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}

// timeOf reads a time in UTC as microseconds. One with a zone is a moment; a column without one may drop or convert it.
func timeOf(c rows.Column, text string) (micros int64, known bool) {
	text = strings.Replace(text, "T", " ", 1)
	layouts := []string{time.DateTime, time.DateOnly}
	if c.Type == rows.TimestampTZ {
		layouts = append(layouts, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05Z07")
	}
	for _, layout := range layouts {
		at, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		micros = at.UnixMicro()
		unit := int64(math.Pow10(c.Scale))
		return micros, at.Nanosecond()%1000 == 0 && micros%unit == 0
	}
	return 0, false
}
