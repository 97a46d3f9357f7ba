package oracle

import (
	"errors"
	"slices"
)

// inserting is INSERT … VALUES, or INSERT … SELECT.
type inserting struct {
	owner, name, partition string
	columns                []string
	values                 []expr
	query                  *query
	placeholders           int
	hints                  []string
}

func (p *parser) insert() statement {
	p.Expect("INTO")
	x := &inserting{}
	x.owner, x.name = p.qualified()
	if p.Take("PARTITION") {
		p.Expect("(")
		x.partition = p.Identifier()
		p.Expect(")")
	}
	if p.Token.Is("(") {
		x.columns = p.Names()
	}
	if p.Take("VALUES") {
		p.List(func() { x.values = append(x.values, p.expression()) })
		return x
	}
	p.Expect("SELECT")
	x.query = p.query()
	return x
}

// target is what an INSERT writes to.
type target struct {
	*table
	places    []int // of the columns it names
	partition *partition
	direct    bool
	fast      bool
}

func (x *inserting) run(s *session, e *execution) (*answer, error) {
	if err := e.complete(x.placeholders); err != nil {
		return nil, err
	}
	to, err := x.target(s, e)
	if err != nil {
		return nil, err
	}
	a := &answer{}
	times := 1
	if e.fault.Twice {
		times = 2
	}
	for range times {
		n, err := x.insertAll(s, e, to)
		if err != nil {
			return nil, err
		}
		a.affected = n
	}
	s.lose(to, e.fault.Lose)
	return a, nil
}

// lose forgets the last n rows of what was just inserted.
func (s *session) lose(to *target, n int) {
	for range n {
		switch {
		case to.fast && len(s.server.pool) > 0:
			s.server.pool = s.server.pool[:len(s.server.pool)-1]
		case !to.fast && s.tx != nil && len(s.tx.changes) > 0:
			s.tx.undo(len(s.tx.changes) - 1)
		}
	}
}

func (x *inserting) target(s *session, e *execution) (*target, error) {
	t, err := s.table(x.owner, x.name)
	if err != nil {
		return nil, err
	}
	if err := s.server.denied("INSERT"); err != nil {
		return nil, err
	}
	if t.external != nil {
		return nil, ora(30657, "operation not supported on external organized table")
	}
	to := &target{table: t}
	if x.columns == nil {
		x.columns = t.names()
	}
	for _, name := range x.columns {
		i := t.column(name)
		if i < 0 {
			return nil, ora(904, "%q: invalid identifier", name)
		}
		to.places = append(to.places, i)
	}
	if x.query == nil && len(x.values) != len(to.places) {
		if len(x.values) > len(to.places) {
			return nil, ora(913, "too many values")
		}
		return nil, ora(947, "not enough values")
	}
	if x.partition != "" {
		i := slices.IndexFunc(t.partitions, func(p *partition) bool { return p.name == x.partition })
		if i < 0 {
			return nil, ora(2149, "specified partition does not exist")
		}
		to.partition = t.partitions[i]
	}
	if s.settings["OPTIMIZER_IGNORE_HINTS"] != "TRUE" {
		to.direct = x.query == nil && slices.Contains(x.hints, "APPEND_VALUES") || x.query != nil && slices.Contains(x.hints, "APPEND")
		to.fast = x.query == nil && slices.Contains(x.hints, "MEMOPTIMIZE_WRITE") && t.memoptimized && !s.server.options.NoFastIngest
	}
	return to, x.begin(s, e, to)
}

// begin takes the table's lock. Direct path takes it for itself alone.
func (x *inserting) begin(s *session, e *execution, to *target) error {
	switch {
	case to.fast:
		return nil
	case s.tx != nil && s.tx.direct[to.table]:
		return ora(12838, "cannot read/modify an object after modifying it in parallel")
	case !to.direct:
		return s.lock(to.table, to.partition, rowExclusive, patience{})
	case s.server.options.BatchErrors && e.rows() > 1:
		return ora(38910, "BATCH ERROR mode is not supported for this operation")
	}
	return s.lock(to.table, to.partition, exclusive, patience{})
}

