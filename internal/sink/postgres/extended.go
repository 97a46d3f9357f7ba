package postgres

import (
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/terapush/terapush/internal/sink"
)

// maxPrepared is how many statements, and how many portals, one connection may have.
const maxPrepared = 1024

// extended are the statements and portals of the extended protocol. What is bound is not looked at but for its length: the
// rows of an INSERT are known from its text.
type extended struct {
	statements map[string]*statement
	portals    map[string]*portal
	skipping   bool // after an error, up to the next Sync
}

type statement struct {
	sink.Statement
	types []uint32 // of the parameters, 0 where the client named none
}

type portal struct {
	*statement
	bytes int64 // of the values
	crc   uint32
}

// extend answers a message of the extended protocol.
func (s *session) extend(kind byte, body []byte) error {
	if s.extended.skipping {
		return nil
	}
	out, err := s.extended.take(s, kind, body)
	if err != nil {
		return err
	}
	if len(out) > 0 {
		_, s.extended.skipping = out[len(out)-1].(*pgproto3.ErrorResponse)
	}
	if s.extended.skipping && s.tx == within {
		s.tx = failed
	}
	return s.send(out...)
}

func answer(m ...pgproto3.BackendMessage) ([]pgproto3.BackendMessage, error) { return m, nil }

func refusal(state, message string) ([]pgproto3.BackendMessage, error) {
	return answer(failure("ERROR", state, message))
}

func (x *extended) take(s *session, kind byte, body []byte) ([]pgproto3.BackendMessage, error) {
	switch kind {
	case 'P':
		var m pgproto3.Parse
		if err := m.Decode(body); err != nil {
			return nil, err
		}
		return x.parse(m)
	case 'B':
		var m pgproto3.Bind
		if err := m.Decode(body); err != nil {
			return nil, err
		}
		return x.bind(m, s.conn.Options)
	case 'D':
		var m pgproto3.Describe
		if err := m.Decode(body); err != nil {
			return nil, err
		}
		return x.describe(s, m)
	case 'E':
		var m pgproto3.Execute
		if err := m.Decode(body); err != nil {
			return nil, err
		}
		return x.execute(s, m.Portal)
	}
	var m pgproto3.Close
	if err := m.Decode(body); err != nil {
		return nil, err
	}
	if m.ObjectType == 'S' {
		delete(x.statements, m.Name)
	} else {
		delete(x.portals, m.Name)
	}
	return answer(&pgproto3.CloseComplete{})
}

func (x *extended) parse(m pgproto3.Parse) ([]pgproto3.BackendMessage, error) {
	all := sink.Split(m.Query, sink.Standard)
	switch {
	case len(all) > 1:
		return refusal(errSyntax, "cannot insert multiple commands into a prepared statement")
	case len(x.statements) == maxPrepared:
		return refusal(errTooMany, "terapush sink: too many prepared statements; close some")
	}
	st := &statement{types: m.ParameterOIDs}
	if len(all) == 1 {
		st.Statement = all[0]
	}
	for len(st.types) < st.Numbers {
		st.types = append(st.types, 0)
	}
	x.statements[m.Name] = st
	return answer(&pgproto3.ParseComplete{})
}

func (x *extended) bind(m pgproto3.Bind, o *sink.Options) ([]pgproto3.BackendMessage, error) {
	st, known := x.statements[m.PreparedStatement]
	switch {
	case !known:
		return refusal(errUnknownName, "prepared statement \""+m.PreparedStatement+"\" does not exist")
	case len(x.portals) == maxPrepared:
		return refusal(errTooMany, "terapush sink: too many portals; close some")
	}
	p := &portal{statement: st}
	for _, value := range m.Parameters {
		p.bytes += int64(len(value))
		if o.CRC {
			p.crc = sink.Checksum(p.crc, value)
		}
	}
	x.portals[m.DestinationPortal] = p
	return answer(&pgproto3.BindComplete{})
}

// describe answers what the parameters and the columns of a statement are.
func (x *extended) describe(s *session, m pgproto3.Describe) (out []pgproto3.BackendMessage, err error) {
	var st *statement
	if m.ObjectType == 'S' {
		st = x.statements[m.Name]
		if st == nil {
			return refusal(errUnknownName, "prepared statement \""+m.Name+"\" does not exist")
		}
		out = append(out, &pgproto3.ParameterDescription{ParameterOIDs: st.types})
	} else if p := x.portals[m.Name]; p != nil {
		st = p.statement
	} else {
		return refusal(errUnknownPortal, "portal \""+m.Name+"\" does not exist")
	}
	if columns := s.columns(st.Text); columns != nil {
		return append(out, columns), nil
	}
	return append(out, &pgproto3.NoData{}), nil
}

// columns describes the rows of a statement without running it: nil where it has none.
func (s *session) columns(text string) *pgproto3.RowDescription {
	sql := plain(text)
	switch verb, _ := sink.Verb(sql); verb {
	case "COPY", "INSERT", "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "":
		return nil
	}
	o := s.look(sql)
	switch {
	case len(o.columns) == 0:
		return nil
	case len(o.rows) == 0:
		return describe(o.columns, 0)
	}
	return describe(o.columns, textOID)
}

func (x *extended) execute(s *session, name string) ([]pgproto3.BackendMessage, error) {
	p := x.portals[name]
	if p == nil {
		return refusal(errUnknownPortal, "portal \""+name+"\" does not exist")
	}
	s.conn.Statement()
	if p.Text == "" {
		return answer(&pgproto3.EmptyQueryResponse{})
	}
	o, err := s.run(p.Statement, p.bytes, p.crc, nil)
	if err != nil {
		return nil, err
	}
	out := o.messages(textOID)
	if len(o.columns) > 0 {
		out = out[1:] // a Describe has asked for the columns, or they are not wanted
	}
	return out, nil
}
