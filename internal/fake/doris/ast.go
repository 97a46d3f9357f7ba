package doris

import (
	"strings"

	"github.com/terapush/terapush/internal/fake/sqlread"
)

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
	p.Each(func() { q.items = append(q.items, p.item()) })
	if p.Take("FROM") {
		q.from = p.source()
	}
	if p.Take("WHERE") {
		q.where = p.expression()
	}
	if p.Take("GROUP", "BY") {
		p.Each(func() { q.groupBy = append(q.groupBy, p.expression()) })
	}
	if p.Take("HAVING") {
		q.having = p.expression()
	}
	if p.Take("ORDER", "BY") {
		p.Each(func() { q.orderBy = append(q.orderBy, p.order()) })
	}
	p.limits(q)
	return q
}

func (p *parser) order() order { return order{p.expression(), p.OneOf("DESC", "ASC") == "DESC"} }

func (p *parser) limits(q *query) {
	if !p.Take("LIMIT") {
		return
	}
	q.limit = p.Integer()
	if p.Take("OFFSET") {
		q.offset = p.Integer()
	} else if p.Take(",") {
		q.offset, q.limit = q.limit, p.Integer()
	}
}

func (p *parser) item() item {
	if p.Take("*") {
		return item{}
	}
	from := p.Token.At
	x := p.expression()
	name := p.Since(from)
	if c, ok := x.(columnRef); ok {
		name = c.name
	}
	if p.Take("AS") {
		if p.Token.Kind == sqlread.String {
			name = p.Text()
		} else {
			name = p.Identifier()
		}
	} else if p.AtName() {
		name = p.Identifier()
	}
	return item{x, name}
}

func (p *parser) source() *source {
	s := &source{}
	if p.Take("(") {
		p.Expect("SELECT")
		s.query = p.query()
		p.Expect(")")
		// Doris wants a name for it: "Every derived table must have its own alias".
		p.Take("AS")
		p.Identifier()
		return s
	}
	s.db, s.name = p.qualified()
	if p.Token.Is("(") {
		s.function, s.name = strings.ToUpper(s.name), ""
		s.properties = p.properties()
	}
	if p.Take("AS") || p.AtName() {
		p.Identifier() // names are resolved without it: there is one source
	}
	return s
}
