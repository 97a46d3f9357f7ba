package standin

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// The shapes of the statements that verification sends, in every dialect.
const literal = `(?:TIMESTAMP )?'[^']*'|-?\d+`

var (
	bucketsShape = regexp.MustCompile(`(?s)^SELECT .*COUNT\(\*\).* FROM \(SELECT (.* AS bucket, .* AS o(?:, .*)?)` +
		` FROM (\S+) WHERE (.*?)\) t(?:\) t)? GROUP BY bucket$`)
	mixShape    = regexp.MustCompile(`\(\(u \+ o\) \* \(u \+ (\d+)\)\).*\(\(o \+ (\d+)\) \* \(o \+ \d+\)\)`)
	bucketShape = regexp.MustCompile(`- (\d+)\)\D+(\d+)\D* AS bucket, `)
	selectShape = regexp.MustCompile(`(?s)^SELECT (.+) FROM (\S+) WHERE (.*)$`)

	betweenShape = regexp.MustCompile(`BETWEEN (` + literal + `) AND (` + literal + `)$`)
	equalShape   = regexp.MustCompile(` = (` + literal + `)$`)
	listShape    = regexp.MustCompile(`(\S+) IN \(((?:` + literal + `|,)+)\)`)
)

// Find looks a table up by its name as a statement writes it.
type Find func(name string) (*Table, error)

// Select answers a statement of verification. known reports whether the statement is one. A value of a row is written
// by show; a NULL is nil.
func Select(sql string, find Find, show func(c rows.Column, value any) any) (answer [][]any, known bool, err error) {
	if m := bucketsShape.FindStringSubmatch(sql); m != nil {
		answer, err = selectBuckets(mixOf(sql), m[1], m[2], m[3], find)
		return answer, true, err
	}
	m := selectShape.FindStringSubmatch(sql)
	if m == nil {
		return nil, false, nil
	}
	t, found, err := where(m[2], m[3], find)
	switch list := m[1]; {
	case err != nil || t == nil:
		return nil, err != nil, err
	case strings.Contains(list, "COUNT(DISTINCT "):
		return [][]any{{strconv.Itoa(len(count(found)))}}, true, nil
	case strings.Contains(list, "COUNT(*)"):
		return [][]any{{strconv.Itoa(len(found))}}, true, nil
	}
	for _, r := range found {
		line := []any{strconv.FormatInt(r.Number, 10)}
		if len(t.Schema.Number) == 0 {
			line = nil // it is not asked for
		}
		for i, v := range r.Values {
			if v != nil {
				v = show(t.Schema.Columns[i], v)
			}
			line = append(line, v)
		}
		answer = append(answer, line)
	}
	return answer, true, nil
}

// selectBuckets answers in the order of sqlload's SelectBuckets: number, rows, smallest and largest offset, the sums
// of the offsets, of their squares and of their mix, measures.
func selectBuckets(mix *loader.Mix, inner, name, condition string, find Find) (answer [][]any, err error) {
	t, err := find(name)
	if err != nil {
		return nil, err
	}
	m := bucketShape.FindStringSubmatch(inner)
	r, known := t.within(condition)
	if m == nil || !known || m[1] != strconv.FormatInt(r.First, 10) {
		return nil, fmt.Errorf("buckets of a shape that is not known: %s … WHERE %s", inner, condition)
	}
	size, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return nil, err
	}
	g := loader.Grouping{KeyRange: r, Size: size, Mix: mix, Measures: strings.Contains(inner, " AS m")}
	for _, b := range t.buckets(g) {
		line := []any{
			strconv.FormatInt(b.Number, 10), strconv.FormatInt(b.Rows, 10), strconv.FormatInt(b.Min, 10),
			strconv.FormatInt(b.Max, 10), b.Sum.String(), b.Squares.String(),
		}
		if mix != nil {
			line = append(line, b.Mix.String())
		}
		for _, n := range b.Measures {
			line = append(line, n.String())
		}
		answer = append(answer, line)
	}
	return answer, nil
}

// mixOf returns the key of the mix that a statement sums, nil if it sums none.
func mixOf(sql string) *loader.Mix {
	m := mixShape.FindStringSubmatch(sql)
	if m == nil {
		return nil
	}
	a, _ := strconv.ParseInt(m[2], 10, 64)
	b, _ := strconv.ParseInt(m[1], 10, 64)
	return &loader.Mix{A: a, B: b}
}

// where returns the rows of a table of which a condition on their numbers is true, or on their columns where they have
// no numbers; no table where the condition is another one, which is no error here.
func where(name, condition string, find Find) (*Table, []Row, error) {
	about := func(shape *regexp.Regexp) bool { return shape.MatchString(condition) }
	if !slices.ContainsFunc([]*regexp.Regexp{betweenShape, equalShape, listShape}, about) {
		return nil, nil, nil
	}
	t, err := find(name)
	if err != nil {
		return nil, nil, err
	}
	if len(t.Schema.Number) == 0 {
		is, err := t.Where(condition)
		if err != nil {
			return nil, nil, err
		}
		return t, t.only(is), nil
	}
	if r, known := t.within(condition); known {
		return t, t.only(func(row Row) bool { return r.First <= row.Number && row.Number <= r.Last }), nil
	}
	numbers, known := t.numbers(condition)
	if !known {
		return nil, nil, nil
	}
	return t, t.only(func(row Row) bool { return numbers[row.Number] }), nil
}

// within reads the range of row numbers at the end of a condition. A range of the first of several key columns, for its
// index, stands before it.
func (t *Table) within(condition string) (r loader.KeyRange, known bool) {
	m := betweenShape.FindStringSubmatch(condition)
	if m == nil {
		return r, false
	}
	var first, last bool
	r.First, first = t.number(m[1])
	r.Last, last = t.number(m[2])
	return r, first && last
}

// numbers reads the row numbers that a condition names: one, or lists of them.
func (t *Table) numbers(condition string) (numbers map[int64]bool, known bool) {
	numbers = make(map[int64]bool)
	if m := equalShape.FindStringSubmatch(condition); m != nil {
		n, known := t.number(m[1])
		numbers[n] = true
		return numbers, known
	}
	for _, m := range listShape.FindAllStringSubmatch(condition, -1) {
		if column := strings.Trim(m[1], "(\"`"); len(t.Schema.Number) > 1 && strings.EqualFold(column, t.Schema.Key().Name) {
			continue // the first of several key columns, for its index
		}
		for text := range strings.SplitSeq(m[2], ",") {
			n, known := t.number(text)
			if !known {
				return nil, false
			}
			numbers[n] = true
		}
	}
	return numbers, len(numbers) > 0
}

// number reads a row number: as such, as the digits of a text key, as the time of a timestamp key, or in a UUID.
func (t *Table) number(text string) (n int64, known bool) {
	text = strings.Trim(strings.TrimPrefix(text, "TIMESTAMP "), "'")
	if t.Schema.TimeKey() {
		at, err := time.Parse(timestampLayout, text)
		return at.UnixMicro() - t.Schema.Number[0].Minus, err == nil
	}
	if strings.Contains(text, "-") && t.Schema.Number[0].Hex {
		return spelt(rows.Column{Type: rows.Text}, []byte(text), true)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

func (t *Table) only(is func(Row) bool) (found []Row) {
	for _, r := range t.Rows {
		if is(r) {
			found = append(found, r)
		}
	}
	return found
}
