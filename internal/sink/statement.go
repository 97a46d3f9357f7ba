package sink

import "bytes"

const (
	// head is how much of a message's text is kept: more than any statement that is not an INSERT of many rows.
	head = 64 << 10
	// maxParts bounds the statements of one message.
	maxParts = 1000
	// maxParameters is the most that the protocols can count.
	maxParameters = 1<<16 - 1
	maxTag        = 64 // bytes of a dollar quote, as PostgreSQL's names
)

// Part is one statement of a message.
type Part struct {
	Text  string // its beginning
	Bytes int64  // its whole length
	Rows  int64  // that stand behind VALUES
	// Marks is the number of ? outside of strings, Numbers the highest n of $n.
	Marks, Numbers int
	CRC            uint32 // of the whole statement, where it was asked for
}

// Statement reads SQL that may be too large for memory: it keeps the beginning and counts the rows of
// INSERT … VALUES (…), (…) on the way. It splits statements at the semicolons between them.
type Statement struct {
	// Backslash reports whether a backslash escapes in every string, # begins a comment and there are no dollar
	// quotes, as in MySQL. Otherwise it escapes in E'…' only, as in PostgreSQL.
	Backslash bool
	// CRC asks for a checksum.
	CRC bool

	kept  int // bytes of text in all parts
	parts []Part
	many  bool
	text  []byte
	part  Part
	scanner
}

// scanner is the state of the scan of a statement.
type scanner struct {
	code bool // there is something besides spaces and comments

	quote     byte // of the string or name we are in, 0 outside
	escapes   bool // a backslash escapes in it
	backslash bool // an odd number of them ends what we have seen

	comment byte // '*' in one that ends with */, '-' in one that ends with its line
	dashes  int  // before this byte

	tag    []byte // of a dollar quote, as far as it has come
	inside bool   // the dollar quote
	match  int    // bytes of the tag that may end it
	number int    // n of $n, −1 elsewhere

	previous byte // the byte before, outside of quotes
	keyword  int  // letters of VALUES matched, −1 in another word
	depth    int  // of parentheses
	values   bool // VALUES has been seen …
	expect   bool // … and a parenthesis now begins a row
	over     bool // … and a word behind the rows: ON CONFLICT, AS, RETURNING
}

// Reset forgets the message and keeps the buffer.
func (s *Statement) Reset() {
	*s = Statement{Backslash: s.Backslash, CRC: s.CRC, text: s.text[:0], scanner: scanner{number: -1}}
}

// Parts returns the statements, without those that are nothing but spaces and comments. many reports whether there were
// more than the thousand of one message that are kept.
func (s *Statement) Parts() (parts []Part, many bool) {
	s.cut()
	return s.parts, s.many
}

// Write takes in the next piece.
func (s *Statement) Write(p []byte) {
	for len(p) > 0 {
		n, ended := s.scan(p)
		s.part.Bytes += int64(n)
		keep := min(n, head-s.kept)
		s.text = append(s.text, p[:keep]...)
		s.kept += keep
		if s.CRC {
			s.part.CRC = Checksum(s.part.CRC, p[:n])
		}
		if ended {
			s.cut()
		}
		p = p[n:]
	}
}

// cut ends a statement.
func (s *Statement) cut() {
	switch {
	case s.code && len(s.parts) < maxParts:
		s.part.Text = string(s.text)
		s.parts = append(s.parts, s.part)
	case s.code:
		s.many = true
	default:
		s.kept -= len(s.text)
	}
	s.text, s.part, s.scanner = s.text[:0], Part{}, scanner{number: -1, tag: s.tag[:0]}
}

// scan goes through p up to its end or the semicolon behind a statement.
func (s *Statement) scan(p []byte) (n int, ended bool) {
	for n < len(p) {
		if s.quote != 0 {
			n += s.quoted(p[n:])
			continue
		}
		c := p[n]
		n++
		if s.keyword < 0 && s.number < 0 && len(s.tag) == 0 && wordBytes[c] { // the rest of a word, as long as it is
			for n < len(p) && wordBytes[p[n]] {
				n++
			}
			s.previous = p[n-1]
			continue
		}
		switch {
		case s.comment != 0:
			s.commented(c)
		case s.inside:
			s.dollar(c)
		default:
			if s.step(c) {
				return n, true
			}
		}
	}
	return n, false
}

// quoted skips a string, by searching for its end since payloads are strings, and returns how far it came.
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

