package sqlread

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// Parser stands at one token of a statement. What it does not understand is an error, never skipped; behind the first one
// it stands at the end, so that whoever reads on comes to an end as well.
type Parser struct {
	Source string
	Token  Token
	Err    error
	Hints  []string // the words of all hints before Token, in upper case; some may be there twice

	lexer lexer
}

// New gives a parser at the statement's first token.
func New(source string, d *Dialect) Parser {
	p := Parser{Source: source, lexer: lexer{dialect: d, source: source}}
	p.Advance()
	return p
}

// Advance goes to the next token that is no hint.
func (p *Parser) Advance() {
	for p.Err == nil {
		t, err := p.lexer.next()
		p.Token = t
		if err != nil {
			p.Fail("%v", err)
		}
		if t.Kind != Hint {
			return
		}
		p.Hints = append(p.Hints, strings.Fields(strings.ToUpper(t.Text))...)
	}
}

// Peek is what follows Token; where that cannot be read, the end.
func (p *Parser) Peek() Token {
	after := p.lexer
	t, err := after.next()
	if err != nil {
		return Token{At: len(p.Source)}
	}
	return t
}

// Fail notes the first error, in the dialect's words.
func (p *Parser) Fail(format string, args ...any) {
	if p.Err == nil {
		p.Err = p.lexer.dialect.Error(p.Source[p.Token.At:], fmt.Sprintf(format, args...))
	}
	p.Token = Token{At: len(p.Source)}
}

// Take consumes the keywords or operators if all of them follow, else none.
func (p *Parser) Take(words ...string) bool {
	pos, token := p.lexer.pos, p.Token
	for _, w := range words {
		if !p.Token.Is(w) {
			p.lexer.pos, p.Token = pos, token
			return false
		}
		p.Advance()
	}
	return p.Err == nil
}

// OneOf consumes the first of the keywords or operators that follows, and is empty if none does.
func (p *Parser) OneOf(words ...string) string {
	for _, w := range words {
		if p.Take(w) {
			return w
		}
	}
	return ""
}

// Chain consumes one of the operators, gives it, and does so again as long as one follows: a level of precedence is a loop
// that reads the next operand.
func (p *Parser) Chain(operators ...string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for op := p.OneOf(operators...); op != "" && yield(op); {
			op = p.OneOf(operators...)
		}
	}
}

// Expect consumes the keywords or operators, which have to follow.
func (p *Parser) Expect(words ...string) {
	for _, w := range words {
		if !p.Take(w) {
			p.Fail("expected %s", w)
		}
	}
}

// End says that nothing may follow, and gives the first error.
func (p *Parser) End() error {
	if p.Token.Kind != End {
		p.Fail("nothing may follow")
	}
	return p.Err
}

// Identifier reads a name, which may be a keyword: what follows tells them apart, not the word.
func (p *Parser) Identifier() string { return p.text("a name", Word, Quoted) }

// Text reads a string.
func (p *Parser) Text() string { return p.text(p.lexer.dialect.Text, String) }

func (p *Parser) text(called string, kinds ...Kind) string {
	t := p.Token
	if !slices.Contains(kinds, t.Kind) {
		p.Fail("expected %s", called)
		return ""
	}
	p.Advance()
	return t.Text
}

// Integer reads a number without sign, point and exponent.
func (p *Parser) Integer() int64 {
	n, err := strconv.ParseInt(p.Token.Text, 10, 64)
	if p.Token.Kind != Number || err != nil {
		p.Fail("expected an integer")
		return 0
	}
	p.Advance()
	return n
}

// Each reads what f reads, and again behind every comma.
func (p *Parser) Each(f func()) {
	for f(); p.Take(","); {
		f()
	}
}

// List is Each between parentheses.
func (p *Parser) List(f func()) {
	p.Expect("(")
	p.Each(f)
	p.Expect(")")
}

// Names reads (a, b, c).
func (p *Parser) Names() (all []string) {
	p.List(func() { all = append(all, p.Identifier()) })
	return all
}

// AtName reports whether a name stands here that is no reserved word: an alias, where keywords could follow as well.
func (p *Parser) AtName() bool {
	return p.Token.Kind == Quoted || p.Token.Kind == Word && !slices.Contains(p.lexer.dialect.Reserved, strings.ToUpper(p.Token.Text))
}

// Since is the statement's text from there to Token.
func (p *Parser) Since(at int) string { return strings.TrimSpace(p.Source[at:p.Token.At]) }
