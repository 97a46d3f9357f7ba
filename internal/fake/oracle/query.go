package oracle

import (
	"slices"
)

// query is a SELECT.
type query struct {
	items    []item
	distinct bool
	from     []*source
	where    expr
	groupBy  []expr
	having   expr
	grouped  bool
	orderBy  []order
	limit    int64 // −1: none
	union    *query
}

type item struct {
	x    expr
	name string
}

type order struct {
	x    expr
	desc bool
}

// source is what stands behind FROM: a table, a view, or a query in parentheses; with how it is joined to those before.
type source struct {
	owner, name, alias, partition string
	query                         *query
	left                          bool
	on                            expr
	using                         []string
}

// answer is what a statement gives: rows, or how many it changed.
type answer struct {
	names    []string
	rows     [][]value
	affected int64
	outs     []value
}

// run executes a query; outer is the scope it stands in. The store is locked by whoever calls it.
func (s *session) run(q *query, outer *scope) (*answer, error) {
	names, rows, err := s.join(q, outer)
	if err != nil {
		return nil, err
	}
	at := scope{session: s, names: names, outer: outer}
	if outer != nil {
		at.binds = outer.binds
	}
	if rows, err = at.filter(q.where, rows); err != nil {
		return nil, err
	}
	if len(rows) == 0 { // names are wrong without a row as well
		if err := at.check(q); err != nil {
			return nil, err
		}
	}
	scopes, err := at.scopes(q, rows)
	if err != nil {
		return nil, err
	}
	a, err := at.project(q, scopes)
	if err != nil || q.union == nil {
		return a, err
	}
	more, err := s.run(q.union, outer)
	if err == nil {
		a.rows = append(a.rows, more.rows...)
	}
	return a, err
}

func (s *scope) filter(where expr, rows [][]value) ([][]value, error) {
	if where == nil {
		return rows, nil
	}
	at := *s
	var left [][]value
	for _, at.row = range rows {
		at.rowNum = int64(len(left)) + 1
		v, err := where.eval(&at)
		if err != nil {
			return nil, err
		}
		if v == true {
			left = append(left, at.row)
		}
	}
	return left, nil
}

// check evaluates for a row of NULLs.
func (s *scope) check(q *query) error {
	at := *s
	at.row = make([]value, len(at.names))
	if q.grouped {
		at.group = [][]value{}
	}
	all := []expr{q.where}
	for _, i := range q.items {
		all = append(all, i.x)
	}
	for _, x := range all {
		if c, is := x.(columnRef); x == nil || is && c.name == "*" {
			continue
		}
		if _, err := x.eval(&at); err != nil {
			return err
		}
	}
	return nil
}

// join reads the sources and joins them, each with all before it.
func (s *session) join(q *query, outer *scope) (names []columnName, rows [][]value, err error) {
	rows = [][]value{{}}
	for _, f := range q.from {
		columns, more, err := s.read(f, outer)
		if err != nil {
			return nil, nil, err
		}
		before := len(names)
		for _, c := range columns {
			names = append(names, columnName{f.alias, c})
		}
		on := f.on
		for _, u := range f.using {
			at := slices.IndexFunc(names[:before], func(c columnName) bool { return c.name == u })
			if at < 0 {
				return nil, nil, ora(904, "%q: invalid identifier", u)
			}
			same := comparing{"=", columnRef{names[at].source, u}, columnRef{f.alias, u}}
			if on == nil {
				on = same
			} else {
				on = logic{"AND", on, same}
			}
		}
		at := scope{session: s, names: names, outer: outer}
		if outer != nil {
			at.binds = outer.binds
		}
		var joined [][]value
		for _, a := range rows {
			var pairs [][]value
			for _, b := range more {
				pairs = append(pairs, slices.Concat(a, b))
			}
			if pairs, err = at.filter(on, pairs); err != nil {
				return nil, nil, err
			}
			if len(pairs) == 0 && f.left {
				pairs = [][]value{slices.Concat(a, make([]value, len(columns)))}
			}
			joined = append(joined, pairs...)
		}
		rows = joined
	}
	return names, rows, nil
}

