// Package postgres is a sink that speaks the PostgreSQL protocol, version 3: COPY … FROM STDIN and INSERT are counted
// and forgotten, transactions and definitions are agreed to. Queries are simple ones, one statement each; there is no
// TLS, and every user and password is welcome.
package postgres

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/terapush/terapush/internal/sink"
)

const version = "17.0"

// The errors of a real server, by SQLSTATE; all of them leave the connection usable.
const (
	errSyntax      = "42601"
	errUnsupported = "0A000"
	errCanceled    = "57014"
	errBadFormat   = "22P04"
)

var (
	copyIn   = regexp.MustCompile(`(?is)^COPY\s.*?\sFROM\s+STDIN\b(.*)$`)
	inBinary = regexp.MustCompile(`(?i)\bBINARY\b`)
)

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) { return sink.Listen(addr, o, talk) }

func talk(id uint32, stream *sink.Stream, count *sink.Counters) error {
	s := &session{wire: wire{stream: stream}, id: id, count: count}
	if err := s.greet(); err != nil {
		return err
	}
	for {
		if err := s.message(); err != nil {
			return err
		}
	}
}

type session struct {
	wire
	id        uint32
	count     *sink.Counters
	statement sink.Statement
	inTx      bool
}

func (s *session) message() error {
	kind, n, err := s.header()
	if err != nil {
		return err
	}
	switch kind {
	case 'Q':
		s.statement.Reset()
		if err := s.receive(n-1, s.statement.Write); err != nil {
			return err
		}
		if err := s.stream.Drop(1); err != nil { // the NUL behind the text
			return err
		}
		return s.query(s.statement.Text())
	case 'X':
		return errLeft
	case 'd', 'c', 'f', 'H': // of a COPY that is over; servers pass over them too
		return s.stream.Drop(n)
	case 'S':
		if err := s.stream.Drop(n); err != nil {
			return err
		}
		return s.ready()
	case 'P', 'B', 'D', 'E', 'C':
		return s.refuse(n)
	}
	return errMalformed
}

// refuse answers the extended protocol: one error, and nothing more until the client's Sync.
func (s *session) refuse(n int) error {
	for kind := byte(0); kind != 'S'; {
		if err := s.stream.Drop(n); err != nil {
			return err
		}
		var err error
		if kind, n, err = s.header(); err != nil {
			return err
		}
	}
	if err := s.stream.Drop(n); err != nil {
		return err
	}
	return s.fail(errUnsupported, "terapush sink: simple queries only, no prepared statements")
}

func (s *session) query(sql string) error {
	s.count.Statement()
	sql = strings.TrimRight(sink.Plain(sql), "; \t\r\n")
	verb, words := sink.Verb(sql)
	switch verb {
	case "":
		return s.answer(&pgproto3.EmptyQueryResponse{})
	case "INSERT":
		s.count.Loaded(s.statement.Bytes(), s.statement.Rows())
		return s.done(fmt.Sprintf("INSERT 0 %d", s.statement.Rows()))
	case "COPY":
		return s.copyIn(sql)
	}
	if answer := s.stream.Options.Answer; answer != nil {
		if columns, rows, ok := answer(sql); ok {
			return s.result(columns, rows)
		}
	}
	switch verb {
	case "BEGIN", "START":
		s.inTx = true
	case "COMMIT", "END", "ROLLBACK", "ABORT":
		s.inTx = words == "ROLLBACK TO"
	case "SELECT":
		if columns, row, unknown := sink.Constants(sql, s.setting); unknown == "" {
			return s.result(columns, [][]string{row})
		}
		return s.result(nil, nil)
	case "SHOW":
		name := strings.ToLower(strings.TrimSpace(sql[len("SHOW"):]))
		value, ok := s.setting("current_setting('" + name + "')")
		if !ok {
			return s.fail("42704", fmt.Sprintf("unrecognized configuration parameter %q", name))
		}
		return s.result([]string{name}, [][]string{{value}})
	case "WITH", "TABLE", "VALUES", "EXPLAIN":
		return s.result(nil, nil)
	case "UPDATE", "DELETE":
		return s.done(verb + " 0")
	case "CREATE", "DROP", "ALTER":
		return s.done(words)
	}
	return s.done(verb)
}

// setting knows what clients ask when they connect.
func (s *session) setting(item string) (string, bool) {
	switch strings.TrimPrefix(item, "pg_catalog.") {
	case "version()":
		return "PostgreSQL " + version + " (terapush sink: counts and forgets)", true
	case "pg_backend_pid()":
		return fmt.Sprint(s.id), true
	case "current_database()", "current_user", "session_user", "current_schema()", "current_schema":
		return "sink", true
	}
	name, ok := strings.CutPrefix(item, "current_setting('")
	if !ok {
		return "", false
	}
	name, _, _ = strings.Cut(name, "'")
	if name == "server_version_num" {
		return "170000", true
	}
	for _, p := range parameters() {
		if strings.EqualFold(p.Name, name) {
			return p.Value, true
		}
	}
	return "", false
}
