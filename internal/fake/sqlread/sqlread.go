// Package sqlread reads SQL as far as dialects agree: it cuts a statement into tokens and walks over them. The stand-ins
// embed its Parser and add the statements and expressions that are their own.
package sqlread

import (
	"fmt"
	"strings"
)

// Dialect is where one SQL differs from another below its grammar.
type Dialect struct {
	Quotes    []Quote
	Upper     bool                                 // names without quotation marks are in upper case
	Letter    func(byte) bool                      // may stand in a name without quotation marks
	Number    func(rest string) (kind Kind, n int) // how long it is that begins with a digit, and whether it is a Number or a Word
	Operators []string                             // a longer one before what it begins with
	Comments  []string                             // what begins a comment that ends with its line; /* … */ is one everywhere
	Hints     bool                                 // /*+ … */ is no comment
	Binds     bool                                 // :name is a placeholder
	Reserved  []string                             // words that name nothing, in upper case
	Text      string                               // what errors call a string
	Error     func(near, why string) error         // the server's error for what it cannot read
}

// Quote is a kind of quotation marks. A doubled mark stands for itself.
type Quote struct {
	Mark    byte
	Kind    Kind            // of what stands between two of them
	Called  string          // what errors call it; empty: its mark
	Escapes map[byte]string // what a character behind a backslash stands for, others for themselves; nil: a backslash is one
}

// Read reads from the opening mark, with which rest begins, to the closing one, and says how long that is.
func (q Quote) Read(rest string) (inside string, n int, err error) {
	var out strings.Builder
	for i := 1; i < len(rest); i++ {
		c, last := rest[i], i+1 == len(rest)
		switch {
		case c == '\\' && q.Escapes != nil && !last:
			i++
			if meant, is := q.Escapes[rest[i]]; is {
				out.WriteString(meant)
			} else {
				out.WriteByte(rest[i])
			}
		case c != q.Mark:
			out.WriteByte(c)
		case !last && rest[i+1] == c:
			out.WriteByte(c)
			i++
		default:
			return out.String(), i + 1, nil
		}
	}
	called := q.Called
	if called == "" {
		called = string(q.Mark)
	}
	return "", 0, fmt.Errorf("a %s is not closed", called)
}

// Digit reports whether the character is one of 0 to 9.
func Digit(c byte) bool { return c >= '0' && c <= '9' }

// Letter reports whether the character may stand in a name of any dialect.
func Letter(c byte) bool {
	return c == '_' || c == '$' || Digit(c) || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// Run is how many characters at the beginning of the text are such.
func Run(text string, such func(byte) bool) int {
	n := 0
	for n < len(text) && such(text[n]) {
		n++
	}
	return n
}
