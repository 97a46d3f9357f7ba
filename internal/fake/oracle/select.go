package oracle

import "strings"

// query reads a SELECT behind its keyword.
func (p *parser) query() *query {
	q := &query{limit: -1, distinct: p.Take("DISTINCT")}
	before := p.aggregates
	p.Each(func() { q.items = append(q.items, p.item()) })
	p.Expect("FROM")
	p.sources(q)
	if p.Take("WHERE") {
		q.where = p.expression()
	}
	if p.Take("GROUP", "BY") {
		p.Each(func() { q.groupBy = append(q.groupBy, p.expression()) })
	}
	if p.Take("HAVING") {
		q.having = p.expression()
	}
	q.grouped = q.groupBy != nil || q.having != nil || p.aggregates > before
	if p.Take("UNION") {
		p.Expect("ALL", "SELECT")
		q.union = p.query()
		return q
	}
	if p.Take("ORDER", "BY") {
		p.Each(func() { q.orderBy = append(q.orderBy, order{p.expression(), p.OneOf("DESC", "ASC") == "DESC"}) })
	}
	if p.Take("FETCH") {
		if !p.Take("FIRST") {
			p.Expect("NEXT")
		}
		q.limit = p.Integer()
		if !p.Take("ROW", "ONLY") {
			p.Expect("ROWS", "ONLY")
		}
	}
	if p.Take("FOR", "UPDATE") {
		p.Fail("FOR UPDATE is not known")
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
	if p.Take("*") {
		return item{x: columnRef{name: "*"}}
	}
	from := p.Token.At
	x := p.expression()
	name := strings.ToUpper(p.Since(from))
	if c, ok := x.(columnRef); ok {
		name = c.name
	}
	if p.Take("AS") || p.AtName() {
		name = p.Identifier()
	}
	return item{x, name}
}

func (p *parser) sources(q *query) {
	q.from = append(q.from, p.source())
	for p.Err == nil {
		switch {
		case p.Take(","):
			q.from = append(q.from, p.source())
		case p.Token.Is("LEFT"), p.Token.Is("INNER"), p.Token.Is("JOIN"):
			left := p.Take("LEFT")
			p.Take("INNER")
			p.Take("OUTER")
			p.Expect("JOIN")
			s := p.source()
			s.left = left
			if p.Take("USING") {
				s.using = p.Names()
			} else {
				p.Expect("ON")
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
	if p.Take("(") {
		p.Expect("SELECT")
		s.query = p.subquery()
		p.Expect(")")
	} else {
		s.owner, s.name = p.qualified()
		s.alias = s.name
		if p.Take("PARTITION") {
			p.Expect("(")
			s.partition = p.Identifier()
			p.Expect(")")
		}
	}
	if p.AtName() {
		s.alias = p.Identifier()
	}
	return s
}
