package oracle

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// scope is what names mean while an expression is evaluated.
type scope struct {
	*session
	names   []columnName
	row     []value
	group   [][]value // the rows an aggregate counts; nil outside of one
	outer   *scope    // of the query around this one
	aliases []item    // of the select list, for ORDER BY
	binds   []value   // in the order of the placeholders
	rowNum  int64
}

// columnName is a column of a query's sources.
type columnName struct{ source, name string }

// expr is an expression.
type expr interface{ eval(s *scope) (value, error) }

type (
	literal struct {
		v         value
		timestamp bool // TIMESTAMP '…'
	}
	placeholder struct{ n int }
	rowNumber   struct{}
	columnRef   struct{ source, name string }
	arithmetic  struct {
		op   string
		x, y expr
	}
	comparing struct {
		op   string
		x, y expr
	}
	logic struct {
		op   string
		x, y expr
	}
	negation struct{ x expr }
	isNull   struct{ x expr }
	isJSON   struct{ x expr }
	like     struct {
		x, pattern expr
		escape     string
	}
	inList struct {
		x     expr
		list  []expr
		query *query
		set   map[string]bool // the list, once it was evaluated, if it is of constants
	}
	exists      struct{ query *query }
	scalarQuery struct{ query *query }
	cast        struct {
		x    expr
		kind columnType
	}
	caseOf struct {
		x, otherwise expr // either may be nil
		when, then   []expr
	}
	pair struct{ name, x expr } // of JSON_OBJECT
	call struct {
		name           string // upper case, with its package
		args           []expr
		names          []string // of the arguments that were given by name; then all are
		star, distinct bool
		order          expr
	}
)

func (x literal) eval(*scope) (value, error)       { return x.v, nil }
func (x placeholder) eval(s *scope) (value, error) { return s.binds[x.n], nil }
func (rowNumber) eval(s *scope) (value, error)     { return s.rowNum, nil }

func (x columnRef) eval(s *scope) (value, error) {
	for at := s; at != nil; at = at.outer {
		i := at.find(x)
		switch {
		case i >= 0 && at.row == nil: // an aggregate over no rows
			return nil, nil
		case i >= 0:
			return at.row[i], nil
		}
		for _, a := range at.aliases {
			if x.source == "" && a.name == x.name {
				inner := *at
				inner.aliases = nil
				return a.x.eval(&inner)
			}
		}
	}
	if v, known := s.pseudo(x); known {
		return v, nil
	}
	if x.source != "" {
		if v, known, err := s.function(call{name: x.source + "." + x.name}); known { // a call without parentheses
			return v, err
		}
	}
	return nil, ora(904, "%q: invalid identifier", strings.TrimPrefix(x.source+"."+x.name, "."))
}

func (s *scope) find(x columnRef) int {
	return slices.IndexFunc(s.names, func(c columnName) bool {
		return c.name == x.name && (x.source == "" || x.source == c.source)
	})
}

func (x arithmetic) eval(s *scope) (value, error) {
	a, b, err := s.two(x.x, x.y)
	if err != nil {
		return nil, err
	}
	if i, is := x.apart(a, b); is {
		return i, nil
	}
	return calculate(x.op, a, b)
}

func (s *scope) two(x, y expr) (a, b value, err error) {
	if a, err = x.eval(s); err == nil {
		b, err = y.eval(s)
	}
	return a, b, err
}

func (x comparing) eval(s *scope) (value, error) {
	a, b, err := s.two(x.x, x.y)
	if err != nil || a == nil || b == nil {
		return nil, err
	}
	c, err := compare(a, b)
	if err != nil {
		return nil, err
	}
	switch x.op {
	case "=":
		return c == 0, nil
	case "<":
		return c < 0, nil
	case "<=":
		return c <= 0, nil
	case ">":
		return c > 0, nil
	case ">=":
		return c >= 0, nil
	}
	return c != 0, nil
}

// eval knows three answers: nil is neither true nor false.
func (x logic) eval(s *scope) (value, error) {
	decides := x.op == "OR"
	a, err := x.x.eval(s)
	if err != nil || a == decides {
		return a, err
	}
	b, err := x.y.eval(s)
	if err != nil || b == decides {
		return b, err
	}
	if a == nil || b == nil {
		return nil, nil
	}
	return !decides, nil
}

func (x negation) eval(s *scope) (value, error) {
	v, err := x.x.eval(s)
	if v == nil || err != nil {
		return nil, err
	}
	return v == false, nil
}

func (x isNull) eval(s *scope) (value, error) {
	v, err := x.x.eval(s)
	return v == nil, err
}

