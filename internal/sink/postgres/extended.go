package postgres

import (
	"bytes"
	"encoding/binary"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/terapush/terapush/internal/sink"
)

// What one connection may prepare and bind, so that this cannot fill the memory.
const (
	maxPrepared     = 1024
	maxPreparedText = 1 << 20 // bytes
	maxName         = 1 << 10 // bytes, with what else a message has in front of its values
	maxTypes        = 1 << 16 // of parameters
)

// extended are the statements and portals of the extended protocol. What is bound is not looked at but for its length:
// the rows of an INSERT are known from its text.
type extended struct {
	statements map[string]*statement
	portals    map[string]*portal
	text       int  // bytes in statements
	bound      int  // bytes in those that portals hold
	skipping   bool // after an error, up to the next Sync
}

type statement struct {
	part  sink.Part
	types []uint32 // of the parameters, 0 where the client named none
}

// size returns what it takes of the memory, in bytes.
func (s *statement) size() int { return len(s.part.Text) + 4*len(s.types) }

type portal struct {
	statement *statement
	bytes     int64 // of the values
	crc       uint32
}

// extend takes in a message of the extended protocol.
func (s *session) extend(kind byte, n int) error {
	if s.extended.skipping {
		return s.stream.Drop(n)
	}
	var out []pgproto3.BackendMessage
	var refused *pgproto3.ErrorResponse
	var err error
	switch kind {
	case 'P':
		refused, err = s.parse(n)
		out = append(out, &pgproto3.ParseComplete{})
	case 'B':
		refused, err = s.bind(n)
		out = append(out, &pgproto3.BindComplete{})
	case 'D':
		out, refused, err = s.describe(n)
	case 'E':
		out, err = s.execute(n)
	case 'C':
		out, err = s.closeNamed(n)
	}
	if err != nil {
		return err
	}
	if refused != nil {
		if s.tx == within {
			s.tx = failed
		}
		out = []pgproto3.BackendMessage{refused}
	}
	if len(out) > 0 {
		_, s.extended.skipping = out[len(out)-1].(*pgproto3.ErrorResponse)
	}
	return s.send(out...)
}

// text reads a name and the NUL behind it off the n bytes to come.
func (s *session) text(n *int) (string, error) {
	var text []byte
	for *n > 0 {
		p, err := s.stream.Next(1)
		if err != nil {
			return "", err
		}
		*n--
		if p[0] == 0 {
			return string(text), nil
		}
		if len(text) == maxName {
			return "", errMalformed
		}
		text = append(text, p[0])
	}
	return "", errMalformed
}

// sql reads SQL of any length and the NUL behind it off the n bytes to come.
func (s *session) sql(n *int) error {
	s.statement.Reset()
	for *n > 0 {
		p, err := s.stream.Peek(*n)
		if err != nil {
			return err
		}
		end := bytes.IndexByte(p, 0)
		take := p
		if end >= 0 {
			take = p[:end]
		}
		s.statement.Write(take)
		used := min(len(p), len(take)+1)
		s.stream.Skip(used)
		*n -= used
		if end >= 0 {
			return nil
		}
	}
	return errMalformed
}

func (s *session) parse(n int) (*pgproto3.ErrorResponse, error) {
	name, err := s.text(&n)
	if err != nil {
		return nil, err
	}
	if err := s.sql(&n); err != nil {
		return nil, err
	}
	types, err := s.types(n)
	if err != nil {
		return nil, err
	}
	parts, many := s.statement.Parts()
	switch {
	case many || len(parts) > 1:
		return failure("ERROR", errSyntax, "cannot insert multiple commands into a prepared statement"), nil
	case len(parts) == 0:
		parts = []sink.Part{{}}
	case parts[0].Numbers > 1<<16-1:
		return failure("ERROR", errSyntax, "terapush sink: there is no parameter of such a number"), nil
	}
	for len(types) < parts[0].Numbers {
		types = append(types, 0)
	}
	s.extended.forget(name)
	parsed := &statement{parts[0], types}
	size := parsed.size()
	if len(s.extended.statements) == maxPrepared || s.extended.text+size > maxPreparedText {
		return failure("ERROR", errTooMany, "terapush sink: too many prepared statements; close some"), nil
	}
	if s.extended.statements == nil {
		s.extended.statements, s.extended.portals = map[string]*statement{}, map[string]*portal{}
	}
	s.extended.statements[name] = parsed
	s.extended.text += size
	return nil, nil
}

// types reads the parameters' types from a Parse.
func (s *session) types(n int) ([]uint32, error) {
	p, err := s.small(n, 2+4*maxTypes)
	if err != nil {
		return nil, err
	}
	if len(p) < 2 || len(p) != 2+4*int(binary.BigEndian.Uint16(p)) {
		return nil, errMalformed
	}
	var types []uint32
	for p = p[2:]; len(p) > 0; p = p[4:] {
		types = append(types, binary.BigEndian.Uint32(p))
	}
	return types, nil
}