// scopes are the rows that the select list is computed for: the sources', or the groups.
func (s *scope) scopes(q *query, rows [][]value) ([]*scope, error) {
	var all []*scope
	of := func(row []value) *scope {
		one := *s
		one.row, one.aliases = row, q.items
		return &one
	}
	if !q.grouped {
		for i, row := range rows {
			one := of(row)
			one.rowNum = int64(i) + 1
			all = append(all, one)
		}
		return all, nil
	}
	groups := map[string]*scope{}
	if q.groupBy == nil { // one group, even of no rows
		only := of(nil)
		only.group = [][]value{}
		groups[""], all = only, []*scope{only}
	}
	for _, row := range rows {
		one := of(row)
		one.aliases = nil // Oracle groups by no alias
		var k []value
		for _, x := range q.groupBy {
			v, err := x.eval(one)
			if err != nil {
				return nil, err
			}
			k = append(k, v)
		}
		g := groups[key(k)]
		if g == nil {
			g = of(row)
			groups[key(k)], all = g, append(all, g)
		}
		g.row, g.group = row, append(g.group, row)
	}
	if q.having == nil {
		return all, nil
	}
	var left []*scope
	for _, g := range all {
		v, err := q.having.eval(g)
		if err != nil {
			return nil, err
		}
		if v == true {
			left = append(left, g)
		}
	}
	return left, nil
}

// project computes the select list, sorts and cuts.
func (s *scope) project(q *query, scopes []*scope) (*answer, error) {
	a := &answer{}
	for _, i := range q.items {
		if c, is := i.x.(columnRef); is && c.name == "*" {
			for _, n := range s.names {
				if c.source == "" || c.source == n.source {
					a.names = append(a.names, n.name)
				}
			}
			continue
		}
		a.names = append(a.names, i.name)
	}
	type sortable struct{ row, keys []value }
	var rows []sortable
	for _, at := range scopes {
		one := sortable{}
		for _, i := range q.items {
			if c, is := i.x.(columnRef); is && c.name == "*" {
				for n, name := range s.names {
					if c.source == "" || c.source == name.source {
						one.row = append(one.row, at.row[n])
					}
				}
				continue
			}
			v, err := i.x.eval(at)
			if err != nil {
				return nil, err
			}
			one.row = append(one.row, v)
		}
		for _, o := range q.orderBy {
			x := o.x
			if l, is := x.(literal); is {
				if n, is := l.v.(int64); is && n >= 1 && int(n) <= len(one.row) {
					x = literal{v: one.row[n-1]}
				}
			}
			v, err := x.eval(at)
			if err != nil {
				return nil, err
			}
			one.keys = append(one.keys, v)
		}
		rows = append(rows, one)
	}
	slices.SortStableFunc(rows, func(x, y sortable) int {
		for i, o := range q.orderBy {
			c := 0
			if x.keys[i] != nil && y.keys[i] != nil {
				c, _ = compare(x.keys[i], y.keys[i])
			}
			if o.desc {
				c = -c
			}
			if c != 0 {
				return c
			}
		}
		return 0
	})
	seen := map[string]bool{}
	for _, one := range rows {
		if q.limit >= 0 && int64(len(a.rows)) == q.limit {
			break
		}
		if q.distinct && seen[key(one.row)] {
			continue
		}
		seen[key(one.row)] = true
		a.rows = append(a.rows, one.row)
	}
	return a, nil
}

// read gives the columns and rows of a source.
func (s *session) read(f *source, outer *scope) ([]string, [][]value, error) {
	if f.query != nil {
		a, err := s.run(f.query, outer)
		if err != nil {
			return nil, nil, err
		}
		return a.names, a.rows, nil
	}
	if f.owner == "" || f.owner == "SYS" {
		if columns, rows, known, err := s.view(f.name); known {
			return columns, rows, err
		}
	}
	t, err := s.table(f.owner, f.name)
	if err != nil {
		return nil, nil, err
	}
	if s.tx != nil && s.tx.direct[t] {
		return nil, nil, ora(12838, "cannot read/modify an object after modifying it in parallel")
	}
	if t.external != nil {
		rows, err := s.readExternal(t)
		return t.names(), rows, err
	}
	var rows [][]value
	for _, r := range t.rows {
		if r.visible(s.tx) && (f.partition == "" || t.partitionOf(r.values) == f.partition) {
			rows = append(rows, r.values)
		}
	}
	return t.names(), rows, nil
}
