package sqlload

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// microseconds is the layout of TimeLiteral's text.
const microseconds = "2006-01-02 15:04:05.000000"

// single reports whether ranges of rows are ranges of one column, which an index may have: their number would be an
// expression without one.
func (s Statements) single() bool {
	return len(s.Schema.Number) == 1 && s.Schema.Number[0].Times == 1 && s.Schema.Ordered()
}

// key returns the expression that rows are found by: a column with an index, if there is one.
func (s Statements) key() string {
	if s.single() {
		return s.Column(s.Schema.Key().Name)
	}
	return s.Number(s.Schema)
}

// value returns a number as a value of key.
func (s Statements) value(number int64) string {
	if !s.single() {
		return strconv.FormatInt(number, 10)
	}

	return s.keyLiteral(s.Schema.Key(), s.Schema.KeyValues(number)[0])
}

// keyLiteral writes the value of a column of the key.
func (s Statements) keyLiteral(c rows.Column, value int64) string {
	switch c.Type {
	case rows.Text, rows.Char:
		return fmt.Sprintf("'%0*d'", c.MaxBytes, value)
	case rows.TimestampTZ:
		return fmt.Sprintf(cmp.Or(s.MomentLiteral, s.TimeLiteral), time.UnixMicro(value).UTC().Format(microseconds))
	case rows.Timestamp:
		return fmt.Sprintf(s.TimeLiteral, time.UnixMicro(value).UTC().Format(microseconds))
	default:
		return strconv.FormatInt(value, 10)
	}
}

// Within returns the condition that a row's number lies in a range.
func (s Statements) Within(r loader.KeyRange) string {
	in := fmt.Sprintf("%s BETWEEN %s AND %s", s.key(), s.value(r.First), s.value(r.Last))
	if column, of, ok := s.leading(); ok {
		return fmt.Sprintf("%s BETWEEN %d AND %d AND %s", column, of(r.First), of(r.Last), in)
	}
	return in
}

// hasValues reports whether single rows are found by the values of the key's columns, which an index may have.
func (s Statements) hasValues() bool {
	number := s.Schema.Number
	switch {
	case len(number) > 1:
		return s.Tuples != ""
	case number[0].Hex:
		return s.UUID != nil
	default:
		return number[0].Times == 1
	}
}

// values returns the values of the key's columns in the row with a number.
func (s Statements) values(number int64) []string {
	if s.Schema.Number[0].Hex {
		return []string{s.uuidLiteral(s.UUID(number))}
	}
	numbers := s.Schema.KeyValues(number)
	values := make([]string, len(numbers))
	for i, t := range s.Schema.Number {
		values[i] = s.keyLiteral(s.Schema.Columns[t.Column], numbers[i])
	}
	return values
}

// uuidLiteral writes a UUID for a column of texts, of the server's own type, or of the 16 bytes.
func (s Statements) uuidLiteral(text string) string {
	if s.RawUUID {
		return "x'" + strings.ReplaceAll(text, "-", "") + "'"
	}
	return Literal(text)
}

func (s Statements) is(number int64) string {
	if s.hasValues() {
		all := s.values(number)
		for i, t := range s.Schema.Number {
			all[i] = s.Column(s.Schema.Columns[t.Column].Name) + " = " + all[i]
		}
		return strings.Join(all, " AND ")
	}

	is := s.key() + " = " + s.value(number)
	if column, of, ok := s.leading(); ok {
		return fmt.Sprintf("%s = %d AND %s", column, of(number), is)
	}
	return is
}

// among returns the condition that a row has one of the numbers.
func (s Statements) among(numbers []int64) string {
	if s.hasValues() {
		return s.amongValues(numbers)
	}

	in := s.in(s.key(), numbers, "(%s)", s.value)
	column, of, ok := s.leading()
	if !ok {
		return in
	}
	values := make([]int64, len(numbers))
	for i, n := range numbers {
		values[i] = of(n)
	}
	slices.Sort(values)
	digits := func(v int64) string { return strconv.FormatInt(v, 10) }
	return s.in(column, slices.Compact(values), "(%s)", digits) + " AND " + in
}

// amongValues is among by the values of the key's columns.
func (s Statements) amongValues(numbers []int64) string {
	if len(s.Schema.Number) == 1 {
		value := func(number int64) string { return s.values(number)[0] }
		return s.in(s.KeyColumns(s.Schema), numbers, "(%s)", value)
	}
	tuple := func(number int64) string { return "(" + strings.Join(s.values(number), ",") + ")" }
	return s.in("("+s.KeyColumns(s.Schema)+")", numbers, s.Tuples, tuple)
}

// in returns IN lists of at most MaxList elements, each in the format of a list.
func (s Statements) in(expression string, numbers []int64, list string, value func(int64) string) string {
	size := len(numbers)
	if s.MaxList > 0 {
		size = min(size, s.MaxList)
	}
	var lists []string
	for some := range slices.Chunk(numbers, max(size, 1)) {
		values := make([]string, len(some))
		for i, n := range some {
			values[i] = value(n)
		}
		lists = append(lists, expression+" IN "+fmt.Sprintf(list, strings.Join(values, ",")))
	}
	if len(lists) == 1 {
		return lists[0]
	}
	return "(" + strings.Join(lists, " OR ") + ")"
}

// leading returns the first column of a key of several and its value in the row with a number, if an index on the
// column is of use.
func (s Statements) leading() (column string, of func(number int64) int64, ok bool) {
	number := s.Schema.Number
	if !s.Leading || len(number) < 2 || !s.Schema.Key().Type.IsInteger() {
		return "", nil, false
	}
	return s.Column(s.Schema.Key().Name), func(n int64) int64 { return n/number[0].Times + number[0].Minus }, true
}
