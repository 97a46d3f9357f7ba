package sqlread

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is what a token is.
type Kind byte

// The kinds of token.
const (
	End    Kind = iota // of the statement
	Word               // a keyword, or a name without quotation marks
	Quoted             // a name in quotation marks
	String
	Number
	Bind // :name, without the colon
	Hint // what stands between /*+ and */
	Op
)

// Token is a piece of a statement.
type Token struct {
	Kind Kind
	Text string // without quotation marks and escapes
	At   int    // where it begins in the statement
}

// Is reports whether the token is the keyword or operator, given in upper case.
func (t Token) Is(word string) bool {
	return t.Kind == Op && t.Text == word || t.Kind == Word && strings.EqualFold(t.Text, word)
}

// lexer cuts a statement into tokens.
type lexer struct {
	dialect *Dialect
	source  string
	pos     int
}

func (l *lexer) next() (Token, error) {
	if err := l.skipBlanks(); err != nil {
		return Token{}, err
	}
	if l.pos == len(l.source) {
		return Token{At: l.pos}, nil
	}
	t, n, err := l.dialect.token(l.source[l.pos:])
	t.At = l.pos
	l.pos += n
	return t, err
}

// skipBlanks skips comments as well.
func (l *lexer) skipBlanks() error {
	for l.pos < len(l.source) {
		rest := l.source[l.pos:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			l.pos++
		case prefix(rest, l.dialect.Comments) != "":
			line, _, _ := strings.Cut(rest, "\n")
			l.pos = min(l.pos+len(line)+1, len(l.source))
		case strings.HasPrefix(rest, "/*") && !l.dialect.hint(rest):
			end := strings.Index(rest, "*/")
			if end < 0 {
				return errors.New("a comment is not closed")
			}
			l.pos += end + len("*/")
		default:
			return nil
		}
	}
	return nil
}

// token reads the one with which rest begins, and says how long that is.
func (d *Dialect) token(rest string) (t Token, n int, err error) {
	c, second := rest[0], rest[1:min(2, len(rest))]
	for _, q := range d.Quotes {
		if q.Mark == c {
			t.Kind = q.Kind
			t.Text, n, err = q.Read(rest)
			return t, n, err
		}
	}
	switch {
	case d.hint(rest):
		end := strings.Index(rest, "*/")
		if end < 0 {
			return t, 0, errors.New("a hint is not closed")
		}
		t.Kind, t.Text = Hint, rest[len("/*+"):end]
		n = end + len("*/")
	case d.Binds && c == ':' && Run(second, d.Letter) > 0:
		n = 1 + Run(rest[1:], d.Letter)
		t.Kind, t.Text = Bind, d.folded(rest[1:n])
	case Digit(c) || c == '.' && Run(second, Digit) > 0:
		t.Kind, n = d.Number(rest)
		t.Text = rest[:n]
	case d.Letter(c):
		n = Run(rest, d.Letter)
		t.Kind, t.Text = Word, d.folded(rest[:n])
	default:
		t.Kind, t.Text = Op, prefix(rest, d.Operators)
		if n = len(t.Text); n == 0 {
			return t, 0, fmt.Errorf("a character that SQL has no use for: %q", c)
		}
	}
	return t, n, nil
}

func (d *Dialect) hint(rest string) bool { return d.Hints && strings.HasPrefix(rest, "/*+") }

// folded is a name without quotation marks as the dialect keeps it.
func (d *Dialect) folded(name string) string {
	if d.Upper {
		return strings.ToUpper(name)
	}
	return name
}

// prefix is the first of all with which rest begins.
func prefix(rest string, all []string) string {
	for _, one := range all {
		if strings.HasPrefix(rest, one) {
			return one
		}
	}
	return ""
}
