package oracle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parser reads one statement. What it does not understand is an error, never skipped.
type parser struct {
	lexer
	tok        token
	err        error
	hints      []string
	binds      []string // names of the placeholders, in the order of their appearance
	aggregates int      // how many were read
}

func newParser(text string) *parser {
	p := &parser{lexer: lexer{src: text}}
	p.advance()
	return p
}

func (p *parser) advance() {
	for p.err == nil {
		t, err := p.next()
		p.tok = t
		if err != nil {
			p.fail("%v", err)
		}
		if t.kind != tokHint {
			return
		}
		p.hints = append(p.hints, strings.Fields(strings.ToUpper(t.text))...)
	}
}

// fail notes the first error; from then on the parser stands at the end.
func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		near := p.src[min(p.tok.at, len(p.src)):]
		p.err = ora(900, "invalid SQL statement near %q: %s (the stand-in knows no more of Oracle's SQL than its users need)",
			near[:min(len(near), 60)], fmt.Sprintf(format, args...))
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

// end says that nothing may follow. Drivers refuse a semicolon behind SQL (ORA-00933).
func (p *parser) end() error {
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

// qualified reads [owner.]name.
func (p *parser) qualified() (owner, name string) {
	name = p.identifier()
	if p.take(".") {
		owner, name = name, p.identifier()
	}
	return owner, name
}

func (p *parser) text() string {
	t := p.tok
	if t.kind != tokString {
		p.fail("expected a text")
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

// list reads what f reads, between parentheses and commas.
func (p *parser) list(f func()) {
	p.expect("(")
	for f(); p.take(","); {
		f()
	}
	p.expect(")")
}

func (p *parser) names() (all []string) {
	p.list(func() { all = append(all, p.identifier()) })
	return all
}

// expression reads OR, the loosest operator.
func (p *parser) expression() expr {
	x := p.and()
	for p.take("OR") {
		x = logic{"OR", x, p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for p.take("AND") {
		x = logic{"AND", x, p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if p.take("NOT") {
		return negation{p.not()}
	}
	if p.take("EXISTS") {
		p.expect("(")
		p.expect("SELECT")
		q := p.subquery()
		p.expect(")")
		return exists{q}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	x := p.sum()
	negated := p.take("NOT")
	var test expr
	switch {
	case p.take("BETWEEN"):
		low := p.sum()
		p.expect("AND")
		test = logic{"AND", comparing{">=", x, low}, comparing{"<=", x, p.sum()}}
	case p.take("IN"):
		test = p.in(x)
	case p.take("LIKE"):
		l := like{x: x, pattern: p.sum()}
		if p.take("ESCAPE") {
			l.escape = p.text()
		}
		test = l
	case negated:
		p.fail("expected BETWEEN, IN or LIKE")
		return x
	case p.take("IS"):
		negated = p.take("NOT")
		if p.take("JSON") {
			if p.take("(") {
				p.expect("STRICT", ")")
			}
			test = isJSON{x}
		} else {
			p.expect("NULL")
			test = isNull{x}
		}
	default:
		op := p.tok.text
		if p.tok.kind != tokOp || !slices.Contains([]string{"=", "<>", "!=", "<", "<=", ">", ">="}, op) {
			return x
		}
		p.advance()
		return comparing{op, x, p.sum()}
	}
	if negated {
		return negation{test}
	}
	return test
}

// maxList is how many expressions a list may have.
const maxList = 1000

func (p *parser) in(x expr) expr {
	in := &inList{x: x}
	p.expect("(")
	if p.take("SELECT") {
		in.query = p.subquery()
		p.expect(")")
		return in
	}
	for in.list = append(in.list, p.expression()); p.take(","); {
		in.list = append(in.list, p.expression())
	}
	p.expect(")")
	if len(in.list) > maxList && p.err == nil {
		p.err = ora(1795, "maximum number of expressions in a list is 1000")
	}
	return in
}

func (p *parser) sum() expr {
	x := p.product()
	for p.tok.kind == tokOp && (p.tok.text == "+" || p.tok.text == "-" || p.tok.text == "||") {
		op := p.tok.text
		p.advance()
		x = arithmetic{op, x, p.product()}
	}
	return x
}

func (p *parser) product() expr {
	x := p.unary()
	for p.tok.kind == tokOp && (p.tok.text == "*" || p.tok.text == "/") {
		op := p.tok.text
		p.advance()
		x = arithmetic{op, x, p.unary()}
	}
	return x
}

func (p *parser) unary() expr {
	if p.take("-") {
		return arithmetic{"-", literal{int64(0)}, p.unary()}
	}
	p.take("+")
	return p.primary()
}

func (p *parser) primary() expr {
	t := p.tok
	switch t.kind {
	case tokString:
		p.advance()
		return literal{emptyIsNull(t.text)}
	case tokNumber:
		p.advance()
		return literal{number(t.text)}
	case tokBind:
		p.advance()
		p.binds = append(p.binds, t.text)
		return placeholder{len(p.binds) - 1}
	case tokQuoted:
		return p.name()
	case tokWord:
		return p.word()
	}
	if p.take("(") {
		if p.take("SELECT") {
			q := p.subquery()
			p.expect(")")
			return scalarQuery{q}
		}
		x := p.expression()
		p.expect(")")
		return x
	}
	p.fail("expected an expression")
	return literal{}
}

func (p *parser) word() expr {
	switch {
	case p.take("NULL"):
		return literal{nil}
	case p.take("CASE"):
		return p.cases()
	case p.take("CAST"):
		p.expect("(")
		x := p.expression()
		p.expect("AS")
		c := cast{x, p.columnType()}
		p.expect(")")
		return c
	}
	after := p.lexer
	if t, err := after.next(); err == nil && t.kind == tokString && (p.tok.text == "DATE" || p.tok.text == "TIMESTAMP") {
		kind := p.tok.text
		p.advance()
		at, err := parseTime(p.text(), map[string]string{"DATE": "YYYY-MM-DD", "TIMESTAMP": "YYYY-MM-DD HH24:MI:SS.FF"}[kind])
		if err != nil {
			p.fail("%v", err)
		}
		return literal{at}
	}
	return p.name()
}

func (p *parser) cases() expr {
	var c caseOf
	if !p.tok.is("WHEN") {
		c.x = p.expression()
	}
	for p.take("WHEN") {
		when := p.expression()
		p.expect("THEN")
		c.when, c.then = append(c.when, when), append(c.then, p.expression())
	}
	if p.take("ELSE") {
		c.otherwise = p.expression()
	}
	p.expect("END")
	return c
}

// name reads a column, a pseudo-column, or the call of a function; package.function as well.
func (p *parser) name() expr {
	parts := []string{p.identifier()}
	for p.take(".") {
		if p.take("*") {
			return columnRef{source: parts[0], name: "*"}
		}
		parts = append(parts, p.identifier())
	}
	full := strings.Join(parts, ".")
	if !p.take("(") {
		if len(parts) == 1 && full == "ROWNUM" {
			return rowNumber{}
		}
		return columnRef{strings.Join(parts[:len(parts)-1], "."), parts[len(parts)-1]}
	}
	c := call{name: full}
	if aggregates[full] {
		p.aggregates++
	}
	switch {
	case p.take("*"):
		c.star = true
	case !p.tok.is(")"):
		c.distinct = p.take("DISTINCT")
		for c.args = append(c.args, p.argument(&c)); p.take(","); {
			c.args = append(c.args, p.argument(&c))
		}
	}
	p.expect(")")
	if p.take("WITHIN", "GROUP") { // LISTAGG's
		p.expect("(", "ORDER", "BY")
		c.order = p.expression()
		p.expect(")")
	}
	return c
}

// argument reads one of a call's: x, name => x, or, of JSON_OBJECT, 'name' VALUE x.
func (p *parser) argument(c *call) expr {
	after := p.lexer
	if t, err := after.next(); err == nil && t.is("=>") {
		c.names = append(c.names, p.identifier())
		p.advance()
		return p.expression()
	}
	if c.name == "JSON_OBJECT" {
		p.take("KEY")
		name := p.sum()
		if !p.take("VALUE") {
			p.expect("IS")
		}
		return pair{name, p.expression()}
	}
	return p.expression()
}
