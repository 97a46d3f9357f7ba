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

// single reports whether rows are found by the values of one column, which an index may have: their number would be an
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

	key, value := s.Schema.Key(), number+s.Schema.Number[0].Minus
	switch key.Type {
	case rows.Text, rows.Char:
		return fmt.Sprintf("'%0*d'", key.MaxBytes, value)
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

func (s Statements) is(number int64) string {
	is := s.key() + " = " + s.value(number)
	if column, of, ok := s.leading(); ok {
		return fmt.Sprintf("%s = %d AND %s", column, of(number), is)
	}
	return is
}

// among returns the condition that a row has one of the numbers.
func (s Statements) among(numbers []int64) string {
	in := s.in(s.key(), numbers, s.value)
	column, of, ok := s.leading()
	if !ok {
		return in
	}
	values := make([]int64, len(numbers))
	for i, n := range numbers {
		values[i] = of(n)
	}
	slices.Sort(values)
	return s.in(column, slices.Compact(values), func(v int64) string { return strconv.FormatInt(v, 10) }) + " AND " + in
}

// in returns IN lists of at most MaxList elements.
func (s Statements) in(expression string, numbers []int64, value func(int64) string) string {
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
		lists = append(lists, expression+" IN ("+strings.Join(values, ",")+")")
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
