package doris

import "strings"

// expr is an expression. Its kinds are told apart in eval.
type expr interface{}

type (
	literal   struct{ v value }
	columnRef struct{ name string }
	variable  struct{ name string } // @@name
	unary     struct {
		op string
		x  expr
	}
	binary struct {
		op   string
		x, y expr
	}
	between struct{ x, low, high expr }
	inList  struct {
		x    expr
		list []expr
		set  map[string]bool // the list, once it was evaluated: lists of row numbers are long
	}
	isNull struct{ x expr }
	like   struct{ x, pattern expr }
	cast   struct {
		x    expr
		kind columnType
	}
	call struct {
		name     string // upper case
		args     []expr
		star     bool // COUNT(*)
		distinct bool
	}
	scalarQuery struct{ query *query }
)

// query is a SELECT.
type query struct {
	items   []item
	from    *source // nil: one row without columns
	where   expr
	groupBy []expr
	having  expr
	orderBy []order
	limit   int64 // -1: none
	offset  int64
}

type item struct {
	x    expr // nil: *
	name string
}

type order struct {
	x    expr
	desc bool
}

// source is what follows FROM: a table, a table function, or a query in parentheses.
type source struct {
	db, name   string
	function   string // upper case: S3, BACKENDS, FRONTENDS
	properties map[string]string
	query      *query
	read       func() ([]string, [][]value, error) // where the rows were read before
}

// query reads a SELECT behind its keyword.
func (p *parser) query() *query {
	q := &query{limit: -1}
	for p.err == nil {
		q.items = append(q.items, p.item())
		if !p.take(",") {
			break
		}
	}
	if p.take("FROM") {
		q.from = p.source()
	}
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
	if p.take("ORDER", "BY") {
		for p.err == nil {
			o := order{x: p.expression()}
			if o.desc = p.take("DESC"); !o.desc {
				p.take("ASC")
			}
			q.orderBy = append(q.orderBy, o)
			if !p.take(",") {
				break
			}
		}
	}
	p.limits(q)
	return q
}

func (p *parser) limits(q *query) {
	if !p.take("LIMIT") {
		return
	}
	q.limit = p.integer()
	if p.take("OFFSET") {
		q.offset = p.integer()
	} else if p.take(",") {
		q.offset, q.limit = q.limit, p.integer()
	}
}

func (p *parser) item() item {
	if p.take("*") {
		return item{}
	}
	from := p.tok.at
	x := p.expression()
	name := strings.TrimSpace(p.src[from:min(p.tok.at, len(p.src))])
	if c, ok := x.(columnRef); ok {
		name = c.name
	}
	if p.take("AS") {
		if p.tok.kind == tokString {
			name = p.stringLiteral()
		} else {
			name = p.identifier()
		}
	} else if p.tok.kind == tokQuoted || p.tok.kind == tokWord && !p.reserved() {
		name = p.identifier()
	}
	return item{x, name}
}

// reserved tells whether the word at hand goes on with the query instead of naming something.
func (p *parser) reserved() bool {
	switch strings.ToUpper(p.tok.text) {
	case "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "AND", "OR", "AS", "ON", "JOIN", "UNION", "INNER", "LEFT", "RIGHT",
		"CROSS", "FULL", "LATERAL", "WINDOW", "DIV", "BETWEEN", "IN", "IS", "LIKE", "NOT", "OFFSET", "FOR", "PARTITION", "TABLET":
		return true
	}
	return false
}

func (p *parser) source() *source {
	s := &source{}
	if p.take("(") {
		p.expect("SELECT")
		s.query = p.query()
		p.expect(")")
		// Doris wants a name for it: "Every derived table must have its own alias".
		p.take("AS")
		p.identifier()
		return s
	}
	s.db, s.name = p.qualified()
	if p.tok.is("(") {
		s.function, s.name = strings.ToUpper(s.name), ""
		s.properties = p.properties()
	}
	if p.take("AS") || p.tok.kind == tokQuoted || p.tok.kind == tokWord && !p.reserved() {
		p.identifier() // names are resolved without it: there is one source
	}
	return s
}
