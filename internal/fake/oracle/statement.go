package oracle

import (
	"strings"
	"time"
)

// statement is one that was read.
type statement interface {
	run(s *session, e *execution) (*answer, error)
}

// parse reads a statement.
func parse(text string) (statement, error) {
	p := newParser(text)
	var st statement
	switch {
	case p.take("SELECT"):
		st = &selecting{query: p.query()}
	case p.take("INSERT"):
		st = p.insert()
	case p.take("DELETE"):
		p.take("FROM")
		d := &deleting{}
		d.owner, d.name = p.qualified()
		if p.take("WHERE") {
			d.where = p.expression()
		}
		st = d
	case p.take("CREATE", "TABLE"):
		st = p.createTable()
	case p.take("DROP", "TABLE"):
		st = p.dropTable()
	case p.take("TRUNCATE", "TABLE"):
		t := &truncating{}
		t.owner, t.name = p.qualified()
		st = t
	case p.take("COMMENT", "ON", "TABLE"):
		c := &commenting{}
		c.owner, c.name = p.qualified()
		p.expect("IS")
		c.text = p.text()
		st = c
	case p.take("ALTER", "SESSION", "SET"):
		st = p.alterSession()
	case p.take("ALTER", "TABLE"):
		st = p.alterTable()
	case p.take("LOCK", "TABLE"):
		st = p.lockTable()
	case p.take("COMMIT"):
		st = ending{true}
	case p.take("ROLLBACK"):
		st = ending{false}
	case p.take("BEGIN"):
		st = p.block()
	default:
		p.fail("a statement that begins so")
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	switch x := st.(type) {
	case *selecting:
		x.placeholders = len(p.binds)
	case *inserting:
		x.placeholders = len(p.binds)
		x.hints = p.hints
	case *deleting:
		x.placeholders = len(p.binds)
	}
	return st, nil
}

type selecting struct {
	query        *query
	placeholders int
}

func (x *selecting) run(s *session, e *execution) (*answer, error) {
	if err := e.complete(x.placeholders); err != nil {
		return nil, err
	}
	return s.run(x.query, &scope{session: s, binds: e.binds(0)})
}

type deleting struct {
	owner, name  string
	where        expr
	placeholders int
}

func (x *deleting) run(s *session, e *execution) (*answer, error) {
	if err := e.complete(x.placeholders); err != nil {
		return nil, err
	}
	t, err := s.table(x.owner, x.name)
	if err != nil {
		return nil, err
	}
	if s.tx != nil && s.tx.direct[t] {
		return nil, ora(12838, "cannot read/modify an object after modifying it in parallel")
	}
	if err := s.lock(t, nil, rowExclusive, patience{}); err != nil {
		return nil, err
	}
	a := &answer{}
	at := &scope{session: s, binds: e.binds(0)}
	for _, c := range t.columns {
		at.names = append(at.names, columnName{x.name, c.name})
	}
	for i := 0; i < len(t.rows); i++ { // others may add some while this one waits
		r := t.rows[i]
		if !r.visible(s.tx) {
			continue
		}
		at.row = r.values
		var v value = true
		if x.where != nil {
			if v, err = x.where.eval(at); err != nil {
				return nil, err
			}
		}
		if v != true {
			continue
		}
		if r.dead != nil {
			if err := s.wait(r.dead, patience{}); err != nil {
				return nil, err
			}
			if r.gone {
				continue
			}
		}
		r.dead = s.tx
		s.tx.changes = append(s.tx.changes, change{t, r})
		a.affected++
	}
	return a, nil
}

type ending struct{ commit bool }

func (x ending) run(s *session, _ *execution) (*answer, error) {
	if x.commit {
		s.commit()
	} else {
		s.rollback()
	}
	return &answer{}, nil
}

type locking struct {
	owner, name string
	mode        lockMode
	nowait      bool
	seconds     int64 // −1: for ever
}

func (p *parser) lockTable() statement {
	l := &locking{seconds: -1}
	l.owner, l.name = p.qualified()
	p.expect("IN")
	switch {
	case p.take("ROW", "EXCLUSIVE"):
		l.mode = rowExclusive
	case p.take("SHARE"):
		l.mode = share
	default:
		p.expect("EXCLUSIVE")
		l.mode = exclusive
	}
	p.expect("MODE")
	if l.nowait = p.take("NOWAIT"); !l.nowait && p.take("WAIT") {
		l.seconds = p.integer()
	}
	return l
}

func (x *locking) run(s *session, _ *execution) (*answer, error) {
	t, err := s.table(x.owner, x.name)
	if err != nil {
		return nil, err
	}
	if err := s.server.denied("LOCK TABLE"); err != nil {
		return nil, err
	}
	p := patience{}
	switch {
	case x.nowait:
		p = patience{bounded: true, refusal: ora(54, "resource busy and acquire with NOWAIT specified or timeout expired")}
	case x.seconds >= 0:
		p = patience{true, time.Now().Add(time.Duration(x.seconds) * time.Second), ora(30006, "resource busy; acquire with WAIT timeout expired")}
	}
	return &answer{}, s.lock(t, nil, x.mode, p)
}

type setting struct{ name, value string }

// settings are the session parameters that the stand-in takes, and does nothing about but for OPTIMIZER_IGNORE_HINTS.
const settings = " OPTIMIZER_IGNORE_HINTS OPTIMIZER_IGNORE_PARALLEL_HINTS MEMOPTIMIZE_WRITES DDL_LOCK_TIMEOUT TIME_ZONE COMMIT_LOGGING " +
	"COMMIT_WAIT COMMIT_WRITE STATISTICS_LEVEL CURRENT_SCHEMA NLS_DATE_FORMAT NLS_TIMESTAMP_FORMAT NLS_NUMERIC_CHARACTERS NLS_SORT NLS_COMP " +
	"NLS_LENGTH_SEMANTICS OPTIMIZER_MODE SQL_TRACE "

func (p *parser) alterSession() statement {
	s := setting{name: p.identifier()}
	p.expect("=")
	s.value = p.tok.text
	if p.tok.kind != tokWord && p.tok.kind != tokString && p.tok.kind != tokNumber {
		p.fail("expected a value")
	}
	p.advance()
	return s
}

func (x setting) run(s *session, _ *execution) (*answer, error) {
	known := strings.Contains(settings, " "+x.name+" ")
	for _, lacks := range s.server.options.Lacks {
		known = known && lacks != x.name
	}
	if !known {
		return nil, ora(2248, "invalid option for ALTER SESSION")
	}
	s.settings[x.name] = strings.ToUpper(x.value)
	return &answer{}, nil
}

// denied is the error of what the user may not do.
func (s *Server) denied(what string) error {
	switch code := s.options.Denied[what]; code {
	case 0:
		return nil
	case 942:
		return ora(942, "table or view does not exist")
	case 1031:
		return ora(1031, "insufficient privileges")
	case 6550:
		return ora(6550, "line 1, column 7:\nPLS-00201: identifier '%s' must be declared", what)
	default:
		return ora(code, "%s is denied", what)
	}
}
