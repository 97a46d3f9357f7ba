package oracle

import (
	"strings"

	"github.com/terapush/terapush/internal/fake/sqlread"
)

// expression reads OR, the loosest operator.
func (p *parser) expression() expr {
	x := p.and()
	for range p.Chain("OR") {
		x = logic{"OR", x, p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for range p.Chain("AND") {
		x = logic{"AND", x, p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if p.Take("NOT") {
		return negation{p.not()}
	}
	if p.Take("EXISTS") {
		p.Expect("(")
		p.Expect("SELECT")
		q := p.subquery()
		p.Expect(")")
		return exists{q}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	x := p.sum()
	negated := p.Take("NOT")
	var test expr
	switch {
	case p.Take("BETWEEN"):
		low := p.sum()
		p.Expect("AND")
		test = logic{"AND", comparing{">=", x, low}, comparing{"<=", x, p.sum()}}
	case p.Take("IN"):
		test = p.in(x)
	case p.Take("LIKE"):
		l := like{x: x, pattern: p.sum()}
		if p.Take("ESCAPE") {
			l.escape = p.Text()
		}
		test = l
	case negated:
		p.Fail("expected BETWEEN, IN or LIKE")
		return x
	case p.Take("IS"):
		negated = p.Take("NOT")
		if p.Take("JSON") {
			if p.Take("(") {
				p.Expect("STRICT", ")")
			}
			test = isJSON{x}
		} else {
			p.Expect("NULL")
			test = isNull{x}
		}
	default:
		op := p.OneOf("=", "<>", "!=", "<", "<=", ">", ">=")
		if op == "" {
			return x
		}
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
	p.Expect("(")
	if p.Take("SELECT") {
		in.query = p.subquery()
		p.Expect(")")
		return in
	}
	p.Each(func() { in.list = append(in.list, p.expression()) })
	p.Expect(")")
	if len(in.list) > maxList && p.Err == nil {
		p.Err = ora(1795, "maximum number of expressions in a list is 1000")
	}
	return in
}

func (p *parser) sum() expr {
	x := p.product()
	for op := range p.Chain("+", "-", "||") {
		x = arithmetic{op, x, p.product()}
	}
	return x
}

func (p *parser) product() expr {
	x := p.unary()
	for op := range p.Chain("*", "/") {
		x = arithmetic{op, x, p.unary()}
	}
	return x
}

func (p *parser) unary() expr {
	if p.Take("-") {
		return arithmetic{"-", literal{v: int64(0)}, p.unary()}
	}
	p.Take("+")
	return p.primary()
}

func (p *parser) primary() expr {
	t := p.Token
	switch t.Kind {
	case sqlread.String:
		p.Advance()
		return literal{v: emptyIsNull(t.Text)}
	case sqlread.Number:
		p.Advance()
		return literal{v: number(t.Text)}
	case sqlread.Bind:
		p.Advance()
		p.binds = append(p.binds, t.Text)
		return placeholder{len(p.binds) - 1}
	case sqlread.Quoted:
		return p.name()
	case sqlread.Word:
		return p.word()
	}
	if p.Take("(") {
		if p.Take("SELECT") {
			q := p.subquery()
			p.Expect(")")
			return scalarQuery{q}
		}
		x := p.expression()
		p.Expect(")")
		return x
	}
	p.Fail("expected an expression")
	return literal{}
}

func (p *parser) word() expr {
	switch {
	case p.Take("NULL"):
		return literal{}
	case p.Take("CASE"):
		return p.cases()
	case p.Token.Is("EXTRACT") && p.Peek().Is("("):
		p.Advance()
		return p.extract()
	case p.Take("CAST"):
		p.Expect("(")
		x := p.expression()
		p.Expect("AS")
		c := cast{x, p.columnType()}
		p.Expect(")")
		return c
	}
	kind := p.Token.Text
	format, dated := map[string]string{"DATE": "YYYY-MM-DD", "TIMESTAMP": "YYYY-MM-DD HH24:MI:SS.FF"}[kind]
	if dated && p.Peek().Kind == sqlread.String {
		p.Advance()
		at, err := parseTime(p.Text(), format)
		if err != nil {
			p.Fail("%v", err)
		}
		return literal{v: at, timestamp: kind == "TIMESTAMP"}
	}
	return p.name()
}

func (p *parser) cases() expr {
	var c caseOf
	if !p.Token.Is("WHEN") {
		c.x = p.expression()
	}
	for p.Take("WHEN") {
		when := p.expression()
		p.Expect("THEN")
		c.when, c.then = append(c.when, when), append(c.then, p.expression())
	}
	if p.Take("ELSE") {
		c.otherwise = p.expression()
	}
	p.Expect("END")
	return c
}

// name reads a column, a pseudo-column, or the call of a function; package.function as well.
func (p *parser) name() expr {
	parts := []string{p.Identifier()}
	for p.Take(".") {
		if p.Take("*") {
			return columnRef{source: parts[0], name: "*"}
		}
		parts = append(parts, p.Identifier())
	}
	full := strings.Join(parts, ".")
	if !p.Take("(") {
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
	case p.Take("*"):
		c.star = true
	case !p.Token.Is(")"):
		c.distinct = p.Take("DISTINCT")
		p.Each(func() { c.args = append(c.args, p.argument(&c)) })
	}
	p.Expect(")")
	if p.Take("WITHIN", "GROUP") { // LISTAGG's
		p.Expect("(", "ORDER", "BY")
		c.order = p.expression()
		p.Expect(")")
	}
	return c
}

// argument reads one of a call's: x, name => x, or, of JSON_OBJECT, 'name' VALUE x.
func (p *parser) argument(c *call) expr {
	if p.Peek().Is("=>") {
		c.names = append(c.names, p.Identifier())
		p.Advance()
		return p.expression()
	}
	if c.name == "JSON_OBJECT" {
		p.Take("KEY")
		name := p.sum()
		if !p.Take("VALUE") {
			p.Expect("IS")
		}
		return pair{name, p.expression()}
	}
	return p.expression()
}