// insertAll inserts what the statement gives: one row, one for each element of its arrays, or a query's.
func (x *inserting) insertAll(s *session, e *execution, to *target) (n int64, err error) {
	if x.query != nil {
		return x.insertQuery(s, e, to)
	}
	var refused *Error
	for i := range e.rows() {
		at := &scope{session: s, binds: e.binds(i)}
		given := make([]value, len(x.values))
		for j, v := range x.values {
			if given[j], err = v.eval(at); err != nil {
				break
			}
		}
		if err == nil {
			err = s.insertRow(to, given)
		}
		switch said := (*Error)(nil); {
		case err == nil:
			n++
		case !errors.As(err, &said) || e.rows() == 1 || !s.server.options.BatchErrors || said.Code == 60 || said.Code == 28:
			return n, err // the rows before it stay in the transaction
		case refused == nil:
			refused = said
		}
		err = nil
	}
	if to.direct && s.tx != nil {
		s.tx.direct[to.table] = true
	}
	if refused != nil {
		return n, &Error{Code: 24381, Text: "error(s) in array DML", First: refused}
	}
	return n, nil
}

// insertQuery puts in a query's rows, all or none.
func (x *inserting) insertQuery(s *session, e *execution, to *target) (n int64, err error) {
	a, err := s.run(x.query, &scope{session: s, binds: e.binds(0)})
	if err != nil {
		return 0, err
	}
	before := len(s.transaction().changes)
	for _, row := range a.rows {
		if len(row) != len(to.places) {
			return 0, ora(947, "not enough values")
		}
		if err := s.insertRow(to, row); err != nil {
			s.tx.undo(before)
			return 0, err
		}
	}
	if to.direct {
		s.tx.direct[to.table] = true
	}
	return int64(len(a.rows)), nil
}

// insertRow puts one row into the table, or into the memory of Fast Ingest, which checks nothing but the values.
func (s *session) insertRow(to *target, given []value) error {
	values := make([]value, len(to.columns))
	for i, at := range to.places {
		c := to.columns[at]
		v, err := c.kind.fit(given[i], s.columnName(to.table, c))
		if err != nil {
			return err
		}
		values[at] = v
	}
	for i, c := range to.columns {
		if c.notNull && values[i] == nil {
			return ora(1400, "cannot insert NULL into (%s)", s.columnName(to.table, c))
		}
	}
	if to.fast {
		s.toPool(to.table, values)
		return nil
	}
	if err := s.checked(to, values); err != nil {
		return err
	}
	if err := s.free(to.table, values); err != nil {
		return err
	}
	r := &row{values: values, born: s.transaction()}
	to.add(r)
	s.tx.changes = append(s.tx.changes, change{to.table, r})
	for _, v := range values {
		s.cost.redo += int64(len(text(v))) + 10
	}
	return nil
}

func (s *session) columnName(t *table, c column) string {
	return `"` + s.server.options.Owner + `"."` + t.name + `"."` + c.name + `"`
}

// checked evaluates the table's checks and finds the row's partition.
func (s *session) checked(to *target, values []value) error {
	at := &scope{session: s, row: values}
	for _, c := range to.columns {
		at.names = append(at.names, columnName{to.name, c.name})
	}
	for _, c := range to.checks {
		v, err := c.x.eval(at)
		if err != nil {
			return err
		}
		if v == false {
			return ora(2290, "check constraint (%s.%s) violated", s.server.options.Owner, c.name)
		}
	}
	if to.partitions == nil {
		return nil
	}
	switch in := to.partitionOf(values); {
	case in == "":
		return ora(14400, "inserted partition key does not map to any partition")
	case to.partition != nil && in != to.partition.name:
		return ora(14401, "inserted partition key is outside specified partition")
	}
	return nil
}

func (t *table) partitionOf(values []value) string {
	for _, p := range t.partitions {
		if p.lessThan == nil {
			return p.name
		}
		if limit, ok := p.lessThan.(literal); ok && values[t.partitioned] != nil {
			if c, err := compare(values[t.partitioned], limit.v); err == nil && c < 0 {
				return p.name
			}
		}
	}
	return ""
}

// free finds out whether the row's unique keys are. A key that an open transaction has written or removed is waited for.
func (s *session) free(t *table, values []value) error {
again:
	for {
		for _, u := range t.unique {
			k, is := u.of(values)
			if !is {
				continue
			}
			for _, r := range u.rows[k] {
				var other *transaction
				switch {
				case r.born != nil && r.born != s.tx:
					other = r.born
				case r.dead != nil && r.dead == s.tx:
					continue
				case r.dead != nil:
					other = r.dead
				default:
					return ora(1, "unique constraint (%s.%s) violated", s.server.options.Owner, u.name)
				}
				if err := s.wait(other, patience{}); err != nil {
					return err
				}
				continue again
			}
		}
		return nil
	}
}
