package sink

import "bytes"

// Lines counts rows of text: line feeds, and a last line without one. A line feed inside a value, escaped or in
// quotes, counts as well; terapush writes none.
type Lines struct {
	n    int64
	open bool // the last line has begun and not ended
}

// Write counts in p.
func (l *Lines) Write(p []byte) {
	if len(p) == 0 {
		return
	}
	l.n += int64(bytes.Count(p, []byte{'\n'}))
	l.open = p[len(p)-1] != '\n'
}

// Rows is the number of lines.
func (l *Lines) Rows() (int64, error) {
	if l.open {
		return l.n + 1, nil
	}
	return l.n, nil
}

// head is how much of a statement's text is kept: more than any statement that is not an INSERT of many rows.
const head = 64 << 10

// Statement takes in one SQL statement, which may be larger than memory should be: it keeps the beginning and counts
// the rows of INSERT … VALUES (…), (…) on the way.
type Statement struct {
	// Backslash tells that a backslash escapes in every string, as in MySQL. Otherwise it does so in E'…' only.
	Backslash bool

	text  []byte
	bytes int64
	rows  int64

	quote     byte // of the string or name we are in, 0 outside
	escapes   bool // a backslash escapes in it
	backslash bool // an odd number of them ends what we have seen
	previous  byte // the byte before, outside of quotes

	keyword int  // letters of VALUES matched, −1 in another word
	depth   int  // of parentheses
	values  bool // VALUES has been seen …
	expect  bool // … and a parenthesis now begins a row
}

// Reset forgets the statement and keeps the buffer.
func (s *Statement) Reset() { *s = Statement{Backslash: s.Backslash, text: s.text[:0]} }

// Text is the beginning of the statement.
func (s *Statement) Text() string { return string(s.text) }

// Bytes is the length of the whole statement.
func (s *Statement) Bytes() int64 { return s.bytes }

// Rows is how many rows stand behind VALUES.
func (s *Statement) Rows() int64 { return s.rows }

// Write takes in the next piece.
func (s *Statement) Write(p []byte) {
	s.bytes += int64(len(p))
	s.text = append(s.text, p[:min(len(p), head-len(s.text))]...)
	for len(p) > 0 {
		if s.quote != 0 {
			p = p[s.quoted(p):]
			continue
		}
		s.code(p[0])
		p = p[1:]
	}
}

// quoted passes over a string, in long strides since payloads are strings, and returns how far it came.
func (s *Statement) quoted(p []byte) int {
	end := bytes.IndexByte(p, s.quote)
	inside := p[:max(end, 0)]
	if end < 0 {
		inside = p
	}
	if s.escapes {
		text := bytes.TrimRight(inside, `\`)
		odd := (len(inside)-len(text))%2 == 1
		if len(text) == 0 { // the run of backslashes began in an earlier piece
			odd = odd != s.backslash
		}
		s.backslash = odd
	}
	if end < 0 {
		return len(p)
	}
	if !s.backslash {
		s.quote = 0
	}
	s.backslash = false
	return end + 1
}

func (s *Statement) code(c byte) {
	const values = "values"
	lower := c | 0x20
	if 'a' <= lower && lower <= 'z' || '0' <= c && c <= '9' || c == '_' || c >= 0x80 {
		if s.keyword >= 0 && s.keyword < len(values) && lower == values[s.keyword] {
			s.keyword++
		} else {
			s.keyword = -1
		}
		s.expect = false
		s.previous = c
		return
	}
	if s.keyword == len(values) && s.depth == 0 && !s.values {
		s.values, s.expect = true, true
	}
	s.keyword = 0
	switch c {
	case '(':
		if s.expect {
			s.rows++
			s.expect = false
		}
		s.depth++
	case ')':
		s.depth = max(0, s.depth-1)
		s.expect = false
	case ',':
		s.expect = s.values && s.depth == 0
	case '\'', '"', '`':
		s.quote = c
		if s.previous != c { // else a doubled quote: the string goes on
			s.escapes = c != '`' && (s.Backslash || c == '\'' && s.previous|0x20 == 'e')
		}
		s.backslash = false
		s.expect = false
	case ' ', '\t', '\r', '\n':
	default:
		s.expect = false
	}
	s.previous = c
}
