package doris

import (
	"fmt"
	"strconv"
	"strings"
)

// parser reads one statement. What it does not understand is a syntax error, never skipped.
type parser struct {
	lexer
	tok token
	err error
}

// syntaxError is error 1064.
type syntaxError struct{ near, why string }

func (e *syntaxError) Error() string {
	return fmt.Sprintf("errCode = 2, detailMessage = Syntax error near '%s': %s (this stand-in knows no more of Doris' SQL than its users need)", e.near, e.why)
}

func newParser(sql string) *parser {
	p := &parser{lexer: lexer{src: sql}}
	p.advance()
	return p
}

func (p *parser) advance() {
	if p.err != nil {
		return
	}
	t, err := p.next()
	p.tok = t
	if err != nil {
		p.fail("%v", err)
	}
}

// fail notes the first error; from then on the parser stands at the end.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &syntaxError{shorten(p.src[min(p.tok.at, len(p.src)):]), fmt.Sprintf(format, args...)}
	}
	p.tok = token{at: len(p.src)}
}

// take consumes the keywords or operators if all of them follow.
func (p *parser) take(words ...string) bool {
	before, tok := p.pos, p.tok
	for _, w := range words {
		if !p.tok.is(w) {
			p.pos, p.tok = before, tok
			return false
		}
		p.advance()
	}
	return p.err == nil
}

func (p *parser) expect(words ...string) {
	for _, w := range words {
		if !p.take(w) {
			p.fail("expected %s", w)
		}
	}
}

// end says that nothing may follow.
func (p *parser) end() error {
	p.take(";")
	if p.tok.kind != tokEnd {
		p.fail("nothing may follow")
	}
	return p.err
}

func (p *parser) identifier() string {
	t := p.tok
	if t.kind != tokWord && t.kind != tokQuoted {
		p.fail("expected a name")
		return ""
	}
	p.advance()
	return t.text
}

// qualified reads [catalog.][database.]name.
func (p *parser) qualified() (db, name string) {
	name = p.identifier()
	for p.take(".") {
		db, name = name, p.identifier()
	}
	return db, name
}

func (p *parser) stringLiteral() string {
	t := p.tok
	if t.kind != tokString {
		p.fail("expected a string")
		return ""
	}
	p.advance()
	return t.text
}

func (p *parser) integer() int64 {
	n, err := strconv.ParseInt(p.tok.text, 10, 64)
	if p.tok.kind != tokNumber || err != nil {
		p.fail("expected an integer")
		return 0
	}
	p.advance()
	return n
}

// names reads (a, b, c).
func (p *parser) names() []string {
	var all []string
	p.expect("(")
	for p.err == nil {
		all = append(all, p.identifier())
		if !p.take(",") {
			break
		}
	}
	p.expect(")")
	return all
}

// properties reads ("a" = "b", …); the quotes may be of either kind.
func (p *parser) properties() map[string]string {
	all := map[string]string{}
	p.expect("(")
	for p.err == nil && !p.tok.is(")") {
		name := p.stringLiteral()
		p.expect("=")
		all[name] = p.stringLiteral()
		if !p.take(",") {
			break
		}
	}
	p.expect(")")
	return all
}

// typeName reads a type with its arguments.
func (p *parser) typeName() columnType {
	name := p.identifier()
	var args []int
	if p.take("(") {
		if p.take("*") { // VARCHAR(*) is the longest there is
			args = append(args, maxVarchar)
		} else {
			for args = append(args, int(p.integer())); p.take(","); {
				args = append(args, int(p.integer()))
			}
		}
		p.expect(")")
	}
	if strings.EqualFold(name, "SIGNED") { // CAST(x AS SIGNED [INT])
		p.take("INT")
		name = "BIGINT"
	}
	t, err := newType(name, args)
	if err != nil {
		p.fail("%v", err)
	}
	return t
}
