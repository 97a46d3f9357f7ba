package sink

import (
	"regexp"
	"strconv"
	"strings"
)

// Dialect says how strings and comments are written.
type Dialect int

const (
	// Standard has backslashes as escapes in E'…' only, as PostgreSQL does. Dollar quotes are not read.
	Standard Dialect = iota
	// Backslash has them in every string, and comments behind #, as MySQL does.
	Backslash
)

// Statement is one statement of a message.
type Statement struct {
	Text    string // without the comments and spaces before it
	Verb    string // its first word, in capitals
	Rows    int64  // that stand behind VALUES
	strange string // what was met that the sink does not read, "" if nothing was
}

// Split takes the statements of a message apart at the semicolons between them, without those that are nothing but
// spaces and comments, and counts the rows of INSERT … VALUES (…), (…).
func Split(sql string, d Dialect) (all []Statement) {
	s := scanner{sql: sql, dialect: d}
	for {
		one := s.statement()
		if one.Text != "" || one.strange != "" {
			all = append(all, one)
		}
		if s.at == len(sql) {
			return all
		}
	}
}

// conditional is strange: MySQL runs such a comment.
const conditional = "comments that are run: /*! … */"

// Inserts reports whether the statement brings rows in its text.
func (s *Statement) Inserts() bool { return s.Verb == "INSERT" || s.Verb == "REPLACE" }

// Refusal returns why the sink cannot run a statement: how many rows it brings could not be told. "" is no reason.
func (s *Statement) Refusal() string {
	switch s.Verb {
	case "INSERT", "REPLACE":
		if s.Rows == 0 {
			return "it counts the rows of " + s.Verb + " … VALUES (…), and has no tables to select from"
		}
	case "MERGE", "WITH", "CALL", "DO", "PREPARE", "EXECUTE":
		return "it does not know what rows " + s.Verb + " brings"
	case "SELECT", "SET", "SHOW": // which bring none, also with what a comment adds
		if s.strange == conditional {
			return ""
		}
	}
	if s.strange != "" {
		return "it does not read " + s.strange
	}
	return ""
}

var oneItem = regexp.MustCompile(`(?is)^SELECT\s+(.*?)(?:\s+LIMIT\s+1)?\s*$`)

var clause = regexp.MustCompile(`(?i)\b(?:FROM|WHERE)\b`)

// Item returns what a SELECT without FROM asks for, in lower case: "version()". "" is another statement.
func (s *Statement) Item() string {
	m := oneItem.FindStringSubmatch(s.Text)
	if m == nil || clause.MatchString(m[1]) {
		return ""
	}
	return strings.ToLower(m[1])
}

// scanner goes through a message.
type scanner struct {
	sql     string
	at      int
	dialect Dialect
	strange string
}

// The kinds of tokens that are not their own first byte.
const (
	endOfSQL = 0
	aWord    = 'w'
	aString  = 's' // or a name in quotes
)

// statement reads up to the end of a statement, and over it.
func (s *scanner) statement() (one Statement) {
	s.strange = ""
	s.skip()
	start, depth := s.at, 0
	values, expect := false, false // VALUES was read, and a parenthesis now begins a row
	for {
		begin := s.at
		kind := s.next()
		switch kind {
		case endOfSQL:
			one.Text, one.strange = strings.TrimSpace(s.sql[start:]), s.strange
			return one
		case ';':
			if depth == 0 {
				one.Text, one.strange = strings.TrimSpace(s.sql[start:s.at-1]), s.strange
				return one
			}
		case aWord:
			if begin == start {
				one.Verb = strings.ToUpper(s.sql[begin:s.at])
			}
			if depth == 0 { // a word behind the rows ends them: ON CONFLICT, AS, RETURNING
				values = one.Rows == 0 && strings.EqualFold(s.sql[begin:s.at], "VALUES")
			}
		case '(':
			if expect && depth == 0 {
				one.Rows++
			}
			depth++
		case ')':
			depth = max(0, depth-1)
		}
		expect = values && depth == 0 && (kind == aWord || kind == ',')
		s.skip()
	}
}

// next reads a token.
func (s *scanner) next() (kind byte) {
	if s.at == len(s.sql) {
		return endOfSQL
	}
	begin := s.at
	c := s.sql[begin]
	switch {
	case c == '\'' || c == '"' || c == '`':
		s.at = s.quoted(begin, c != '`' && s.dialect == Backslash)
		return aString
	case c == '$' && s.dialect == Standard:
		s.strange = "dollar quotes and parameters"
	case isWord(c):
		for s.at++; s.at < len(s.sql) && isWord(s.sql[s.at]); s.at++ {
			continue
		}
		escapes := s.dialect == Standard && s.at == begin+1 && c|0x20 == 'e' && strings.HasPrefix(s.sql[s.at:], "'")
		if escapes {
			s.at = s.quoted(s.at, true)
			return aString
		}
		return aWord
	}
	s.at++
	return c
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}

// skip goes over spaces and comments. Nested comments, which PostgreSQL has, are not recognised.
func (s *scanner) skip() {
	mysql := s.dialect == Backslash
	for s.at < len(s.sql) {
		rest := s.sql[s.at:]
		end := "\n"
		switch {
		case rest[0] <= ' ':
			s.at++
			continue
		case strings.HasPrefix(rest, "/*"):
			end = "*/"
			if mysql && strings.HasPrefix(rest, "/*!") {
				s.strange = conditional
			}
		case strings.HasPrefix(rest, "--") && (!mysql || len(rest) == 2 || rest[2] <= ' '):
		case mysql && rest[0] == '#':
		default:
			return
		}

		i := strings.Index(rest[1:], end)
		if i < 0 {
			s.at = len(s.sql)
			return
		}
		s.at += 1 + i + len(end)
	}
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
		if slashes := len(text) - len(strings.TrimRight(text, `\`)); escapes && slashes%2 == 1 {
			continue
		}
		if i+1 == len(s.sql) || s.sql[i+1] != quote {
			return i + 1
		}
		i++
	}
	return len(s.sql)
}

// letters are what a letter behind a backslash stands for, where it is not itself; x is followed by two hexadecimal
// digits.
var letters = map[byte]byte{'0': 0, 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'Z': 0x1a}

// Unquote returns what a string in SQL stands for, and other words as they are.
func Unquote(literal string, d Dialect) string {
	escapes := d == Backslash
	if d == Standard && len(literal) > 1 && literal[0]|0x20 == 'e' && literal[1] == '\'' {
		escapes, literal = true, literal[1:]
	}
	if len(literal) < 2 || literal[0] != '\'' && literal[0] != '"' {
		return literal
	}

	quote, text := literal[0], literal[1:len(literal)-1]
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		isEscape := escapes && text[i] == '\\'
		if i+1 == len(text) || !isEscape && text[i] != quote {
			b.WriteByte(text[i])
			continue
		}
		i++ // over a backslash, or the first of two quotes
		c := text[i]
		if letter, is := letters[c]; is && isEscape {
			c = letter
		}
		if value, err := strconv.ParseUint(text[i+1:min(i+3, len(text))], 16, 8); err == nil && isEscape && c == 'x' {
			c = byte(value)
			i += 2
		}
		b.WriteByte(c)
	}
	return b.String()
}
