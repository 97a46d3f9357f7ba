package doris

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/fake/sqlread"
)

// expression reads OR, the loosest operator.
func (p *parser) expression() expr {
	x := p.and()
	for range p.Chain("OR", "||") {
		x = binary{"OR", x, p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for range p.Chain("AND", "&&") {
		x = binary{"AND", x, p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if p.Take("NOT") || p.Take("!") {
		return unary{"NOT", p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	x := p.sum()
	for p.Err == nil {
		negated := p.Take("NOT")
		var test expr
		switch {
		case p.Take("BETWEEN"):
			low := p.sum()
			p.Expect("AND")
			test = between{x, low, p.sum()}
		case p.Take("IN"):
			in := &inList{x: x}
			p.List(func() { in.list = append(in.list, p.expression()) })
			test = in
		case p.Take("LIKE"):
			test = like{x, p.sum()}
		case negated:
			p.Fail("expected BETWEEN, IN or LIKE")
			return x
		case p.Take("IS"):
			negated = p.Take("NOT")
			p.Expect("NULL")
			test = isNull{x}
		default:
			op := p.OneOf("=", "<>", "!=", "<", "<=", ">", ">=", "<=>")
			if op == "" {
				return x
			}
			test = binary{op, x, p.sum()}
		}
		if x = test; negated {
			x = unary{"NOT", x}
		}
	}
	return x
}

func (p *parser) sum() expr {
	x := p.product()
	for op := range p.Chain("+", "-") {
		x = binary{op, x, p.product()}
	}
	return x
}

func (p *parser) product() expr {
	x := p.unary()
	for op := range p.Chain("*", "/", "%", "MOD", "DIV") {
		if op == "MOD" {
			op = "%"
		}
		x = binary{op, x, p.unary()}
	}
	return x
}

func (p *parser) unary() expr {
	if p.Take("-") {
		x := p.unary()
		if l, ok := x.(literal); ok {
			if v, err := arithmetic("-", int64(0), l.v); err == nil {
				return literal{v}
			}
		}
		return unary{"-", x}
	}
	if p.Take("+") {
		return p.unary()
	}
	return p.primary()
}

func (p *parser) primary() expr {
	t := p.Token
	switch t.Kind {
	case sqlread.String:
		p.Advance()
		return literal{t.Text}
	case sqlread.Number:
		p.Advance()
		return literal{number(t.Text)}
	case sqlread.Quoted:
		return p.name()
	case sqlread.Word:
		return p.word()
	}
	switch {
	case p.Take("@@"):
		name := p.Identifier()
		if p.Take(".") { // @@session.name, @@global.name
			name = p.Identifier()
		}
		return variable{strings.ToLower(name)}
	case p.Take("("):
		if p.Take("SELECT") {
			q := p.query()
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
		return literal{nil}
	case p.Take("TRUE"):
		return literal{int64(1)}
	case p.Take("FALSE"):
		return literal{int64(0)}
	case p.Take("CAST"):
		p.Expect("(")
		x := p.expression()
		p.Expect("AS")
		c := cast{x, p.typeName()}
		p.Expect(")")
		return c
	}
	// DATE '…', TIMESTAMP '…' and BINARY '…' are literals; go-sql-driver and MySQL's encoders write _binary'…'
	// (assumed to be taken: the grammar that was read has BINARY only).
	if p.Peek().Kind == sqlread.String && p.OneOf("DATE", "TIMESTAMP", "BINARY", "_BINARY") != "" {
		return literal{p.Text()}
	}
	return p.name()
}

// name reads a column, or the call of a function.
func (p *parser) name() expr {
	if !p.AtName() {
		p.Fail("expected an expression")
		return literal{}
	}
	bare := p.Token.Kind == sqlread.Word
	name := p.Identifier()
	if !bare || !p.Take("(") {
		for p.Take(".") {
			name = p.Identifier()
		}
		return columnRef{name}
	}
	c := call{name: strings.ToUpper(name)}
	switch {
	case p.Take("*"):
		c.star = true
	case !p.Token.Is(")"):
		c.distinct = p.Take("DISTINCT")
		p.Each(func() { c.args = append(c.args, p.expression()) })
	}
	p.Expect(")")
	return c
}

// number is a numeric literal: BIGINT, LARGEINT beyond it, DECIMAL with a point, DOUBLE with an exponent.
func number(text string) value {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if strings.ContainsAny(text, "eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err == nil {
			return f
		}
	}
	if _, fraction, ok := strings.Cut(text, "."); ok {
		if r, ok := new(big.Rat).SetString(text); ok {
			return &decimal{r, len(fraction)}
		}
	}
	if n, ok := new(big.Int).SetString(text, 10); ok {
		return n
	}
	return text
}