// forget forgets a statement. The portals that were bound to it stay.
func (e *extended) forget(name string) {
	if old, ok := e.statements[name]; ok {
		e.text -= old.size()
		delete(e.statements, name)
	}
}

// unbind forgets a portal.
func (e *extended) unbind(name string) {
	if old, ok := e.portals[name]; ok {
		e.bound -= old.statement.size()
		delete(e.portals, name)
	}
}

func (s *session) bind(n int) (*pgproto3.ErrorResponse, error) {
	name, err := s.text(&n)
	if err != nil {
		return nil, err
	}
	of, err := s.text(&n)
	if err != nil {
		return nil, err
	}
	p := &portal{bytes: int64(n)}
	err = s.receive(n, func(piece []byte) {
		if s.stream.Options.CRC {
			p.crc = sink.Checksum(p.crc, piece)
		}
	})
	if err != nil {
		return nil, err
	}
	var ok bool
	if p.statement, ok = s.extended.statements[of]; !ok {
		return failure("ERROR", errUnknownName, "prepared statement \""+of+"\" does not exist"), nil
	}
	s.extended.unbind(name)
	size := p.statement.size()
	if len(s.extended.portals) == maxPrepared || s.extended.bound+size > maxPreparedText {
		return failure("ERROR", errTooMany, "terapush sink: too many portals; close some"), nil
	}
	s.extended.portals[name] = p
	s.extended.bound += size
	return nil, nil
}

// describe returns the parameters of a statement and the columns of a statement or portal.
func (s *session) describe(n int) ([]pgproto3.BackendMessage, *pgproto3.ErrorResponse, error) {
	kind, name, err := s.named(n)
	if err != nil {
		return nil, nil, err
	}
	var out []pgproto3.BackendMessage
	var of *statement
	switch kind {
	case 'S':
		var ok bool
		if of, ok = s.extended.statements[name]; !ok {
			return nil, failure("ERROR", errUnknownName, "prepared statement \""+name+"\" does not exist"), nil
		}
		out = append(out, &pgproto3.ParameterDescription{ParameterOIDs: of.types})
	case 'P':
		p, ok := s.extended.portals[name]
		if !ok {
			return nil, failure("ERROR", errUnknownPortal, "portal \""+name+"\" does not exist"), nil
		}
		of = p.statement
	default:
		return nil, nil, errMalformed
	}
	columns := s.columns(of.part)
	if columns == nil {
		return append(out, &pgproto3.NoData{}), nil, nil
	}
	return append(out, columns), nil, nil
}

// columns describes the rows of a statement without running it: nil where it has none.
func (s *session) columns(p sink.Part) *pgproto3.RowDescription {
	sql := plain(p)
	switch verb, _ := sink.Verb(sql); verb {
	case "COPY", "INSERT", "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "":
		return nil
	}
	o := s.look(sql)
	if len(o.columns) == 0 {
		return nil
	}
	if len(o.rows) == 0 {
		return describe(o.columns, 0)
	}
	return describe(o.columns, textOID)
}

func (s *session) execute(n int) ([]pgproto3.BackendMessage, error) {
	name, err := s.text(&n)
	if err != nil {
		return nil, err
	}
	if err := s.stream.Drop(n); err != nil { // how many rows it wants at a time: there are few
		return nil, err
	}
	p, ok := s.extended.portals[name]
	if !ok {
		return []pgproto3.BackendMessage{failure("ERROR", errUnknownPortal, "portal \""+name+"\" does not exist")}, nil
	}
	s.count.Statement()
	if p.statement.part.Text == "" {
		return []pgproto3.BackendMessage{&pgproto3.EmptyQueryResponse{}}, nil
	}
	o, err := s.run(p.statement.part, p.bytes, p.crc, nil)
	if err != nil {
		return nil, err
	}
	out := o.messages(textOID)
	if len(o.columns) > 0 {
		out = out[1:] // a Describe has asked for the columns, or they are not wanted
	}
	return out, nil
}

func (s *session) closeNamed(n int) ([]pgproto3.BackendMessage, error) {
	kind, name, err := s.named(n)
	switch {
	case err != nil:
		return nil, err
	case kind == 'S':
		s.extended.forget(name)
	case kind == 'P':
		s.extended.unbind(name)
	default:
		return nil, errMalformed
	}
	return []pgproto3.BackendMessage{&pgproto3.CloseComplete{}}, nil
}

// named reads whether a statement or a portal is meant, and which.
func (s *session) named(n int) (kind byte, name string, err error) {
	p, err := s.small(n, maxName)
	if err != nil {
		return 0, "", err
	}
	if len(p) < 2 || p[len(p)-1] != 0 {
		return 0, "", errMalformed
	}
	return p[0], string(p[1 : len(p)-1]), nil
}
