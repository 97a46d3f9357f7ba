package oracle

import (
	"slices"
	"strings"
)

// query reads a SELECT behind its keyword.
func (p *parser) query() *query {
	q := &query{limit: -1, distinct: p.take("DISTINCT")}
	before := p.aggregates
	for q.items = append(q.items, p.item()); p.take(","); {
		q.items = append(q.items, p.item())
	}
	p.expect("FROM")
	p.sources(q)
	if p.take("WHERE") {
		q.where = p.expression()
	}
	if p.take("GROUP", "BY") {
		for q.groupBy = append(q.groupBy, p.expression()); p.take(","); {
			q.groupBy = append(q.groupBy, p.expression())
		}
	}
	if p.take("HAVING") {
		q.having = p.expression()
	}
	q.grouped = q.groupBy != nil || q.having != nil || p.aggregates > before
	if p.take("UNION") {
		p.expect("ALL", "SELECT")
		q.union = p.query()
		return q
	}
	if p.take("ORDER", "BY") {
		for more := true; more && p.err == nil; more = p.take(",") {
			o := order{x: p.expression()}
			if o.desc = p.take("DESC"); !o.desc {
				p.take("ASC")
			}
			q.orderBy = append(q.orderBy, o)
		}
	}
	if p.take("FETCH") {
		if !p.take("FIRST") {
			p.expect("NEXT")
		}
		q.limit = p.integer()
		if !p.take("ROW", "ONLY") {
			p.expect("ROWS", "ONLY")
		}
	}
	if p.take("FOR", "UPDATE") {
		p.fail("FOR UPDATE is not known")
	}
	return q
}

// subquery is query inside of another one, whose aggregates are no concern of the outer one.
func (p *parser) subquery() *query {
	before := p.aggregates
	q := p.query()
	p.aggregates = before
	return q
}

func (p *parser) item() item {
	if p.take("*") {
		return item{x: columnRef{name: "*"}}
	}
	from := p.tok.at
	x := p.expression()
	name := strings.ToUpper(strings.TrimSpace(p.src[from:min(p.tok.at, len(p.src))]))
	if c, ok := x.(columnRef); ok {
		name = c.name
	}
	if p.take("AS") || p.tok.kind == tokQuoted || p.tok.kind == tokWord && !reserved(p.tok.text) {
		name = p.identifier()
	}
	return item{x, name}
}

func reserved(word string) bool {
	return slices.Contains([]string{
		"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "UNION", "FETCH", "ON", "JOIN", "LEFT", "INNER", "USING", "FOR", "AND", "OR", "AS",
		"VALUES", "PARTITION", "CROSS", "SELECT", "SET", "INTO", "IN", "IS", "LIKE", "NOT", "BETWEEN", "MINUS",
	}, word)
}

func (p *parser) sources(q *query) {
	q.from = append(q.from, p.source())
	for p.err == nil {
		switch {
		case p.take(","):
			q.from = append(q.from, p.source())
		case p.tok.is("LEFT"), p.tok.is("INNER"), p.tok.is("JOIN"):
			left := p.take("LEFT")
			p.take("INNER")
			p.take("OUTER")
			p.expect("JOIN")
			s := p.source()
			s.left = left
			if p.take("USING") {
				s.using = p.names()
			} else {
				p.expect("ON")
				s.on = p.expression()
			}
			q.from = append(q.from, s)
		default:
			return
		}
	}
}

func (p *parser) source() *source {
	s := &source{}
	if p.take("(") {
		p.expect("SELECT")
		s.query = p.subquery()
		p.expect(")")
	} else {
		s.owner, s.name = p.qualified()
		s.alias = s.name
		if p.take("PARTITION") {
			p.expect("(")
			s.partition = p.identifier()
			p.expect(")")
		}
	}
	if p.tok.kind == tokQuoted || p.tok.kind == tokWord && !reserved(p.tok.text) {
		s.alias = p.identifier()
	}
	return s
}
