// Package mysql is a sink that speaks the MySQL protocol: LOAD DATA LOCAL and INSERT are counted and forgotten,
// transactions and definitions are agreed to. There is no TLS, no compression and no prepared statement, and every
// user and password is welcome.
package mysql

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

// version begins with a number, since clients derive from it what the server can do.
const version = "8.4.0-terapush-sink"

const (
	comQuit            = 0x01
	comInitDB          = 0x02
	comQuery           = 0x03
	comPing            = 0x0e
	comSetOption       = 0x1b
	comResetConnection = 0x1f
)

// The errors of a real server, by number; all of them leave the connection usable.
const (
	errUnknownCommand  = 1047
	errUnknownColumn   = 1054
	errParse           = 1064
	errNotAllowed      = 1148
	errUnknownVariable = 1193
)

var infile = regexp.MustCompile(`(?is)^LOAD\s+DATA\s+(?:LOW_PRIORITY\s+|CONCURRENT\s+)?(LOCAL\s+)?INFILE\s+(?:'([^']*)'|"([^"]*)")`)

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) { return sink.Listen(addr, o, talk) }

func talk(id uint32, stream *sink.Stream, count *sink.Counters) error {
	s := &session{wire: wire{stream: stream}, id: id, count: count, statement: sink.Statement{Backslash: true}}
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
	count     *sink.Counters
	statement sink.Statement
}

func (s *session) command() error {
	s.statement.Reset()
	s.seq = 0
	if err := s.receive(s.statement.Write); err != nil {
		return err
	}
	text := s.statement.Text()
	if text == "" {
		return errMalformed
	}
	switch text[0] {
	case comQuit:
		return errQuit
	case comInitDB, comPing, comResetConnection:
		return s.ok(0, "")
	case comSetOption:
		return s.eof() // the one command that older servers answer so
	case comQuery:
		return s.query(text[1:])
	}
	return s.fail(errUnknownCommand, fmt.Sprintf("terapush sink: unknown command %#02x", text[0]))
}

func (s *session) query(sql string) error {
	s.count.Statement()
	sql = sink.Plain(sql)
	verb, _ := sink.Verb(sql)
	switch verb {
	case "INSERT", "REPLACE":
		s.count.Loaded(s.statement.Bytes()-1, s.statement.Rows())
		return s.ok(s.statement.Rows(), "")
	case "LOAD":
		return s.load(sql)
	}
	if answer := s.stream.Options.Answer; answer != nil {
		if columns, rows, ok := answer(sql); ok {
			return s.result(columns, rows)
		}
	}
	switch verb {
	case "":
		return s.fail(errParse, "terapush sink: not a statement")
	case "SELECT":
		return s.selects(sql)
	case "SHOW":
		if strings.Contains(strings.ToUpper(sql), "COUNT(*)") { // SHOW COUNT(*) WARNINGS or ERRORS
			return s.result([]string{"@@session.warning_count"}, [][]string{{"0"}})
		}
		fallthrough
	case "WITH", "TABLE", "DESC", "DESCRIBE", "EXPLAIN", "ANALYZE", "CHECK":
		return s.result([]string{"nothing"}, nil)
	}
	return s.ok(0, "")
}

func (s *session) selects(sql string) error {
	columns, row, unknown := sink.Constants(sql, s.variable)
	switch {
	case unknown == "":
		return s.result(columns, [][]string{row})
	case unknown == sink.From:
		return s.result([]string{"nothing"}, nil)
	case strings.HasPrefix(unknown, "@@"): // how clients find out whose server it is
		return s.fail(errUnknownVariable, fmt.Sprintf("Unknown system variable '%s'", unknown[2:]))
	}
	// The client of MySQL 9 says SELECT $$, to find out by the error that $$ is no string here.
	return s.fail(errUnknownColumn, fmt.Sprintf("terapush sink: what is '%s'?", unknown))
}

// variable knows what clients ask when they connect or after a load.
func (s *session) variable(name string) (string, bool) {
	for _, scope := range []string{"@@session.", "@@local.", "@@global."} {
		if rest, ok := strings.CutPrefix(name, scope); ok {
			name = "@@" + rest
		}
	}
	switch name {
	case "version()", "@@version":
		return version, true
	case "@@version_comment":
		return "counts and forgets", true
	case "@@max_allowed_packet":
		return "67108864", true
	case "@@warning_count", "@@error_count":
		return "0", true
	case "@@autocommit", "@@local_infile":
		return "1", true
	case "connection_id()":
		return fmt.Sprint(s.id), true
	case "database()", "schema()", "user()", "current_user()":
		return "sink", true
	}
	return "", false
}

// load asks for the file and takes it in. The name goes back as it came: the client opens that file.
func (s *session) load(sql string) error {
	m := infile.FindStringSubmatch(sql)
	switch {
	case m == nil:
		return s.fail(errParse, "terapush sink: LOAD DATA without INFILE 'name'")
	case m[1] == "":
		return s.fail(errNotAllowed, "terapush sink: only LOAD DATA LOCAL INFILE, there are no files here")
	}
	if err := s.send(append([]byte{0xfb}, m[2]+m[3]...)); err != nil {
		return err
	}
	load := s.stream.Load(&sink.Lines{})
	for before := 0; ; {
		n, err := s.header()
		if err != nil {
			return err
		}
		if n == 0 && before != maxPacket { // an empty packet after a full one only says that the full one is complete
			break
		}
		if err := load.Take(n); err != nil {
			return err
		}
		before = n
	}
	bytes, rows, _ := load.End() // any text is rows
	s.count.Loaded(bytes, rows)
	return s.ok(rows, fmt.Sprintf("Records: %d  Deleted: 0  Skipped: 0  Warnings: 0", rows))
}
