package postgres

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/terapush/terapush/internal/sink"
)

var (
	copyIn        = regexp.MustCompile(`(?is)^COPY\s+(?:(BINARY)\s+)?\S.*?[\s)]FROM\s+STDIN\b(.*)$`)
	defaultValues = regexp.MustCompile(`(?is)^INSERT\s+INTO\s+\S+\s+DEFAULT\s+VALUES\b`)
	inserts       = regexp.MustCompile(`(?is)\b(?:INSERT|MERGE)\s+INTO\b`)
	selectList    = regexp.MustCompile(`(?is)^SELECT\s+(.*?)\s+FROM\s`)
)

// outcome is what a statement comes to: rows where there are columns, and a tag, or an error.
type outcome struct {
	columns []string
	rows    [][]string
	tag     string
	refused *pgproto3.ErrorResponse
	copied  bool // all answers before this one have been sent
}

func done(tag string) outcome { return outcome{tag: tag} }

func result(columns []string, rows [][]string) outcome {
	return outcome{columns: columns, rows: rows, tag: fmt.Sprintf("SELECT %d", len(rows))}
}

func refuse(state, message string) outcome {
	return outcome{refused: failure("ERROR", state, message)}
}

// injected returns the answer to a load that has to fail: one after which clients retry the transaction.
func injected() outcome {
	return refuse(errSerialization, "could not serialize access (terapush sink: told to fail some loads)")
}

// run runs a statement. bytes and crc are those of its rows, which are not in its text if it was prepared. before are
// answers that a COPY has to send before it asks for its data.
func (s *session) run(of sink.Statement, bytes int64, crc uint32, before []pgproto3.BackendMessage) (outcome, error) {
	sql := plain(of.Text)
	verb, words := sink.Verb(sql)
	ends := verb == "COMMIT" || verb == "END" || verb == "ROLLBACK" || verb == "ABORT"
	if s.tx == failed && !ends {
		return refuse(errTxFailed, "current transaction is aborted, commands ignored until end of transaction block"), nil
	}
	var o outcome
	switch {
	case verb == "COPY":
		var err error
		if o, err = s.copyIn(sql, before); err != nil {
			return o, err
		}
	case verb == "INSERT", verb == "MERGE", verb == "WITH" && inserts.MatchString(sql):
		o = s.insert(sql, of.Rows, bytes, crc)
	case verb == "BEGIN" || verb == "START":
		s.tx, o = within, done(words)
		if verb == "BEGIN" {
			o = done(verb)
		}
	case ends:
		o = s.end(verb, words)
	default:
		o = s.look(sql)
	}
	if o.refused != nil && s.tx == within {
		s.tx = failed
	}
	return o, nil
}

// plain returns a statement without what stands around it.
func plain(text string) string { return strings.TrimRight(sink.Plain(text), "; \t\r\n") }

// end ends a transaction or goes back to a savepoint. To commit what has failed is to roll it back.
func (s *session) end(verb, words string) outcome {
	was := s.tx
	if words == "ROLLBACK TO" {
		if was == failed {
			s.tx = within
		}
		return done("ROLLBACK")
	}
	s.tx = idle
	switch {
	case was == failed, verb == "ROLLBACK", verb == "ABORT":
		return done("ROLLBACK")
	}
	return done("COMMIT")
}

func (s *session) insert(sql string, rows, bytes int64, crc uint32) outcome {
	if rows == 0 && defaultValues.MatchString(sql) {
		rows = 1
	}
	if rows == 0 {
		return refuse(errUnsupported, "terapush sink: it counts the rows of INSERT … VALUES (…), and has no tables to select from")
	}
	if s.conn.Settle(crc) != nil {
		return injected()
	}
	s.conn.Loaded(bytes, rows)
	return done(fmt.Sprintf("INSERT 0 %d", rows))
}

// look answers what changes nothing: it may be asked twice.
func (s *session) look(sql string) outcome {
	if answer := s.conn.Options.Answer; answer != nil {
		if columns, rows, ok := answer(sql); ok {
			return result(columns, rows)
		}
	}
	verb, words := sink.Verb(sql)
	switch verb {
	case "SELECT":
		columns, row, unknown := sink.Constants(sql, s.setting)
		if unknown == "" {
			return result(columns, [][]string{row})
		}
		return result(listed(sql), nil)
	case "SHOW":
		name := strings.ToLower(strings.TrimSpace(sql[len("SHOW"):]))
		value, ok := s.setting("current_setting('" + name + "')")
		if !ok {
			return refuse(errUnknownObject, fmt.Sprintf("unrecognized configuration parameter %q", name))
		}
		return outcome{columns: []string{name}, rows: [][]string{{value}}, tag: "SHOW"}
	case "WITH", "TABLE", "VALUES", "EXPLAIN":
		return result(nil, nil)
	case "UPDATE", "DELETE":
		return done(verb + " 0")
	case "CREATE", "DROP", "ALTER":
		return done(words)
	}
	return done(verb)
}

// listed returns the columns that a SELECT from a table lists by name: none where there is a star or a call among them.
func listed(sql string) []string {
	m := selectList.FindStringSubmatch(sql)
	if m == nil || strings.ContainsAny(m[1], "*(") {
		return nil
	}
	var names []string
	for name := range strings.SplitSeq(m[1], ",") {
		names = append(names, strings.Trim(strings.TrimSpace(name), `"`))
	}
	return names
}

// setting knows what clients ask when they connect.
func (s *session) setting(item string) (string, bool) {
	switch strings.TrimPrefix(item, "pg_catalog.") {
	case "version()":
		return "PostgreSQL " + release + " (" + s.name + ": counts and forgets)", true
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
	switch name {
	case "server_version_num":
		return "170000", true
	case "transaction_isolation", "transaction isolation level", "default_transaction_isolation":
		return "read committed", true
	}
	for _, p := range s.parameters() {
		if strings.EqualFold(p.Name, name) {
			return p.Value, true
		}
	}
	return "", false
}
