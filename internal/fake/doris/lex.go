package doris

import (
	"fmt"
	"strings"
)

// tokenKind is what a token of SQL is.
type tokenKind byte

const (
	tokEnd    tokenKind = iota
	tokWord             // a bare identifier or keyword
	tokQuoted           // an identifier in backquotes
	tokString           // a literal in ' or "
	tokNumber
	tokOp
)

type token struct {
	kind tokenKind
	text string // without quotes and escapes
	at   int    // where it begins in the statement
}

// is tells whether the token is the keyword or operator, given in upper case.
func (t token) is(word string) bool {
	return t.kind == tokOp && t.text == word || t.kind == tokWord && strings.EqualFold(t.text, word)
}

// lexer cuts a statement into tokens, in the lexical rules of Doris' grammar (DorisLexer.g4).
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
	c := l.src[l.pos]
	switch {
	case c == '\'' || c == '"':
		text, err := l.quoted(c)
		t.kind, t.text = tokString, text
		return t, err
	case c == '`':
		end := l.pos + 1
		for {
			i := strings.IndexByte(l.src[end:], '`')
			if i < 0 {
				return t, fmt.Errorf("a ` is not closed")
			}
			if end += i + 1; end >= len(l.src) || l.src[end] != '`' {
				break
			}
			end++
		}
		t.kind, t.text = tokQuoted, strings.ReplaceAll(l.src[l.pos+1:end-1], "``", "`")
		l.pos = end
	case c >= '0' && c <= '9' || c == '.' && l.pos+1 < len(l.src) && isDigit(l.src[l.pos+1]):
		t.kind, t.text = l.number()
	case isWord(c):
		end := l.pos
		for end < len(l.src) && isWord(l.src[end]) {
			end++
		}
		t.kind, t.text = tokWord, l.src[l.pos:end]
		l.pos = end
	default:
		t.kind, t.text = tokOp, l.operator()
		l.pos += len(t.text)
		if t.text == "" {
			return t, fmt.Errorf("a character that SQL has no use for: %q", c)
		}
	}
	return t, nil
}

func (l *lexer) skipBlanks() error {
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			l.pos++
		case strings.HasPrefix(rest, "--") || rest[0] == '#':
			line, _, _ := strings.Cut(rest, "\n")
			l.pos = min(l.pos+len(line)+1, len(l.src))
		case strings.HasPrefix(rest, "/*"):
			i := strings.Index(rest, "*/")
			if i < 0 {
				return fmt.Errorf("a comment is not closed")
			}
			l.pos += i + 2
		default:
			return nil
		}
	}
	return nil
}

// quoted reads a string literal with MySQL's escapes; a doubled quote stands for one.
func (l *lexer) quoted(quote byte) (string, error) {
	var out strings.Builder
	for i := l.pos + 1; i < len(l.src); i++ {
		switch c := l.src[i]; {
		case c == '\\' && i+1 < len(l.src):
			i++
			switch e := l.src[i]; e {
			case '0':
				out.WriteByte(0)
			case 'n':
				out.WriteByte('\n')
			case 't':
				out.WriteByte('\t')
			case 'r':
				out.WriteByte('\r')
			case 'b':
				out.WriteByte('\b')
			case 'Z':
				out.WriteByte(0x1A)
			case '%', '_': // kept for LIKE
				out.WriteString(`\` + string(rune(e)))
			default:
				out.WriteByte(e)
			}
		case c == quote && i+1 < len(l.src) && l.src[i+1] == quote:
			out.WriteByte(c)
			i++
		case c == quote:
			l.pos = i + 1
			return out.String(), nil
		default:
			out.WriteByte(c)
		}
	}
	return "", fmt.Errorf("a string is not closed")
}

// number reads digits; a word that begins with digits is an identifier, as in MySQL.
func (l *lexer) number() (tokenKind, string) {
	end, kind := l.pos, tokNumber
	for end < len(l.src) && isDigit(l.src[end]) {
		end++
	}
	if end < len(l.src) && isWord(l.src[end]) && l.src[end] != 'e' && l.src[end] != 'E' {
		for end < len(l.src) && isWord(l.src[end]) {
			end++
		}
		kind = tokWord
	} else {
		if end < len(l.src) && l.src[end] == '.' {
			for end++; end < len(l.src) && isDigit(l.src[end]); end++ {
			}
		}
		if end < len(l.src) && (l.src[end] == 'e' || l.src[end] == 'E') {
			if end++; end < len(l.src) && (l.src[end] == '+' || l.src[end] == '-') {
				end++
			}
			for end < len(l.src) && isDigit(l.src[end]) {
				end++
			}
		}
	}
	text := l.src[l.pos:end]
	l.pos = end
	return kind, text
}

func (l *lexer) operator() string {
	for _, op := range []string{"<=>", "<=", ">=", "<>", "!=", "||", "&&", "@@", "(", ")", ",", ".", ";", "=", "<", ">", "+", "-", "*", "/", "%", "@", "!", "?", "[", "]", ":"} {
		if strings.HasPrefix(l.src[l.pos:], op) {
			return op
		}
	}
	return ""
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z'
}
