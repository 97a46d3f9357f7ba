package oracle

import (
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/fake/sqlread"
)

// block is an anonymous PL/SQL block of calls and assignments to binds.
type block struct {
	steps        []step
	placeholders int
}

type step struct {
	to   int // the bind that is assigned; −1 for a call
	call expr
}

func (p *parser) block() statement {
	b := &block{}
	for p.Err == nil && !p.Token.Is("END") {
		one := step{to: -1}
		if p.Token.Kind == sqlread.Bind {
			p.binds = append(p.binds, p.Token.Text)
			one.to = len(p.binds) - 1
			p.Advance()
			p.Expect(":=")
		}
		one.call = p.expression()
		p.Expect(";")
		b.steps = append(b.steps, one)
	}
	p.Expect("END", ";")
	for i, name := range p.binds {
		if slices.Contains(p.binds[:i], name) {
			p.Fail("placeholder %s stands there twice, which is one bind in PL/SQL and two in SQL", name)
		}
	}
	b.placeholders = len(p.binds)
	return b
}

func (b *block) run(s *session, e *execution) (*answer, error) {
	if err := e.complete(b.placeholders); err != nil {
		return nil, err
	}
	at := &scope{session: s, binds: e.binds(0)}
	for _, one := range b.steps {
		if one.to >= 0 {
			v, err := one.call.eval(at)
			if err != nil {
				return nil, err
			}
			at.binds[one.to] = v
			continue
		}
		if err := s.procedure(one.call, at); err != nil {
			return nil, err
		}
	}
	a := &answer{}
	for i, bind := range e.Binds {
		if bind.Out {
			a.outs = append(a.outs, at.binds[i])
		}
	}
	return a, nil
}

// procedure calls one of the packages' procedures.
func (s *session) procedure(x expr, at *scope) error {
	var c call
	switch x := x.(type) {
	case call:
		c = x
	case columnRef: // a call without parentheses
		c.name = x.source + "." + x.name
	}
	args := map[string]value{}
	for i, a := range c.args {
		v, err := a.eval(at)
		if err != nil {
			return err
		}
		if len(c.names) != len(c.args) {
			return ora(6550, "line 1, column 7:\nPLS-00306: wrong number or types of arguments in call to '%s' (the stand-in wants names)", c.name)
		}
		args[c.names[i]] = v
	}
	name := strings.TrimPrefix(c.name, "SYS.")
	if err := s.server.denied(name); err != nil {
		return err
	}
	switch name {
	case "NULL", "":
		return nil
	case "DBMS_MEMOPTIMIZE.WRITE_END":
		s.server.drain(func(p *pooled) bool { return p.session == s })
		return nil
	case "DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH":
		s.server.drain(func(*pooled) bool { return true })
		return nil
	case "DBMS_CLOUD.CREATE_EXTERNAL_TABLE":
		return s.createExternal(args)
	}
	return ora(6550, "line 1, column 7:\nPLS-00201: identifier '%s' must be declared", c.name)
}

// packaged are functions of packages, and those that ask the session.
func (s *scope) packaged(name string, args []value) (v value, known bool, err error) {
	name = strings.TrimPrefix(name, "SYS.")
	switch name {
	case "DBMS_MEMOPTIMIZE.GET_WRITE_HWM_SEQID", "DBMS_MEMOPTIMIZE.GET_APPLY_HWM_SEQID":
		if err := s.server.denied(name); err != nil {
			return nil, true, err
		}
		if name == "DBMS_MEMOPTIMIZE.GET_WRITE_HWM_SEQID" {
			return s.sequence, true, nil
		}
		s.server.drainSome(s.server.options.DrainRows)
		return s.server.appliedUpTo(), true, nil
	case "SYS_CONTEXT":
		if len(args) == 2 {
			return s.context(text(args[1])), true, nil
		}
	}
	return nil, false, nil
}

// schema is where names are looked up that say none.
func (s *session) schema() string {
	if set := s.settings["CURRENT_SCHEMA"]; set != "" {
		return set
	}
	return s.server.options.User
}

func (s *session) context(name string) value {
	switch strings.ToUpper(name) {
	case "CURRENT_SCHEMA":
		return s.schema()
	case "SESSION_USER", "CURRENT_USER":
		return s.server.options.User
	case "SID", "SESSIONID":
		return text(int64(s.number))
	case "DB_NAME", "SERVICE_NAME", "CON_NAME":
		return "STANDIN"
	}
	return nil
}
