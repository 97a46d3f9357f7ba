package doris

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// expression reads OR, the loosest operator.
func (p *parser) expression() expr {
	x := p.and()
	for p.take("OR") || p.take("||") {
		x = binary{"OR", x, p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for p.take("AND") || p.take("&&") {
		x = binary{"AND", x, p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if p.take("NOT") || p.take("!") {
		return unary{"NOT", p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	x := p.sum()
	for p.err == nil {
		negated := p.take("NOT")
		var test expr
		switch {
		case p.take("BETWEEN"):
			low := p.sum()
			p.expect("AND")
			test = between{x, low, p.sum()}
		case p.take("IN"):
			in := &inList{x: x}
			p.expect("(")
			for in.list = append(in.list, p.expression()); p.take(","); {
				in.list = append(in.list, p.expression())
			}
			p.expect(")")
			test = in
		case p.take("LIKE"):
			test = like{x, p.sum()}
		case negated:
			p.fail("expected BETWEEN, IN or LIKE")
			return x
		case p.take("IS"):
			negated = p.take("NOT")
			p.expect("NULL")
			test = isNull{x}
		default:
			op := p.tok.text
			if p.tok.kind != tokOp || !slices.Contains([]string{"=", "<>", "!=", "<", "<=", ">", ">=", "<=>"}, op) {
				return x
			}
			p.advance()
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
	for {
		switch {
		case p.take("+"):
			x = binary{"+", x, p.product()}
		case p.take("-"):
			x = binary{"-", x, p.product()}
		default:
			return x
		}
	}
}

func (p *parser) product() expr {
	x := p.unary()
	for {
		switch {
		case p.take("*"):
			x = binary{"*", x, p.unary()}
		case p.take("/"):
			x = binary{"/", x, p.unary()}
		case p.take("%"), p.take("MOD"):
			x = binary{"%", x, p.unary()}
		case p.take("DIV"):
			x = binary{"DIV", x, p.unary()}
		default:
			return x
		}
	}
}

func (p *parser) unary() expr {
	if p.take("-") {
		x := p.unary()
		if l, ok := x.(literal); ok {
			if v, err := arithmetic("-", int64(0), l.v); err == nil {
				return literal{v}
			}
		}
		return unary{"-", x}
	}
	if p.take("+") {
		return p.unary()
	}
	return p.primary()
}

func (p *parser) primary() expr {
	t := p.tok
	switch t.kind {
	case tokString:
		p.advance()
		return literal{t.text}
	case tokNumber:
		p.advance()
		return literal{number(t.text)}
	case tokQuoted:
		return p.name()
	case tokWord:
		return p.word()
	}
	switch {
	case p.take("@@"):
		name := p.identifier()
		if p.take(".") { // @@session.name, @@global.name
			name = p.identifier()
		}
		return variable{strings.ToLower(name)}
	case p.take("("):
		if p.take("SELECT") {
			q := p.query()
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
	case p.take("TRUE"):
		return literal{int64(1)}
	case p.take("FALSE"):
		return literal{int64(0)}
	case p.take("CAST"):
		p.expect("(")
		x := p.expression()
		p.expect("AS")
		c := cast{x, p.typeName()}
		p.expect(")")
		return c
	}
	// DATE '…', TIMESTAMP '…' and BINARY '…' are literals; go-sql-driver and MySQL's encoders write _binary'…'
	// (assumed to be taken: the grammar that was read has BINARY only).
	word := p.tok
	after := p.lexer
	if t, err := after.next(); err == nil && t.kind == tokString && slices.Contains([]string{"DATE", "TIMESTAMP", "BINARY", "_BINARY"}, strings.ToUpper(word.text)) {
		p.advance()
		p.advance()
		return literal{t.text}
	}
	return p.name()
}

// name reads a column, or the call of a function.
func (p *parser) name() expr {
	bare := p.tok.kind == tokWord
	if bare && p.reserved() {
		p.fail("expected an expression")
		return literal{}
	}
	name := p.identifier()
	if !bare || !p.take("(") {
		for p.take(".") {
			name = p.identifier()
		}
		return columnRef{name}
	}
	c := call{name: strings.ToUpper(name)}
	switch {
	case p.take("*"):
		c.star = true
	case !p.tok.is(")"):
		c.distinct = p.take("DISTINCT")
		for c.args = append(c.args, p.expression()); p.take(","); {
			c.args = append(c.args, p.expression())
		}
	}
	p.expect(")")
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
