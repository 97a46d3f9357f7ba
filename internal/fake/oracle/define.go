package oracle

import (
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/fake/sqlread"
)

// creating is CREATE TABLE.
type creating struct {
	owner, name string
	table       *table
	partitioned string
	absent      bool // IF NOT EXISTS
}

func (p *parser) createTable() statement {
	x := &creating{absent: p.Take("IF", "NOT", "EXISTS"), table: &table{}}
	x.owner, x.name = p.qualified()
	p.List(func() { p.columnOrConstraint(x.table) })
	for p.Err == nil && p.Token.Kind != sqlread.End {
		switch {
		case p.Take("SEGMENT", "CREATION", "IMMEDIATE"), p.Take("SEGMENT", "CREATION", "DEFERRED"), p.Take("NOLOGGING"), p.Take("LOGGING"):
		case p.Take("NOCOMPRESS"):
		case p.Take("COMPRESS"):
			x.table.compressed = true
		case p.Take("MEMOPTIMIZE", "FOR", "WRITE"):
			x.table.memoptimized = true
		case p.Take("PARTITION", "BY", "RANGE"):
			p.partitions(x)
		default:
			p.Fail("a property that is not known")
		}
	}
	return x
}

func (p *parser) columnOrConstraint(t *table) {
	name := ""
	if p.Take("CONSTRAINT") {
		name = p.Identifier()
	}
	switch {
	case p.Take("PRIMARY", "KEY"):
		p.uniqueKey(t, name, true, p.Names())
		return
	case p.Take("UNIQUE"):
		p.uniqueKey(t, name, false, p.Names())
		return
	case p.Take("CHECK"):
		t.checks = append(t.checks, check{name, p.inParentheses()})
		return
	}
	c := column{name: p.Identifier(), kind: p.columnType()}
	t.columns = append(t.columns, c)
	at := &t.columns[len(t.columns)-1]
	for {
		name = ""
		if p.Take("CONSTRAINT") {
			name = p.Identifier()
		}
		switch {
		case p.Take("NOT", "NULL"):
			at.notNull = true
		case p.Take("NULL"):
		case p.Take("PRIMARY", "KEY"):
			p.uniqueKey(t, name, true, []string{c.name})
		case p.Take("UNIQUE"):
			p.uniqueKey(t, name, false, []string{c.name})
		case p.Take("CHECK"):
			t.checks = append(t.checks, check{name, p.inParentheses()})
		default:
			return
		}
	}
}

func (p *parser) inParentheses() expr {
	p.Expect("(")
	x := p.expression()
	p.Expect(")")
	return x
}

func (p *parser) uniqueKey(t *table, name string, primary bool, columns []string) {
	u := &uniqueKey{name: name, primary: primary, rows: map[string][]*row{}}
	for _, c := range columns {
		i := t.column(c)
		if i < 0 {
			p.Fail("column %s is not known yet", c)
			return
		}
		u.columns = append(u.columns, i)
		t.columns[i].notNull = t.columns[i].notNull || primary
	}
	u.local = p.Take("USING", "INDEX", "LOCAL")
	t.unique = append(t.unique, u)
}

func (p *parser) partitions(x *creating) {
	if names := p.Names(); len(names) == 1 {
		x.partitioned = names[0]
	} else {
		p.Fail("partitions by one column only")
	}
	p.List(func() {
		p.Expect("PARTITION")
		part := &partition{name: p.Identifier(), table: x.table}
		p.Expect("VALUES", "LESS", "THAN", "(")
		if !p.Take("MAXVALUE") {
			part.lessThan = p.expression()
		}
		p.Expect(")")
		x.table.partitions = append(x.table.partitions, part)
	})
}

