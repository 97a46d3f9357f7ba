package oracle

import (
	"strings"
	"time"

	"github.com/terapush/terapush/internal/fake/sqlread"
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
	case p.Take("SELECT"):
		st = &selecting{query: p.query()}
	case p.Take("INSERT"):
		st = p.insert()
	case p.Take("DELETE"):
		p.Take("FROM")
		d := &deleting{}
		d.owner, d.name = p.qualified()
		if p.Take("WHERE") {
			d.where = p.expression()
		}
		st = d
	case p.Take("CREATE", "TABLE"):
		st = p.createTable()
	case p.Take("DROP", "TABLE"):
		st = p.dropTable()
	case p.Take("TRUNCATE", "TABLE"):
		t := &truncating{}
		t.owner, t.name = p.qualified()
		st = t
	case p.Take("COMMENT", "ON", "TABLE"):
		c := &commenting{}
		c.owner, c.name = p.qualified()
		p.Expect("IS")
		c.text = p.Text()
		st = c
	case p.Take("ALTER", "SESSION", "SET"):
		st = p.alterSession()
	case p.Take("ALTER", "TABLE"):
		st = p.alterTable()
	case p.Take("LOCK", "TABLE"):
		st = p.lockTable()
	case p.Take("COMMIT"):
		st = ending{true}
	case p.Take("ROLLBACK"):
		st = ending{false}
	case p.Take("BEGIN"):
		st = p.block()
	default:
		p.Fail("a statement that begins so")
	}
	if err := p.End(); err != nil {
		return nil, err
	}
	switch x := st.(type) {
	case *selecting:
		x.placeholders = len(p.binds)
	case *inserting:
		x.placeholders = len(p.binds)
		x.hints = p.Hints
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
	p.Expect("IN")
	switch {
	case p.Take("ROW", "EXCLUSIVE"):
		l.mode = rowExclusive
	case p.Take("SHARE"):
		l.mode = share
	default:
		p.Expect("EXCLUSIVE")
		l.mode = exclusive
	}
	p.Expect("MODE")
	if l.nowait = p.Take("NOWAIT"); !l.nowait && p.Take("WAIT") {
		l.seconds = p.Integer()
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
	s := setting{name: p.Identifier()}
	p.Expect("=")
	s.value = p.Token.Text
	if p.Token.Kind != sqlread.Word && p.Token.Kind != sqlread.String && p.Token.Kind != sqlread.Number {
		p.Fail("expected a value")
	}
	p.Advance()
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
