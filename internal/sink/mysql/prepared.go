package mysql

import (
	"encoding/binary"

	"github.com/terapush/terapush/internal/sink"
)

// What one connection may prepare, so that preparing cannot fill the memory.
const (
	maxPrepared     = 1024
	maxPreparedText = 1 << 20 // bytes
)

// prepared are the statements that a connection has prepared. What is bound to them is not looked at: the rows of an
// INSERT are known from its text, and are as many in every execution.
type prepared struct {
	last       uint32
	statements map[uint32]*preparedStatement
	text       int // bytes
}

type preparedStatement struct {
	part sink.Part
	long int64 // bytes of long data since the last execution
	crc  uint32
}

func (p *prepared) add(part sink.Part) (id uint32, ok bool) {
	if len(p.statements) == maxPrepared || p.text+len(part.Text) > maxPreparedText {
		return 0, false
	}
	if p.statements == nil {
		p.statements = map[uint32]*preparedStatement{}
	}
	p.last++
	p.statements[p.last] = &preparedStatement{part: part}
	p.text += len(part.Text)
	return p.last, true
}

func (p *prepared) forget(id uint32) {
	if s, ok := p.statements[id]; ok {
		p.text -= len(s.part.Text)
		delete(p.statements, id)
	}
}

// prepare takes in a statement and answers what it takes and gives: every parameter and every column is a string.
func (s *session) prepare() error {
	s.count.Statement()
	part, refused := s.one()
	if refused != nil {
		return s.fail(refused.number, refused.message)
	}
	var columns []string
	sql := plain(part.Text)
	switch verb, _ := sink.Verb(sql); verb {
	case "LOAD":
		return s.fail(errNotPreparable, "This command is not supported in the prepared statement protocol yet")
	case "INSERT", "REPLACE":
	default:
		seen := s.look(sql)
		if seen.refused != nil {
			return s.fail(seen.refused.number, seen.refused.message)
		}
		columns = seen.columns
	}
	if part.Marks > 1<<16-1 {
		return s.fail(errParse, "Prepared statement contains too many placeholders")
	}
	id, ok := s.prepared.add(part)
	if !ok {
		return s.fail(errTooManyPrepared, "terapush sink: too many prepared statements; close some")
	}
	head := binary.LittleEndian.AppendUint32([]byte{0}, id)
	head = binary.LittleEndian.AppendUint16(head, uint16(len(columns)))
	head = binary.LittleEndian.AppendUint16(head, uint16(part.Marks))
	out := [][]byte{append(head, 0, 0, 0)} // filler, warnings
	if part.Marks > 0 {
		for range part.Marks {
			out = append(out, column("?"))
		}
		out = append(out, s.eofMessage())
	}
	if len(columns) > 0 {
		for _, c := range columns {
			out = append(out, column(c))
		}
		out = append(out, s.eofMessage())
	}
	return s.send(out...)
}

// fixedExecute is what stands before the values: statement, cursor and iterations.
const fixedExecute = 4 + 1 + 4

// execute runs a prepared statement. What it brought are the bytes of the values, with their types and NULLs.
func (s *session) execute() error {
	s.count.Statement()
	p, ok := s.prepared.statements[s.statementID()]
	if !ok || s.message.bytes < fixedExecute {
		return s.fail(errUnknownPrepared, "Unknown prepared statement handler given to EXECUTE")
	}
	o := s.run(p.part, s.message.bytes-fixedExecute+p.long, s.message.crc^p.crc)
	p.long, p.crc = 0, 0
	return s.reply(o, true)
}

func (s *session) longData() {
	const fixed = 4 + 2 // statement, parameter
	if p, ok := s.prepared.statements[s.statementID()]; ok {
		p.long += max(0, s.message.bytes-fixed)
		p.crc ^= s.message.crc
	}
}

func (s *session) reset() error {
	p, ok := s.prepared.statements[s.statementID()]
	if !ok {
		return s.fail(errUnknownPrepared, "Unknown prepared statement handler given to RESET")
	}
	p.long, p.crc = 0, 0
	return s.ok(0, "")
}
