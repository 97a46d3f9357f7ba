package inspect

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
)

// mostRepeats is how often more than it has to a part is repeated that a condition does not bound.
const mostRepeats = 8

// patternOf returns a pattern of texts in each of which a server's regular expression finds itself: a part of what it
// would. It reports false for what Go reads in another way, or not at all.
func patternOf(expression string) (pattern string, ok bool) {
	re, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return "", false
	}
	if re.Op == syntax.OpConcat { // anchors at the ends, which a pattern has without them
		ends := []syntax.Op{syntax.OpBeginText, syntax.OpEndText}
		re.Sub = slices.DeleteFunc(re.Sub, func(sub *syntax.Regexp) bool { return slices.Contains(ends, sub.Op) })
	}
	return bounded(re).String(), true
}

// likePattern returns a pattern of texts that are LIKE one.
func likePattern(like string) string {
	var out strings.Builder
	for i := 0; i < len(like); i++ {
		switch c := like[i]; {
		case c == '%':
			out.WriteString("[0-9a-z]{0,8}")
		case c == '_':
			out.WriteString("[0-9a-z]")
		case c == '\\' && i+1 < len(like):
			i++
			out.WriteString(regexp.QuoteMeta(like[i : i+1]))
		default:
			out.WriteString(regexp.QuoteMeta(like[i : i+1]))
		}
	}
	return out.String()
}

// bounded gives repetitions an end, and classes of almost everything letters and digits.
func bounded(re *syntax.Regexp) *syntax.Regexp {
	for i, sub := range re.Sub {
		re.Sub[i] = bounded(sub)
	}
	switch re.Op {
	case syntax.OpStar:
		re.Op, re.Min, re.Max = syntax.OpRepeat, 0, mostRepeats
	case syntax.OpPlus:
		re.Op, re.Min, re.Max = syntax.OpRepeat, 1, mostRepeats
	case syntax.OpRepeat:
		if re.Max < 0 {
			re.Max = re.Min + mostRepeats
		}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		re.Op, re.Rune = syntax.OpCharClass, []rune{'a', 'z'}
	case syntax.OpCharClass:
		re.Rune = plainOnes(re.Rune)
	}
	return re
}

// plainOnes returns the letters and digits of a class of which the end is none, and other classes as they are.
func plainOnes(class []rune) (plain []rune) {
	if len(class) == 0 || class[len(class)-1] != unicode.MaxRune {
		return class
	}
	for i := 0; i < len(class); i += 2 {
		for _, ends := range [][2]rune{{'0', '9'}, {'A', 'Z'}, {'a', 'z'}} {
			if from, to := max(class[i], ends[0]), min(class[i+1], ends[1]); from <= to {
				plain = append(plain, from, to)
			}
		}
	}
	if plain == nil {
		return class
	}
	return plain
}

// matches reads the pattern that a column's texts have.
func (p *checkParser) matches(column string, patternOf func(text string) (string, bool)) (found, bool) {
	text := p.next()
	pattern, ok := patternOf(text.text)
	if text.kind != textToken || !ok {
		return nil, false
	}
	return found{column: {pattern: pattern}}, true
}

// order is which of two columns is not later than the other.
func order(a, sign, b string) (found, bool) {
	if slices.Contains([]string{"minvalue", "maxvalue"}, strings.ToLower(b)) { // where the first partition begins, or the last ends
		return nil, true
	}
	switch sign {
	case "<", "<=":
		return found{b: {after: a}}, true
	case ">", ">=":
		return found{a: {after: b}}, true
	}
	return nil, false
}
