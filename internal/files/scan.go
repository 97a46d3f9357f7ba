package files

import "bytes"

// dialect is a checked Spec, as bytes.
type dialect struct {
	format               Format
	delim, quote, escape byte
	null                 []byte
}

func (s Spec) dialect() dialect {
	if s.Format.Named() {
		return dialect{format: s.Format}
	}
	d := dialect{format: s.Format, delim: s.Delimiter[0], escape: '\\', null: []byte(s.Null)}
	if s.Format == CSV {
		d.quote, d.escape = s.Quote[0], s.Escape[0]
	}
	return d
}

// special returns the byte without which every line end ends a record.
func (d *dialect) special() byte {
	if d.format == CSV {
		return d.quote
	}
	return d.escape
}

// scanner finds the ends of records in the bytes of a file. It begins at the start of a record.
type scanner struct {
	how dialect

	inQuote bool // within a quoted part
	escaped bool // the next byte is data

	at      int64 // bytes so far
	end     int64 // where the last record that ended did, 0 = none has
	records int64 // that ended
	lines   int64 // line ends so far
	open    int64 // line ends since the last record's end
	seen    seen
}

// seen says which bytes a batch has, of those that may have to be written otherwise.
type seen struct{ cr, backslash bool }

func (s *seen) look(p []byte) {
	s.cr = s.cr || bytes.IndexByte(p, '\r') >= 0
	s.backslash = s.backslash || bytes.IndexByte(p, '\\') >= 0
}

// chunk is how many bytes are looked at for a quote or backslash at a time: without one their line ends are only
// counted.
const chunk = 2 << 10

var newline = []byte{'\n'}

// scan takes the next bytes. For record ends only the parity counts, of the quotes before them or of the backslashes
// right before them, and the standard library counts bytes 32 at a time.
func (s *scanner) scan(p []byte) {
	if s.how.format == NDJSON { // no text of JSON has a line end in it
		s.plain(p, int64(bytes.Count(p, newline)))
		s.at += int64(len(p))
		return
	}
	for len(p) > 0 {
		part := p[:min(chunk, len(p))]
		p = p[len(part):]

		// In a quoted part an escape that is not the quote makes a quote data, perhaps one in the next chunk.
		escapes := s.how.format == CSV && s.inQuote && s.how.escape != s.how.quote
		if special, lines := s.look(part); s.escaped || escapes || special {
			s.special(part)
		} else {
			s.plain(part, lines)
		}
		s.at += int64(len(part))
	}
}

// look reports whether a chunk has the special byte, and how many line ends it has if it does not.
func (s *scanner) look(p []byte) (special bool, lines int64) {
	c := s.how.special()
	if words := len(p) / 64; hasMarks && words > 0 {
		specials, returns, backslashes, n := lookWords(&p[0], words, c)
		special, lines = specials != 0, int64(n)
		s.seen.cr = s.seen.cr || returns != 0
		s.seen.backslash = s.seen.backslash || backslashes != 0
		p = p[words*64:]
	}
	s.seen.look(p)
	if special || bytes.IndexByte(p, c) >= 0 {
		return true, 0
	}
	return false, lines + int64(bytes.Count(p, newline))
}

// special takes a chunk in the faster way that there is.
func (s *scanner) special(p []byte) {
	if hasMarks && (s.how.format != CSV || s.how.quote == s.how.escape) {
		s.byWords(p)
		return
	}
	s.lineByLine(p)
}

func (s *scanner) lineByLine(p []byte) {
	switch {
	case s.how.format == NDJSON:
		s.plain(p, int64(bytes.Count(p, newline)))
	case s.how.format != CSV:
		s.backslashes(p)
	case s.how.quote == s.how.escape:
		s.quotes(p)
	default:
		s.escapes(p)
	}
}

// next returns the length of the first record, with its line end, and how many line ends it has; whole is false if the
// bytes end before it does.
func (d dialect) next(p []byte) (n int, lines int64, whole bool) {
	s := scanner{how: d}
	for n < len(p) && s.end == 0 {
		to, _ := lineEnd(p, n)
		s.lineByLine(p[n:to])
		n = to
		s.at = int64(n)
	}
	return n, s.lines, s.end > 0
}

// plain takes bytes with n line ends in which no quoted part begins or ends, and nothing is escaped.
func (s *scanner) plain(p []byte, n int64) {
	s.lines += n
	if s.inQuote {
		s.open += n
		return
	}
	if n > 0 {
		s.records += n
		s.end, s.open = s.at+int64(bytes.LastIndexByte(p, '\n'))+1, 0
	}
}

// line takes a line end that lies before an offset.
func (s *scanner) line(end int64, data bool) {
	s.lines++
	if data {
		s.open++
		return
	}
	s.records++
	s.end, s.open = end, 0
}

// quotes takes csv whose quotes are doubled to be data, which leaves their parity as it is.
func (s *scanner) quotes(p []byte) {
	quote := []byte{s.how.quote}
	for from := 0; from < len(p); {
		to, found := lineEnd(p, from)
		if bytes.Count(p[from:to], quote)%2 == 1 {
			s.inQuote = !s.inQuote
		}
		if found {
			s.line(s.at+int64(to), s.inQuote)
		}
		from = to
	}
}

// backslashes takes text or tsv.
func (s *scanner) backslashes(p []byte) {
	for from := 0; from < len(p); {
		to, found := lineEnd(p, from)
		last := to
		if found {
			last--
		}
		first := last
		for first > from && p[first-1] == '\\' {
			first--
		}
		odd := (last-first)%2 == 1
		if first == from && s.escaped {
			odd = !odd
		}

		s.escaped = odd && !found
		if found {
			s.line(s.at+int64(to), odd)
		}
		from = to
	}
}

// lineEnd returns where the line that holds an offset ends, or the bytes, and whether it is the line.
func lineEnd(p []byte, from int) (to int, found bool) {
	if i := bytes.IndexByte(p[from:], '\n'); i >= 0 {
		return from + i + 1, true
	}
	return len(p), false
}

// escapes takes csv whose escape is not its quote. As in COPY, an escape is one in quoted parts only.
func (s *scanner) escapes(p []byte) {
	for i, c := range p {
		data := s.inQuote
		switch {
		case s.escaped:
			s.escaped = false
		case c == s.how.escape && s.inQuote:
			s.escaped = true
		case c == s.how.quote:
			s.inQuote = !s.inQuote
		}
		if c == '\n' {
			s.line(s.at+int64(i)+1, data)
		}
	}
}
