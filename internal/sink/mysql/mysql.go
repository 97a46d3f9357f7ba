// Package mysql is a sink that speaks the MySQL protocol: LOAD DATA LOCAL and INSERT, also as prepared statements, are
// counted and forgotten; transactions, settings and definitions are agreed to. Tables have no rows and no columns, so a
// query of one has an empty result. There is no compression, and one statement in a message.
//
// Rows of LOAD DATA are those that its FIELDS, LINES and IGNORE clauses make: a line end in quotes or behind an escape is
// data. Refused are rows of a fixed size and LINES STARTING BY, where only the columns could tell, and INSERT … SELECT.
// A quote that ends a value is taken for its end whatever follows, where a server looks for the end of the field.
package mysql

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/sink"
)

// release begins the version, since clients derive from it what the server can do.
const release = "8.4.0-"

const (
	comQuit            = 0x01
	comInitDB          = 0x02
	comQuery           = 0x03
	comStatistics      = 0x09
	comPing            = 0x0e
	comStmtPrepare     = 0x16
	comStmtExecute     = 0x17
	comStmtLongData    = 0x18
	comStmtClose       = 0x19
	comStmtReset       = 0x1a
	comSetOption       = 0x1b
	comResetConnection = 0x1f
)

// The errors of a real server, by number; all of them leave the connection usable but that of a wrong password.
const (
	errAccessDenied    = 1045
	errUnknownCommand  = 1047
	errUnknownColumn   = 1054
	errParse           = 1064
	errEmpty           = 1065
	errNotAllowed      = 1148
	errTooLarge        = 1153
	errUnknownVariable = 1193
	errLockWait        = 1205
	errNotSupported    = 1235
	errUnknownPrepared = 1243
	errBadData         = 1261
	errNotPreparable   = 1295
	errTooManyPrepared = 1461
)

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) { return sink.Listen(addr, o, talk) }

func talk(id uint32, stream *sink.Stream, count *sink.Counters) error {
	s := &session{
		wire: wire{stream: stream, status: statusAutocommit}, id: id, count: count,
		version:   release + stream.Options.Name(),
		statement: sink.Statement{Backslash: true, CRC: stream.Options.CRC},
	}
	if err := s.greet(); err != nil {
		return err
	}
	for {
		if err := s.command(); err != nil {
			return err
		}
	}
}

type session struct {
	wire
	id        uint32
	version   string
	count     *sink.Counters
	statement sink.Statement
	message   message
	prepared  prepared
}

// message is one command as it comes in. SQL goes into a Statement; of what is binary the beginning is kept.
type message struct {
	begun   bool
	command byte
	sql     *sink.Statement
	withCRC bool
	head    []byte
	bytes   int64 // behind the command
	crc     uint32
}

// longest is how much of a binary command is kept: the fixed fields of all that there are.
const longest = 16

func (m *message) take(p []byte) {
	if !m.begun {
		m.begun, m.command, p = true, p[0], p[1:]
	}
	m.bytes += int64(len(p))
	switch m.command {
	case comQuery, comStmtPrepare:
		m.sql.Write(p)
	default:
		m.head = append(m.head, p[:min(len(p), longest-len(m.head))]...)
		if m.withCRC {
			m.crc = sink.Checksum(m.crc, p)
		}
	}
}

func (s *session) command() error {
	s.statement.Reset()
	s.message = message{sql: &s.statement, withCRC: s.stream.Options.CRC, head: s.message.head[:0]}
	s.seq = 0
	if err := s.receive(maxMessage, s.message.take); err != nil {
		if errors.Is(err, errOversized) {
			_ = s.fail(errTooLarge, "Got a packet bigger than 'max_allowed_packet' bytes")
		}
		return err
	}
	if !s.message.begun {
		return errMalformed
	}
	switch s.message.command {
	case comQuit:
		return errQuit
	case comInitDB, comPing:
		return s.ok(0, "")
	case comResetConnection:
		s.prepared, s.status = prepared{}, statusAutocommit
		return s.ok(0, "")
	case comSetOption:
		return s.eof() // the one command that older servers answer so
	case comStatistics:
		return s.send([]byte("terapush sink"))
	case comQuery:
		return s.query()
	case comStmtPrepare:
		return s.prepare()
	case comStmtExecute:
		return s.execute()
	case comStmtLongData:
		s.longData()
		return nil // there is no answer to this one, not even an error, nor to the next
	case comStmtClose:
		s.prepared.forget(s.statementID())
		return nil
	case comStmtReset:
		return s.reset()
	}
	return s.fail(errUnknownCommand, fmt.Sprintf("terapush sink: unknown command %#02x", s.message.command))
}

// statementID returns what the commands of prepared statements begin with.
func (s *session) statementID() uint32 {
	if len(s.message.head) < 4 {
		return 0 // nobody's
	}
	return binary.LittleEndian.Uint32(s.message.head)
}

// query answers a statement in text.
func (s *session) query() error {
	s.count.Statement()
	part, refused := s.one()
	switch {
	case refused == nil:
	case refused.number == errEmpty && s.message.bytes > 0: // nothing but a comment, as dumps end with
		return s.ok(0, "")
	default:
		return s.fail(refused.number, refused.message)
	}
	sql := plain(part.Text)
	if verb, _ := sink.Verb(sql); verb == "LOAD" {
		return s.load(sql)
	}
	return s.reply(s.run(part, part.Bytes, part.CRC), false)
}

// one returns the statement of the message, which must have one. A real server would take several from clients that
// asked for it, and would answer each; this one does not offer it.
func (s *session) one() (sink.Part, *refusal) {
	parts, _ := s.statement.Parts()
	switch len(parts) {
	case 0:
		return sink.Part{}, &refusal{errEmpty, "Query was empty"}
	case 1:
		return parts[0], nil
	}
	return sink.Part{}, &refusal{errParse, "terapush sink: one statement in a message; without multiStatements, please"}
}