// commented skips a byte of a comment. Nested comments, which PostgreSQL has, are not recognised. What MySQL executes,
// /*! … */, is a statement, but rows in it are not counted.
func (s *Statement) commented(c byte) {
	s.code = s.code || s.Backslash && s.comment == '*' && c == '!' && s.previous == 0
	if s.comment == '-' && c == '\n' || s.comment == '*' && c == '/' && s.previous == '*' {
		s.comment, c = 0, ' '
	}
	s.previous = c
}

// dollar skips a byte of $tag$ … $tag$. A dollar sign stands at both ends of the tag and nowhere else in it.
func (s *Statement) dollar(c byte) {
	switch c {
	case s.tag[s.match]:
		s.match++
	case '$':
		s.match = 1
	default:
		s.match = 0
	}
	if s.match == len(s.tag) {
		s.inside, s.match, s.tag = false, 0, s.tag[:0]
		s.previous = '$'
	}
}

// step handles a byte outside of strings and comments, and reports whether it ends the statement.
func (s *Statement) step(c byte) (ended bool) {
	if wordBytes[c] {
		s.word(c, c|0x20, '0' <= c && c <= '9')
		return false
	}
	if s.keyword == len(values) && s.depth == 0 && !s.values {
		s.values, s.expect = true, true
	}
	s.keyword, s.number = 0, -1
	dashes := s.dashes
	s.dashes = 0
	if c != '$' {
		s.tag = s.tag[:0]
	}
	switch c {
	case ';':
		if s.depth == 0 {
			return true
		}
	case '(':
		if s.expect {
			s.part.Rows++
			s.expect = false
		}
		s.depth++
	case ')':
		s.depth = max(0, s.depth-1)
		s.expect = false
	case ',':
		s.expect = s.values && !s.over && s.depth == 0
	case '\'', '"', '`':
		s.quote = c
		if s.previous != c { // else a doubled quote: the string goes on
			s.escapes = c != '`' && (s.Backslash || c == '\'' && s.previous|0x20 == 'e')
		}
		s.backslash = false
		s.expect = false
	case '?':
		s.part.Marks = min(s.part.Marks+1, maxParameters+1)
		s.expect = false
	case '$':
		s.sign()
	case ' ', '\t', '\r', '\n':
		if s.Backslash && dashes == 2 && c != '\n' {
			s.comment = '-'
		}
		s.previous = c
		return false
	default:
		if s.begins(c, dashes) {
			s.previous = 0
			return false
		}
	}
	s.code = s.code || c != '-' && c != '/' // which may begin a comment
	s.previous = c
	return false
}

const values = "values"

// wordBytes are those of names, keywords and numbers.
var wordBytes = func() (is [256]bool) {
	for c := range is {
		lower := c | 0x20
		is[c] = 'a' <= lower && lower <= 'z' || '0' <= c && c <= '9' || c == '_' || c >= 0x80
	}
	return is
}()

// word handles a byte of a word or number.
func (s *Statement) word(c, lower byte, digit bool) {
	if s.keyword >= 0 && s.keyword < len(values) && lower == values[s.keyword] {
		s.keyword++
	} else {
		s.keyword = -1
	}
	switch {
	case digit && (s.number >= 0 || len(s.tag) == 1):
		s.number = min(max(s.number, 0)*10+int(c-'0'), maxParameters+1)
		s.part.Numbers = max(s.part.Numbers, s.number)
		s.tag = s.tag[:0]
	case len(s.tag) > 0 && len(s.tag) < maxTag:
		s.tag = append(s.tag, c)
	default:
		s.tag, s.number = s.tag[:0], -1
	}
	s.code, s.expect, s.dashes = true, false, 0
	s.over = s.over || s.values && s.depth == 0
	s.previous = c
}

// sign handles a dollar sign: the beginning of a parameter's number or of a quote's tag, or this tag's end.
func (s *Statement) sign() {
	s.expect = false
	switch {
	case s.Backslash:
	case len(s.tag) > 0:
		s.tag = append(s.tag, '$')
		s.inside = true
	case !wordBytes[s.previous] && s.previous != '$':
		s.tag = append(s.tag, '$')
	}
}

// begins reports whether a comment begins with c. MySQL requires a space after the dashes.
func (s *Statement) begins(c byte, dashes int) bool {
	switch {
	case c == '*' && s.previous == '/':
		s.comment = '*'
	case c == '-':
		s.dashes = dashes + 1
		if !s.Backslash && s.dashes == 2 {
			s.comment = '-'
		}
	case c == '#' && s.Backslash:
		s.comment = '-'
	}
	if s.comment != 0 {
		s.dashes = 0
		return true
	}
	s.expect = s.expect && (c == '/' || c == '-') // a comment may come between VALUES and its rows
	return false
}