// run commits first and last, as all DDL does.
func (x *creating) run(s *session, _ *execution) (*answer, error) {
	s.commit()
	if err := s.server.denied("CREATE TABLE"); err != nil {
		return nil, err
	}
	if x.owner == "" {
		x.owner = s.schema()
	}
	if x.owner != s.server.options.Owner {
		return nil, ora(1918, "user '%s' does not exist", x.owner)
	}
	if _, taken := s.server.options.Taken[x.name]; taken {
		return nil, ora(955, "name is already used by an existing object")
	}
	if s.server.tables[x.name] != nil {
		if x.absent {
			return &answer{}, nil
		}
		return nil, ora(955, "name is already used by an existing object")
	}
	t := x.table
	if t.memoptimized && t.compressed {
		return nil, ora(62146, "The MEMOPTIMIZE FOR WRITE feature cannot be used with a compressed table")
	}
	for _, c := range t.columns {
		if err := c.kind.allowed(s.server.options.Standard); err != nil {
			return nil, err
		}
	}
	if x.partitioned != "" {
		if t.partitioned = t.column(x.partitioned); t.partitioned < 0 {
			return nil, ora(904, "%q: invalid identifier", x.partitioned)
		}
	}
	t.name, t.object, t.data = x.name, s.server.newObject(), s.server.newObject()
	for i := range t.checks {
		t.checks[i].name = s.server.constraint(t.checks[i].name)
	}
	for _, u := range t.unique {
		u.name = s.server.constraint(u.name)
	}
	s.server.tables[t.name] = t
	return &answer{}, nil
}

// constraint is a constraint's name, which the server makes up where none is given.
func (s *store) constraint(name string) string {
	if name != "" {
		return name
	}
	s.numbers.constraint++
	return fmt.Sprintf("SYS_C%06d", s.numbers.constraint)
}

type dropping struct {
	owner, name string
	present     bool // IF EXISTS
}

func (p *parser) dropTable() statement {
	x := &dropping{present: p.Take("IF", "EXISTS")}
	x.owner, x.name = p.qualified()
	p.Take("CASCADE", "CONSTRAINTS")
	p.Take("PURGE")
	return x
}

func (x *dropping) run(s *session, _ *execution) (*answer, error) {
	s.commit()
	t, err := s.untouched(x.owner, x.name)
	if err != nil {
		if said := (*Error)(nil); errors.As(err, &said) && said.Code == 942 && x.present {
			return &answer{}, nil
		}
		return nil, err
	}
	delete(s.server.tables, t.name)
	return &answer{}, nil
}

// untouched finds a table that no open transaction has touched.
func (s *session) untouched(owner, name string) (*table, error) {
	t, err := s.table(owner, name)
	if err != nil {
		return nil, err
	}
	if s.inTheWay(t, nil, exclusive) != nil {
		return nil, ora(54, "resource busy and acquire with NOWAIT specified or timeout expired")
	}
	return t, nil
}

type truncating struct{ owner, name string }

func (x *truncating) run(s *session, _ *execution) (*answer, error) {
	s.commit()
	if err := s.server.denied("TRUNCATE TABLE"); err != nil {
		return nil, err
	}
	t, err := s.untouched(x.owner, x.name)
	if err != nil {
		return nil, err
	}
	t.empty()
	t.data = s.server.newObject()
	return &answer{}, nil
}

type commenting struct{ owner, name, text string }

func (x *commenting) run(s *session, _ *execution) (*answer, error) {
	s.commit()
	t, err := s.table(x.owner, x.name)
	if err != nil {
		return nil, err
	}
	t.comment = x.text
	return &answer{}, nil
}

type altering struct {
	owner, name string
	write       bool
}

func (p *parser) alterTable() statement {
	x := &altering{}
	x.owner, x.name = p.qualified()
	x.write = !p.Take("NO")
	p.Expect("MEMOPTIMIZE", "FOR", "WRITE")
	return x
}

func (x *altering) run(s *session, _ *execution) (*answer, error) {
	s.commit()
	t, err := s.untouched(x.owner, x.name)
	if err != nil {
		return nil, err
	}
	t.memoptimized = x.write
	return &answer{}, nil
}