func (x isJSON) eval(s *scope) (value, error) {
	v, err := x.x.eval(s)
	if v == nil || err != nil {
		return nil, err
	}
	return json.Valid([]byte(text(v))), nil
}

func (x like) eval(s *scope) (value, error) {
	v, pattern, err := s.two(x.x, x.pattern)
	if err != nil || v == nil || pattern == nil {
		return nil, err
	}
	return matches(text(v), text(pattern), x.escape), nil
}

func matches(s, pattern, escape string) bool {
	if pattern == "" {
		return s == ""
	}
	if escape != "" && pattern[:1] == escape && len(pattern) > 1 {
		return s != "" && pattern[1] == s[0] && matches(s[1:], pattern[2:], escape)
	}
	if pattern[0] == '%' {
		for i := 0; i <= len(s); i++ {
			if matches(s[i:], pattern[1:], escape) {
				return true
			}
		}
		return false
	}
	return s != "" && (pattern[0] == '_' || pattern[0] == s[0]) && matches(s[1:], pattern[1:], escape)
}

func (x *inList) eval(s *scope) (value, error) {
	v, err := x.x.eval(s)
	if err != nil || v == nil {
		return nil, err
	}
	if x.query != nil {
		a, err := s.run(x.query, s)
		if err != nil {
			return nil, err
		}
		for _, row := range a.rows {
			if row[0] == nil {
				continue
			}
			if c, err := compare(v, row[0]); err != nil || c == 0 {
				return true, err
			}
		}
		return false, nil
	}
	if _, timed := v.(time.Time); timed { // not by their texts, which are days
		return x.slowly(s, v)
	}
	if x.set == nil {
		x.set = map[string]bool{}
		for _, e := range x.list {
			l, is := e.(literal)
			if _, timed := l.v.(time.Time); !is || timed || l.v == nil {
				x.set = nil
				return x.slowly(s, v)
			}
			c, _ := e.eval(s)
			x.set[text(c)] = true
		}
	}
	return x.set[text(v)], nil
}

func (x *inList) slowly(s *scope, v value) (value, error) {
	for _, e := range x.list {
		w, err := e.eval(s)
		if err != nil {
			return nil, err
		}
		if w == nil {
			continue
		}
		if c, err := compare(v, w); err != nil || c == 0 {
			return true, err
		}
	}
	return false, nil
}

func (x exists) eval(s *scope) (value, error) {
	a, err := s.run(x.query, s)
	if err != nil {
		return nil, err
	}
	return len(a.rows) > 0, nil
}

func (x scalarQuery) eval(s *scope) (value, error) {
	a, err := s.run(x.query, s)
	switch {
	case err != nil:
		return nil, err
	case len(a.names) != 1:
		return nil, ora(913, "too many values")
	case len(a.rows) > 1:
		return nil, ora(1427, "single-row subquery returns more than one row")
	case len(a.rows) == 0:
		return nil, nil
	}
	return a.rows[0][0], nil
}

func (x cast) eval(s *scope) (value, error) {
	v, err := x.x.eval(s)
	if err != nil {
		return nil, err
	}
	return x.kind.fit(v, "CAST")
}

func (x caseOf) eval(s *scope) (value, error) {
	for i, when := range x.when {
		test := when
		if x.x != nil {
			test = comparing{"=", x.x, when}
		}
		v, err := test.eval(s)
		if err != nil {
			return nil, err
		}
		if v == true {
			return x.then[i].eval(s)
		}
	}
	if x.otherwise == nil {
		return nil, nil
	}
	return x.otherwise.eval(s)
}

// eval gives the two halves of the pair as JSON.
func (x pair) eval(s *scope) (value, error) {
	name, v, err := s.two(x.name, x.x)
	if err != nil {
		return nil, err
	}
	quoted := func(v value) string {
		b, _ := json.Marshal(text(v)) // a text is always JSON
		return string(b)
	}
	switch v.(type) {
	case nil:
		return quoted(name) + ":null", nil
	case string, raw:
		if strings.HasPrefix(text(v), "{") || v == "true" || v == "false" {
			return quoted(name) + ":" + text(v), nil
		}
		return quoted(name) + ":" + quoted(v), nil
	}
	return quoted(name) + ":" + text(v), nil
}

func (x call) eval(s *scope) (value, error) {
	if aggregates[x.name] {
		return s.aggregate(x)
	}
	v, known, err := s.function(x)
	if !known {
		return nil, ora(904, "%q: invalid identifier (a function that the stand-in does not know)", x.name)
	}
	return v, err
}
