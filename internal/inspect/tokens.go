package inspect

import (
	"regexp"
	"slices"
	"strings"
)

// token is a word, a name in quotation marks, a constant, or a sign.
type token struct {
	kind tokenKind
	text string
}

type tokenKind int

const (
	wordToken tokenKind = iota
	nameToken
	numberToken
	textToken
	signToken
)

// is reports whether a token is a word of SQL, or a sign.
func (t token) is(text string) bool {
	return t.kind == signToken && t.text == text || t.kind == wordToken && strings.EqualFold(t.text, text)
}

func (t token) isColumn() bool {
	return t.kind == nameToken || t.kind == wordToken && !slices.Contains(keywords, strings.ToLower(t.text))
}

func (t token) isConstant() bool {
	return t.kind == numberToken || t.kind == textToken || t.is("true") || t.is("false")
}

var keywords = []string{"and", "or", "not", "in", "any", "array", "between", "is", "null", "like", "case", "true", "false", "row"}

// tokenPattern finds one token: a literal with the character set or the E before it, a name, a word, a number, a sign.
var tokenPattern = regexp.MustCompile("^(?:(?:(_[A-Za-z0-9]+|[EeNn])?('(?:[^'\\\\]|''|\\\\[\\s\\S])*'))|(\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`)|" +
	`([A-Za-z_][A-Za-z0-9_$.]*)|([0-9]+(?:\.[0-9]+)?)|(::|<=|>=|<>|!=|[-+*/%=<>()\[\],|&~^!.]))`)

// mysqlQuote is how MySQL shows the quotation marks of literals: with a backslash before them, and before those in
// them.
var mysqlQuote = regexp.MustCompile(`_[A-Za-z0-9]+\\'`)

func tokenize(condition string, escapes bool) (all []token, ok bool) {
	if mysqlQuote.MatchString(condition) {
		condition, escapes = unescape(condition), true
	}
	for rest := strings.TrimSpace(condition); rest != ""; rest = strings.TrimSpace(rest) {
		m := tokenPattern.FindStringSubmatch(rest)
		if m == nil {
			return nil, false
		}
		rest = rest[len(m[0]):]
		switch {
		case m[2] != "":
			text := m[2][1 : len(m[2])-1]
			if strings.Contains(text, `\`) && (escapes || strings.EqualFold(m[1], "e")) {
				text = unescape(text)
			}
			all = append(all, token{textToken, strings.ReplaceAll(text, "''", "'")})
		case m[3] != "":
			quote := m[3][:1]
			all = append(all, token{nameToken, strings.ReplaceAll(m[3][1:len(m[3])-1], quote+quote, quote)})
		case m[4] != "":
			all = append(all, token{wordToken, m[4]})
		case m[5] != "":
			all = append(all, token{numberToken, m[5]})
		default:
			all = append(all, token{signToken, m[6]})
		}
	}
	return withSigns(all), true
}

// unescape reads the escapes of a literal.
func unescape(text string) string {
	return escapePattern.ReplaceAllStringFunc(text, func(e string) string {
		switch e[1] {
		case 'n':
			return "\n"
		case 't':
			return "\t"
		case 'r':
			return "\r"
		case '0':
			return "\x00"
		}
		return e[1:]
	})
}

var escapePattern = regexp.MustCompile(`(?s)\\.`)

// withSigns joins a minus with the number that it belongs to.
func withSigns(in []token) (out []token) {
	for i := 0; i < len(in); i++ {
		first := i == 0 || in[i-1].kind == signToken && !in[i-1].is(")") || in[i-1].kind == wordToken
		if in[i].is("-") && first && i+1 < len(in) && in[i+1].kind == numberToken {
			out = append(out, token{numberToken, "-" + in[i+1].text})
			i++
			continue
		}
		out = append(out, in[i])
	}
	return out
}

// withoutCasts removes ::type. A type is a name, with the words that may follow, a length and brackets.
func withoutCasts(in []token) (out []token) {
	for i := 0; i < len(in); i++ {
		if !in[i].is("::") {
			out = append(out, in[i])
			continue
		}

		i++ // the name
		for i+1 < len(in) && slices.ContainsFunc([]string{"varying", "precision", "without", "with", "time", "zone"}, in[i+1].is) {
			i++
		}
		for i+1 < len(in) && (in[i+1].is("(") || in[i+1].is("[")) {
			for i++; i+1 < len(in) && !in[i].is(")") && !in[i].is("]"); i++ {
			}
		}
	}
	return out
}

// withoutParentheses removes those around a single column or constant, and doubled ones around a list.
func withoutParentheses(in []token) []token {
	for i := 0; i+2 < len(in); {
		single := in[i].is("(") && in[i+2].is(")") && in[i+1].kind != signToken
		list := i > 0 && (in[i-1].kind == wordToken && !slices.ContainsFunc([]string{"and", "or", "between"}, in[i-1].is))
		if !single || list {
			i++
			continue
		}
		in = slices.Concat(in[:i], in[i+1:i+2], in[i+3:])
		i = max(i-1, 0)
	}
	return in
}
