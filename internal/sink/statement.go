package sink

import (
	"strconv"
	"strings"
)

// Dialect says how strings and comments are written.
type Dialect int

const (
	// Standard has backslashes as escapes in E'…' only, and dollar quotes, as PostgreSQL does.
	Standard Dialect = iota
	// Backslash has them in every string, comments behind #, and no dollar quotes, as MySQL does.
	Backslash
)

// Statement is one statement of a message.
type Statement struct {
	Text    string
	Rows    int64 // that stand behind VALUES
	Numbers int   // the highest n of $n
}

// Split takes the statements of a message apart at the semicolons between them, without those that are nothing but spaces
// and comments, and counts the rows of INSERT … VALUES (…), (…).
func Split(sql string, d Dialect) (all []Statement) {
	s := scanner{sql: sql, dialect: d}
	for s.at < len(sql) {
		if one, code := s.statement(); code {
			all = append(all, one)
		}
	}
	return all
}

// scanner goes through a message.
type scanner struct {
	sql     string
	at      int
	dialect Dialect
}

// statement reads up to the end of a statement. code reports whether there was any.
func (s *scanner) statement() (one Statement, code bool) {
	start, depth := s.at, 0
	values, expect := false, false // VALUES was read, and a parenthesis now begins a row
	for s.at < len(s.sql) {
		c := s.sql[s.at]
		if end := s.comment(); end > s.at {
			code = code || s.dialect == Backslash && strings.HasPrefix(s.sql[s.at:], "/*!") // MySQL runs what is in it
			s.at = end
			continue
		}
		begin := s.at
		switch {
		case c == ';' && depth == 0:
			one.Text = s.sql[start:s.at]
			s.at++
			return one, code
		case c <= ' ':
			s.at++
			continue
		case c == '\'' || c == '"' || c == '`':
			s.at = s.quoted(begin, c != '`' && s.dialect == Backslash)
		case c == '$' && s.dialect == Standard:
			s.dollar(&one)
		case isWord(c):
			for s.at++; s.at < len(s.sql) && (isWord(s.sql[s.at]) || s.sql[s.at] == '$' && s.dialect == Standard); {
				s.at++
			}
			word := s.sql[begin:s.at]
			if (word == "e" || word == "E") && s.dialect == Standard && s.at < len(s.sql) && s.sql[s.at] == '\'' {
				s.at = s.quoted(s.at, true)
			} else if depth == 0 { // a word behind the rows ends them: ON CONFLICT, AS, RETURNING
				values = strings.EqualFold(word, "VALUES") && one.Rows == 0
				code = true
				expect = values
				continue
			}
		default:
			s.at++
			switch c {
			case '(':
				if expect && depth == 0 {
					one.Rows++
				}
				depth++
			case ')':
				depth = max(0, depth-1)
			}
			code = true
			expect = values && depth == 0 && c == ','
			continue
		}
		code, expect = true, false
	}
	one.Text = s.sql[start:]
	return one, code
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}

// comment returns where a comment that begins here ends, or here. Nested ones, which PostgreSQL has, are not recognised.
func (s *scanner) comment() int {
	rest, mysql := s.sql[s.at:], s.dialect == Backslash
	end := "\n"
	switch {
	case strings.HasPrefix(rest, "/*"):
		end = "*/"
	case strings.HasPrefix(rest, "--") && (!mysql || len(rest) == 2 || rest[2] <= ' '):
	case mysql && strings.HasPrefix(rest, "#"):
	default:
		return s.at
	}
	if i := strings.Index(rest[1:], end); i >= 0 {
		return s.at + 1 + i + len(end)
	}
	return len(s.sql)
}

// quoted returns the end of the string that begins at i. A doubled quote is one in it.
func (s *scanner) quoted(i int, escapes bool) int {
	quote := s.sql[i]
	for i++; i < len(s.sql); i++ {
		n := strings.IndexByte(s.sql[i:], quote)
		if n < 0 {
			return len(s.sql)
		}
		text := s.sql[i : i+n]
		i += n
		if slashes := len(text) - len(strings.TrimRight(text, `\`)); !escapes || slashes%2 == 0 {
			if i+1 == len(s.sql) || s.sql[i+1] != quote {
				return i + 1
			}
			i++
		}
	}
	return len(s.sql)
}

// dollar reads $1, or $tag$ … $tag$.
func (s *scanner) dollar(one *Statement) {
	end := s.at + 1
	for end < len(s.sql) && isWord(s.sql[end]) {
		end++
	}
	name := s.sql[s.at+1 : end]
	if n, err := strconv.ParseUint(name, 10, 16); err == nil {
		one.Numbers = max(one.Numbers, int(n))
		s.at = end
		return
	}
	if end == len(s.sql) || s.sql[end] != '$' {
		s.at++
		return
	}
	tag := s.sql[s.at : end+1]
	if i := strings.Index(s.sql[end+1:], tag); i >= 0 {
		s.at = end + 1 + i + len(tag)
	} else {
		s.at = len(s.sql)
	}
}
