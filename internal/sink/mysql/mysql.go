// Package mysql is a sink that speaks the MySQL protocol: LOAD DATA LOCAL and INSERT are counted and
// forgotten; transactions, settings and definitions are agreed to. Tables have no rows and no columns, so a query of one
// has an empty result. There is no compression, nothing can be prepared, and a message has one statement.
//
// Rows of LOAD DATA are those that its FIELDS, LINES and IGNORE clauses make: a line end in quotes or behind an escape is
// data. Refused are rows of a fixed size and LINES STARTING BY, where only the columns could tell, and INSERT … SELECT.
// A quote that ends a value is taken for its end whatever follows, where a server looks for the end of the field.
package mysql

import (
	"bufio"
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
	errBadData         = 1261
	errNotPreparable   = 1295
)

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) { return sink.Listen(addr, o, serve) }

func serve(id uint32, c *sink.Conn) error {
	s := &session{
		wire: wire{conn: c, in: bufio.NewReaderSize(c, readAhead), status: statusAutocommit}, id: id,
		version: release + c.Options.Name(),
	}
	if err := c.Greet(s.greet); err != nil {
		return err
	}
	for {
		if err := s.command(); err != nil {
			return err
		}
	}
}

// readAhead is small: the bytes of a load that are read ahead are copied once more.
const readAhead = 512

type session struct {
	wire
	id      uint32
	version string
}

func (s *session) command() error {
	s.seq = 0
	message, err := s.receive(maxMessage)
	if errors.Is(err, errOversized) {
		_ = s.fail(errTooLarge, "Got a packet bigger than 'max_allowed_packet' bytes")
	}
	if err != nil {
		return err
	}
	if len(message) == 0 {
		return errMalformed
	}
	switch message[0] {
	case comQuit:
		return errQuit
	case comInitDB, comPing:
		return s.ok(0, "")
	case comResetConnection:
		s.status = statusAutocommit
		return s.ok(0, "")
	case comSetOption: // the one command that older servers answer so
		return s.send(s.eofMessage())
	case comStatistics:
		return s.send([]byte("terapush sink"))
	case comQuery:
		return s.query(string(message[1:]))
	case comStmtPrepare:
		return s.fail(errNotPreparable, "This command is not supported in the prepared statement protocol yet (terapush sink)")
	}
	return s.fail(errUnknownCommand, fmt.Sprintf("terapush sink: unknown command %#02x", message[0]))
}

// query answers a statement. A real server would take several from clients that asked for it, and would answer each; this
// one does not offer it.
func (s *session) query(text string) error {
	s.conn.Statement()
	statements := sink.Split(text, sink.Backslash)
	switch {
	case len(statements) == 0 && text == "":
		return s.fail(errEmpty, "Query was empty")
	case len(statements) == 0: // nothing but a comment, as dumps end with
		return s.ok(0, "")
	case len(statements) > 1:
		return s.fail(errParse, "terapush sink: one statement in a message; without multiStatements, please")
	}
	sql := plain(statements[0].Text)
	if verb, _ := sink.Verb(sql); verb == "LOAD" {
		return s.load(sql)
	}
	return s.reply(s.run(sql, statements[0]))
}
