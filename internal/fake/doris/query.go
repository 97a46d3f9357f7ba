package doris

import (
	"fmt"
	"slices"
	"strings"
)

// result is what a statement gives: rows, or how many it changed.
type result struct {
	names    []string
	rows     [][]value
	affected int64
}

// run executes a query. The store is locked by whoever calls it.
func (s *session) run(q *query) (*result, error) {
	columns, rows := []string{}, [][]value{{}}
	if q.from != nil {
		var err error
		if columns, rows, err = s.read(q.from); err != nil {
			return nil, err
		}
	}
	all := &scope{session: s, columns: columns}
	if q.where != nil {
		var left [][]value
		for _, row := range rows {
			all.row = row
			v, err := all.eval(q.where)
			if err != nil {
				return nil, err
			}
			if v != nil && isTrue(v) {
				left = append(left, row)
			}
		}
		rows = left
	}
	if q.from != nil && len(rows) == 0 {
		if err := all.check(q); err != nil { // names are wrong in an empty table as well
			return nil, err
		}
	}
	aliases := map[string]expr{}
	grouped := len(q.groupBy) > 0 || q.having != nil
	for _, i := range q.items {
		if i.x != nil {
			grouped = grouped || hasAggregate(i.x)
			aliases[strings.ToLower(i.name)] = i.x
		}
	}
	scopes, err := s.scopes(q, columns, rows, grouped, aliases)
	if err != nil {
		return nil, err
	}
	return project(q, columns, scopes)
}

// check evaluates what would be evaluated for a row, with NULLs.
func (s *scope) check(q *query) error {
	empty := *s
	empty.row = make([]value, len(s.columns))
	empty.group = [][]value{}
	for _, i := range q.items {
		if i.x == nil {
			continue
		}
		if _, err := empty.eval(i.x); err != nil {
			return err
		}
	}
	if q.where != nil {
		if _, err := empty.eval(q.where); err != nil {
			return err
		}
	}
	return nil
}

// scopes are the rows that the select list is computed for: the source's, or the groups.
func (s *session) scopes(q *query, columns []string, rows [][]value, grouped bool, aliases map[string]expr) ([]*scope, error) {
	var all []*scope
	if !grouped {
		for _, row := range rows {
			all = append(all, &scope{session: s, columns: columns, row: row, aliases: aliases})
		}
		return all, nil
	}
	byKey := map[string]*scope{}
	if len(q.groupBy) == 0 { // one group, even of no rows
		only := &scope{session: s, columns: columns, group: [][]value{}, aliases: aliases}
		byKey[""], all = only, []*scope{only}
	}
	for _, row := range rows {
		one := &scope{session: s, columns: columns, row: row, aliases: aliases}
		var key strings.Builder
		for _, x := range q.groupBy {
			v, err := one.eval(q.ordinal(x))
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&key, "%v:%q,", v == nil, text(v))
		}
		g := byKey[key.String()]
		if g == nil {
			g = one
			byKey[key.String()], all = g, append(all, g)
		}
		g.row, g.group = row, append(g.group, row)
	}
	if q.having == nil {
		return all, nil
	}
	var left []*scope
	for _, g := range all {
		v, err := g.eval(q.having)
		if err != nil {
			return nil, err
		}
		if v != nil && isTrue(v) {
			left = append(left, g)
		}
	}
	return left, nil
}

// ordinal resolves GROUP BY 1 and ORDER BY 2.
func (q *query) ordinal(x expr) expr {
	if l, ok := x.(literal); ok {
		if n, ok := l.v.(int64); ok && n >= 1 && int(n) <= len(q.items) && q.items[n-1].x != nil {
			return q.items[n-1].x
		}
	}
	return x
}

// project computes the select list, sorts and cuts.
func project(q *query, columns []string, scopes []*scope) (*result, error) {
	r := &result{}
	for _, i := range q.items {
		if i.x == nil {
			r.names = append(r.names, columns...)
		} else {
			r.names = append(r.names, i.name)
		}
	}
	type sortable struct{ row, keys []value }
	var rows []sortable
	for _, s := range scopes {
		var one sortable
		for _, i := range q.items {
			if i.x == nil {
				one.row = append(one.row, s.row...)
				continue
			}
			v, err := s.eval(i.x)
			if err != nil {
				return nil, err
			}
			one.row = append(one.row, v)
		}
		for _, o := range q.orderBy {
			v, err := s.eval(q.ordinal(o.x))
			if err != nil {
				return nil, err
			}
			one.keys = append(one.keys, v)
		}
		rows = append(rows, one)
	}
	slices.SortStableFunc(rows, func(a, b sortable) int {
		for i, o := range q.orderBy {
			c := 0
			switch {
			case a.keys[i] == nil || b.keys[i] == nil: // NULL comes first
				c = int(truth(a.keys[i] != nil).(int64) - truth(b.keys[i] != nil).(int64))
			default:
				c = compare(a.keys[i], b.keys[i])
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
	from := min(int(q.offset), len(rows))
	to := len(rows)
	if q.limit >= 0 {
		to = min(from+int(q.limit), to)
	}
	for _, one := range rows[from:to] {
		r.rows = append(r.rows, one.row)
	}
	return r, nil
}

// read gives the columns and rows of a source.
func (s *session) read(from *source) ([]string, [][]value, error) {
	switch {
	case from.read != nil:
		return from.read()
	case from.query != nil:
		r, err := s.run(from.query)
		if err != nil {
			return nil, nil, err
		}
		return r.names, r.rows, nil
	case from.function == "BACKENDS":
		r := s.backends()
		return r.names, r.rows, nil
	case from.function == "FRONTENDS":
		r := s.frontends()
		return r.names, r.rows, nil
	case from.function == "S3":
		return s.readObjects(from.properties)
	case from.function != "":
		return nil, nil, fmt.Errorf("errCode = 2, detailMessage = Could not find function %s as table function", from.function)
	case strings.EqualFold(from.db, "information_schema"):
		return s.informationSchema(strings.ToLower(from.name))
	}
	t, err := s.table(from.db, from.name)
	if err != nil {
		return nil, nil, err
	}
	return t.names(), t.rows, nil
}
