package standin

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

const scalar = `'(?:[^']|'')*'|-?\d+(?:\.\d+)?`

var (
	comparison = regexp.MustCompile(
		`^(?:1 = 0|(\w+) (?:(=|<>|>=) (` + scalar + `)|BETWEEN (-?\d+) AND (-?\d+)|IN \(([^)]+)\)))(?: AND |$)`)
	scalarShape = regexp.MustCompile(scalar)
)

// Where returns what a condition says of a row: comparisons of columns with literals, with AND between them. Of NULL
// none is true.
func (t *Table) Where(condition string) (is func(Row) bool, err error) {
	var all []func(Row) bool
	for rest := condition; rest != ""; {
		m := comparison.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("the stand-in does not know the condition %s", rest)
		}
		rest = rest[len(m[0]):]
		one := func(Row) bool { return false } // 1 = 0
		if m[1] != "" {
			column := t.Index(m[1])
			if column < 0 {
				return nil, fmt.Errorf("%s is no column of %s", m[1], t.Name)
			}
			c := t.Schema.Columns[column]
			one = func(r Row) bool {
				return r.Values[column] != nil && compare(c, Text(c, r.Values[column]), m[2:])
			}
		}
		all = append(all, one)
	}
	return func(r Row) bool {
		return !slices.ContainsFunc(all, func(one func(Row) bool) bool { return !one(r) })
	}, nil
}

// compare compares the text of a value with a literal, with both ends of a range, or with a list.
func compare(c rows.Column, value string, m []string) bool {
	is := func(literal string) bool {
		v, err := Parse(c, Literal(literal))
		return err == nil && Text(c, v) == value
	}
	switch operator, literal, first, last, list := m[0], m[1], m[2], m[3], m[4]; {
	case operator == "=":
		return is(literal)
	case operator == "<>":
		return !is(literal)
	case operator == ">=":
		return number(value) >= number(literal)
	case list != "":
		return slices.ContainsFunc(scalarShape.FindAllString(list, -1), is)
	default:
		return number(first) <= number(value) && number(value) <= number(last)
	}
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Errorf("stand-in: only integers are compared by size: %w", err))
	}
	return n
}

// Literal returns what a literal says, without its quotes.
func Literal(text string) string {
	if quoted, is := strings.CutPrefix(text, "'"); is {
		return strings.ReplaceAll(strings.TrimSuffix(quoted, "'"), "''", "'")
	}
	return text
}
