package doris

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// insertion is an INSERT that was read.
type insertion struct {
	db, table string
	label     string
	columns   []string
	values    [][]expr
	query     *query
	constant  bool // VALUES of literals only, which group commit wants
}

func (p *parser) insertion() (*insertion, error) {
	i := &insertion{constant: true}
	i.db, i.table = p.qualified()
	if p.Take("WITH", "LABEL") {
		i.label = p.Identifier()
	}
	if p.Token.Is("(") {
		i.columns = p.Names()
	}
	switch {
	case p.Take("VALUES"):
		p.Each(func() {
			var row []expr
			p.List(func() {
				x := p.expression()
				_, isLiteral := x.(literal)
				i.constant = i.constant && isLiteral
				row = append(row, x)
			})
			i.values = append(i.values, row)
		})
	case p.Take("SELECT"):
		i.query, i.constant = p.query(), false
	default:
		p.Fail("expected VALUES or SELECT")
	}
	return i, p.End()
}

// insert executes INSERT INTO: a transaction of its own under its label, or a part of the table's group.
func (s *session) insert(p *parser, fault Fault) (*result, error) {
	in, err := p.insertion()
	if err != nil {
		return nil, err
	}
	s.store.mu.Lock()
	locked := true
	defer func() {
		if locked {
			s.store.mu.Unlock()
		}
	}()
	t, err := s.table(in.db, in.table)
	if err != nil {
		return nil, err
	}
	mode := text(s.variables()["group_commit"])
	if mode != "off_mode" && in.label == "" && in.constant && !fault.NoGroup {
		rows, _, err := s.insertRows(t, in)
		if err != nil {
			return nil, err
		}
		async := mode == "async_mode"
		if async && fault.LoseWAL {
			rows.rows = nil
		}
		g := s.store.join(t, rows.rows, int64(len(p.Source)), async)
		s.last = &lastInsert{g.txn.id, g.txn.label, t.database.name, t.name, "PREPARE", rows.affected, 0}
		s.store.mu.Unlock()
		locked = false
		if !async {
			s.mysql.cluster.wait(g.done)
		}
		return &result{affected: rows.affected}, nil
	}
	label := in.label
	if fault.Label != "" {
		label = fault.Label
	}
	if label == "" {
		label = randomLabel("label_")
	}
	x, err := s.store.begin(t, label, "INSERT_STREAMING")
	if err != nil {
		return nil, err
	}
	if in.query != nil && in.query.from != nil && in.query.from.function == "S3" {
		// Objects are read without the lock: they come over the network, and a test may look at the label meanwhile.
		s.store.mu.Unlock()
		columns, objects, err := s.readObjects(in.query.from.properties)
		s.store.mu.Lock()
		if err != nil {
			s.store.abort(x, err.Error())
			return nil, err
		}
		in.query.from.read = func() ([]string, [][]value, error) { return columns, objects, nil }
	}
	rows, filtered, err := s.insertRows(t, in)
	if err == nil {
		err = x.live()
	}
	if err != nil {
		s.store.abort(x, err.Error())
		return nil, err
	}
	x.rows, x.loaded, x.filtered = rows.rows, rows.affected, filtered
	if fault.Linger != nil {
		s.store.linger(x, fault.Linger)
		return &result{}, nil
	}
	s.store.commit(x, fault.PublishTimeout)
	s.last = &lastInsert{x.id, label, t.database.name, t.name, x.state, x.loaded, x.filtered}
	return &result{affected: x.loaded}, nil
}

// insertRows computes the rows and fits them to the table. In strict mode, the default, a row that does not fit ends
// the statement; else it is filtered.
func (s *session) insertRows(t *table, in *insertion) (*result, int64, error) {
	names := in.columns
	if names == nil {
		names = t.names()
	}
	var at []int
	for _, name := range names {
		i := t.column(name)
		if i < 0 || slices.Contains(at, i) {
			return nil, 0, fmt.Errorf("errCode = 2, detailMessage = Unknown column '%s' in '%s'", name, t.name)
		}
		at = append(at, i)
	}
	computed, err := s.computed(in)
	if err != nil {
		return nil, 0, err
	}
	strict := isTrue(s.variables()["enable_insert_strict"])
	r, filtered := &result{}, int64(0)
	for _, values := range computed {
		if len(values) != len(at) {
			return nil, 0, fmt.Errorf("errCode = 2, detailMessage = insert into cols should be corresponding to the query output")
		}
		row, err := t.arrange(record{fields: values}, at, strict)
		switch {
		case err == nil:
			r.rows = append(r.rows, row)
		case strict:
			return nil, 0, fmt.Errorf("errCode = 2, detailMessage = Insert has filtered data in strict mode. url: , first error: %w", err)
		default:
			filtered++
		}
	}
	r.affected = int64(len(r.rows))
	return r, filtered, nil
}

func (s *session) computed(in *insertion) ([][]value, error) {
	if in.query != nil {
		r, err := s.run(in.query)
		if err != nil {
			return nil, err
		}
		return r.rows, nil
	}
	var all [][]value
	one := &scope{session: s}
	for _, values := range in.values {
		var row []value
		for _, x := range values {
			v, err := one.eval(x)
			if err != nil {
				return nil, err
			}
			row = append(row, v)
		}
		all = append(all, row)
	}
	return all, nil
}

// live refuses to commit what somebody has cancelled meanwhile.
func (x *txn) live() error {
	if x.state == "PREPARE" {
		return nil
	}
	return fmt.Errorf("errCode = 2, detailMessage = transaction [%d] is already %s. abort reason: %s", x.id, strings.ToLower(x.state), x.reason)
}

// cancel aborts a label's transaction (CancelLoadAction).
func (s *store) cancel(db, label string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.databases[db]
	if d == nil {
		return fmt.Errorf("errCode = 7, detailMessage = Unknown database '%s'", db)
	}
	x := s.labelled(d, label)
	switch {
	case x == nil || x.state == "ABORTED":
		return fmt.Errorf("errCode = 2, detailMessage = running transaction not found, label=%s", label)
	case x.state != "PREPARE" && x.state != "PRECOMMITTED":
		return errors.New("errCode = 2, detailMessage = transaction's state is already " + x.state + ", could not abort")
	}
	s.abort(x, "user cancel")
	return nil
}
