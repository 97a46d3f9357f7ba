package mysql

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

var (
	comments   = regexp.MustCompile(`^(?s:\s+|/\*(?:[^!].*?)??\*/|(?:--|#)[^\n]*\n)+`)
	executable = regexp.MustCompile(`^(?s:/\*!\d*(.*?)\*/)`)
	insertSet  = regexp.MustCompile("(?is)^(?:INSERT|REPLACE)\\s(?:\\w+\\s+)*?(?:`[^`]+`|[\\w.]+)\\s+SET\\s")
	autocommit = regexp.MustCompile(`(?i)^SET\s+(?:SESSION\s+|@@SESSION\.|@@)?AUTOCOMMIT\s*:?=\s*(\w+)`)
)

// refusal is an error that is sent to the client.
type refusal struct {
	number  uint16
	message string
}

// outcome is what a statement comes to: rows where there are columns, else how many were affected.
type outcome struct {
	columns  []string
	rows     [][]string
	affected int64
	refused  *refusal
}

func refuse(number uint16, format string, args ...any) outcome {
	return outcome{refused: &refusal{number, fmt.Sprintf(format, args...)}}
}

// injected returns the answer to a load that has to fail: the error after which every client that retries at all does so.
func injected() outcome {
	return refuse(errLockWait, "Lock wait timeout exceeded; try restarting transaction (terapush sink: told to fail some loads)")
}

// mostExecutable bounds how often plain copies a statement.
const mostExecutable = 8

// plain returns a statement without what stands before it, and without the brackets of /*! … */ around it: dumps and
// the tools that import files are full of them.
func plain(sql string) string {
	for range mostExecutable {
		sql = sql[len(comments.FindString(sql)):]
		m := executable.FindStringSubmatchIndex(sql)
		if m == nil {
			break
		}
		sql = sql[m[2]:m[3]] + " " + sql[m[1]:]
	}
	return sql
}

// run runs a statement that is not a LOAD.
func (s *session) run(sql string, of sink.Statement) outcome {
	verb, both := sink.Verb(sql)
	switch verb {
	case "INSERT", "REPLACE":
		rows := of.Rows
		if rows == 0 && insertSet.MatchString(sql) {
			rows = 1
		}
		if rows == 0 {
			return refuse(errNotSupported, "terapush sink: it counts the rows of %s … VALUES (…), and has no tables to select from", verb)
		}
		if s.conn.Settle(s.conn.Checksum(of.Text)) != nil {
			return injected()
		}
		s.conn.Loaded(int64(len(of.Text)), rows)
		return outcome{affected: rows}
	case "BEGIN", "START":
		s.status |= statusInTransaction
	case "COMMIT", "ROLLBACK":
		if both != "ROLLBACK TO" {
			s.status &^= statusInTransaction
		}
	case "SET":
		if m := autocommit.FindStringSubmatch(sql); m != nil {
			s.status |= statusAutocommit
			if strings.EqualFold(m[1], "0") || strings.EqualFold(m[1], "OFF") || strings.EqualFold(m[1], "FALSE") {
				s.status &^= statusAutocommit
			}
		}
	}
	return s.look(sql)
}

// look answers what changes nothing.
func (s *session) look(sql string) outcome {
	if answer := s.conn.Options.Answer; answer != nil {
		if columns, rows, ok := answer(sql); ok {
			return outcome{columns: columns, rows: rows}
		}
	}
	nothing := outcome{columns: []string{"nothing"}}
	switch verb, _ := sink.Verb(sql); verb {
	case "":
		return refuse(errParse, "terapush sink: not a statement")
	case "SELECT":
		return s.selects(sql)
	case "SHOW":
		if strings.Contains(strings.ToUpper(sql), "COUNT(*)") { // SHOW COUNT(*) WARNINGS or ERRORS
			return outcome{columns: []string{"@@session.warning_count"}, rows: [][]string{{"0"}}}
		}
		if showVariables.MatchString(sql) {
			return s.showVariables(sql)
		}
		return nothing
	case "WITH", "TABLE", "DESC", "DESCRIBE", "EXPLAIN", "ANALYZE", "CHECK":
		return nothing
	}
	return outcome{}
}

func (s *session) selects(sql string) outcome {
	columns, row, unknown := sink.Constants(sql, s.variable)
	switch {
	case unknown == "":
		return outcome{columns: columns, rows: [][]string{row}}
	case unknown == sink.From:
		return outcome{columns: []string{"nothing"}}
	case strings.HasPrefix(unknown, "@@"): // how clients find out whose server it is
		return refuse(errUnknownVariable, "Unknown system variable '%s'", unknown[2:])
	}
	// The client of MySQL 9 sends SELECT $$, to find out by the error that $$ is no string here.
	return refuse(errUnknownColumn, "terapush sink: what is '%s'?", unknown)
}
