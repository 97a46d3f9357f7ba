package oracle

import (
	"fmt"
	"strings"
)

// tokenKind is what a token of SQL is.
type tokenKind byte

const (
	tokEnd    tokenKind = iota
	tokWord             // a bare identifier or keyword, in upper case
	tokQuoted           // an identifier in quotation marks
	tokString
	tokNumber
	tokBind // :name, without the colon
	tokHint // what stands between /*+ and */
	tokOp
)

type token struct {
	kind tokenKind
	text string
	at   int // where it begins in the statement
}

// is tells whether the token is the keyword or operator.
func (t token) is(word string) bool { return (t.kind == tokOp || t.kind == tokWord) && t.text == word }

// lexer cuts a statement into tokens, by the rules of Oracle's SQL Language Reference: names without quotation marks are
// in upper case, and nothing is escaped in a text but its own quotation mark.
type lexer struct {
	src string
	pos int
}

func (l *lexer) next() (token, error) {
	if err := l.skipBlanks(); err != nil {
		return token{}, err
	}
	t := token{at: l.pos}
	if l.pos >= len(l.src) {
		return t, nil
	}
	rest := l.src[l.pos:]
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "/*+"):
		end := strings.Index(rest, "*/")
		if end < 0 {
			return t, fmt.Errorf("a hint is not closed")
		}
		t.kind, t.text = tokHint, rest[3:end]
		l.pos += end + 2
	case c == '\'' || c == '"':
		inside, length, err := quoted(rest, c)
		if err != nil {
			return t, err
		}
		t.kind, t.text = tokString, inside
		if c == '"' {
			t.kind = tokQuoted
		}
		l.pos += length
	case c == ':' && len(rest) > 1 && isWord(rest[1]):
		n := 1 + run(rest[1:], isWord)
		t.kind, t.text = tokBind, strings.ToUpper(rest[1:n])
		l.pos += n
	case isDigit(c) || c == '.' && len(rest) > 1 && isDigit(rest[1]):
		n := run(rest, func(c byte) bool { return isDigit(c) || c == '.' })
		t.kind, t.text = tokNumber, rest[:n]
		l.pos += n
	case isWord(c):
		n := run(rest, isWord)
		t.kind, t.text = tokWord, strings.ToUpper(rest[:n])
		l.pos += n
	default:
		t.kind, t.text = tokOp, operator(rest)
		if t.text == "" {
			return t, fmt.Errorf("a character that SQL has no use for: %q", c)
		}
		l.pos += len(t.text)
	}
	return t, nil
}

func (l *lexer) skipBlanks() error {
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			l.pos++
		case strings.HasPrefix(rest, "--"):
			line, _, _ := strings.Cut(rest, "\n")
			l.pos = min(l.pos+len(line)+1, len(l.src))
		case strings.HasPrefix(rest, "/*") && !strings.HasPrefix(rest, "/*+"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				return fmt.Errorf("a comment is not closed")
			}
			l.pos += end + 2
		default:
			return nil
		}
	}
	return nil
}

// quoted reads up to the closing mark; a doubled one stands for itself.
func quoted(rest string, mark byte) (inside string, length int, err error) {
	var out strings.Builder
	for i := 1; i < len(rest); i++ {
		switch {
		case rest[i] != mark:
			out.WriteByte(rest[i])
		case i+1 < len(rest) && rest[i+1] == mark:
			out.WriteByte(mark)
			i++
		default:
			return out.String(), i + 1, nil
		}
	}
	return "", 0, fmt.Errorf("a %c is not closed", mark)
}

func run(s string, is func(byte) bool) int {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}

func operator(rest string) string {
	for _, op := range []string{"||", ":=", "=>", "<=", ">=", "<>", "!=", "(", ")", ",", ".", ";", "=", "<", ">", "+", "-", "*", "/"} {
		if strings.HasPrefix(rest, op) {
			return op
		}
	}
	return ""
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return c == '_' || c == '$' || c == '#' || isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z'
}
