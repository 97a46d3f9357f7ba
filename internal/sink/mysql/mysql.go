// Package mysql is a sink that speaks the MySQL protocol: LOAD DATA LOCAL and INSERT … VALUES are counted and
// forgotten; transactions, settings and definitions are agreed to. Tables have no rows and no columns, so a query of
// one has an empty result. There is no compression, nothing can be prepared, and a message has one statement.
//
// Rows of LOAD DATA are those that its FIELDS, LINES and IGNORE clauses make: a line end in quotes or behind an escape
// is data. Refused are rows of a fixed size and LINES STARTING BY, where only the columns could tell, and INSERT …
// SELECT. A quote that ends a value is taken for its end whatever follows, where a server looks for the end of the
// field.
//
// The packets are written by hand: the server of go-mysql has no LOAD DATA LOCAL, wants accounts whose passwords it
// knows, and reads a packet into memory, which is what a sink that drops its data in the kernel must not do.
package mysql

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

// release begins the version, since clients derive from it what the server can do.
const release = "8.4.0-"

const (
	comQuit        = 0x01
	comInitDB      = 0x02
	comQuery       = 0x03
	comPing        = 0x0e
	comStmtPrepare = 0x16
)

// The errors of a real server, by number. They leave the connection usable.
const (
	errUnknownCommand  = 1047
	errParse           = 1064
	errNotAllowed      = 1148
	errTooLarge        = 1153
	errUnknownVariable = 1193
	errLockWait        = 1205
	errNotSupported    = 1235
	errBadData         = 1261
)

// Answerer replies to a query with one value. Not ok leaves the query to the sink.
type Answerer func(s sink.Statement) (value string, ok bool)

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) { return ListenAs(addr, o, nil) }

// ListenAs opens a sink that asks answer first about every statement but loads and inserts, from many goroutines. nil
// answers nothing.
func ListenAs(addr string, o sink.Options, answer Answerer) (*sink.Server, error) {
	return sink.Listen(addr, o, func(id uint32, c *sink.Conn) error {
		s := &session{
			wire: wire{conn: c, in: bufio.NewReaderSize(c, readAhead)}, id: id,
			version: release + c.Options.Name(), answer: answer,
		}
		err := c.Greet(s.greet)
		for err == nil {
			err = s.command()
		}
		return err
	})
}

// readAhead is small: the bytes of a load that are read ahead are copied once more.
const readAhead = 512

type session struct {
	wire
	id      uint32
	version string
	answer  Answerer
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
	case comQuery:
		return s.query(string(message[1:]))
	case comStmtPrepare:
		return s.fail(errNotSupported, "terapush sink: nothing can be prepared here; write arguments into the statement")
	}
	return s.fail(errUnknownCommand, fmt.Sprintf("terapush sink: unknown command %#02x", message[0]))
}

// query answers a statement. A real server would take several from clients that asked for it, and would answer each;
// this one does not offer it.
func (s *session) query(sql string) error {
	s.conn.Statement()
	all := sink.Split(sql, sink.Backslash)
	if len(all) != 1 {
		return s.fail(errParse, "terapush sink: one statement in a message, please")
	}

	st := all[0]
	if why := st.Refusal(); why != "" {
		return s.fail(errNotSupported, "terapush sink: "+why)
	}
	if st.Verb == "LOAD" {
		return s.load(st.Text)
	}
	if st.Inserts() {
		if s.conn.Insert(st) != nil {
			return s.injected()
		}
		return s.ok(st.Rows, "")
	}
	return s.look(st)
}

// injected answers a load that has to fail, by the error after which every client that retries at all does so.
func (s *session) injected() error {
	return s.fail(errLockWait,
		"Lock wait timeout exceeded; try restarting transaction (terapush sink: told to fail some loads)")
}

// look answers what changes nothing.
func (s *session) look(st sink.Statement) error {
	if s.answer != nil {
		if value, ok := s.answer(st); ok {
			return s.rows([]string{st.Item()}, []string{value})
		}
	}
	switch st.Verb {
	case "SHOW":
		return s.show(st.Text)
	case "SELECT":
		item := st.Item()
		if item == "" {
			return s.rows([]string{"nothing"})
		}
		if value, known := s.value(item); known {
			return s.rows([]string{item}, []string{value})
		}
		// How clients find out whose server it is. The client of MySQL 9 sends SELECT $$, to find out by the error that
		// $$ is no string here.
		return s.fail(errUnknownVariable, "terapush sink: what is "+item+"?")
	case "EXPLAIN", "DESC", "DESCRIBE", "TABLE", "CHECK", "ANALYZE":
		return s.rows([]string{"nothing"})
	}
	return s.ok(0, "")
}

// value returns what a SELECT of an item gives.
func (s *session) value(item string) (string, bool) {
	switch item {
	case "1": // to find out whether the connection lives
		return item, true
	case "version()":
		return s.version, true
	case "current_user()":
		return "sink@%", true
	}
	name, isVariable := strings.CutPrefix(item, "@@")
	value, known := s.variables()[name]
	return value, isVariable && known
}

// variables returns those that clients ask for when they connect.
func (s *session) variables() map[string]string {
	return map[string]string{
		"version": s.version, "version_comment": "counts and forgets", "max_allowed_packet": fmt.Sprint(maxMessage),
		"local_infile": "ON", "lower_case_table_names": "0",
	}
}

// show answers SHOW VARIABLES; everything else is empty.
func (s *session) show(sql string) error {
	if !strings.HasSuffix(strings.ToUpper(sql), " VARIABLES") {
		return s.rows([]string{"nothing"})
	}
	var rows [][]string
	for name, value := range s.variables() {
		rows = append(rows, []string{name, value})
	}
	return s.rows([]string{"Variable_name", "Value"}, rows...)
}
