package files

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// scanner finds the ends of records in the bytes of a file. It begins at the start of a record.
type scanner struct {
	how dialect

	inQuote bool // within a quoted part
	escaped bool // the byte before was an escape

	at      int64 // bytes so far
	end     int64 // where the last record that ended did, 0 = none has
	records int64 // that ended
	lines   int64 // line ends so far
	open    int64 // line ends since the last record's end
}

// dialect is a checked Spec, as bytes.
type dialect struct {
	format               Format
	delim, quote, escape byte
	null                 []byte
}

func (s Spec) dialect() dialect {
	d := dialect{format: s.Format, delim: s.Delimiter[0], null: []byte(s.Null)}
	if s.Format == CSV {
		d.quote, d.escape = s.Quote[0], s.Escape[0]
	}
	return d
}

// chunk is how many bytes are looked at for a quote or backslash at a time: without one their line ends are only counted.
const chunk = 2 << 10

// scan takes the next bytes.
func (s *scanner) scan(p []byte) {
	for len(p) > 0 {
		part := p[:min(chunk, len(p))]
		p = p[len(part):]
		s.scanChunk(part)
		s.at += int64(len(part))
	}
}

func (s *scanner) scanChunk(p []byte) {
	special := s.how.quote
	if s.how.format != CSV {
		special = '\\'
	}

	switch {
	case !s.escaped && bytes.IndexByte(p, special) < 0:
		s.plain(p)
	case s.how.format != CSV:
		s.backslashes(p)
	case s.how.quote == s.how.escape:
		s.quotes(p)
	default:
		s.bytewise(p, s.at)
	}
}

// plain takes bytes in which no quoted part begins or ends.
func (s *scanner) plain(p []byte) {
	n := int64(bytes.Count(p, newline))
	s.lines += n
	if s.inQuote {
		s.open += n
		return
	}
	if n > 0 {
		s.records += n
		s.end = s.at + int64(bytes.LastIndexByte(p, '\n')) + 1
		s.open = 0
	}
}

var newline = []byte{'\n'}

const (
	ones  = 0x0101010101010101
	low7  = 0x7f * ones
	evens = 0x5555555555555555
)

// masks returns, for 64 bytes, a bit for each that is a line end, and for each that is c.
func masks(p *[64]byte, c byte) (lf, is uint64) {
	wantLF, wantC := uint64('\n')*ones, uint64(c)*ones
	for i := 0; i < 64; i += 8 {
		w := binary.LittleEndian.Uint64(p[i:])
		lf |= zeros(w^wantLF) << i
		is |= zeros(w^wantC) << i
	}
	return lf, is
}

// zeros returns a bit for each of the eight bytes that is zero, the lowest first.
func zeros(w uint64) uint64 {
	w = ^((w&low7 + low7) | w | low7) // the high bit of each zero byte
	return (w >> 7) * 0x0102040810204080 >> 56
}

// quotes takes bytes where a doubled quote is one that is data: for record ends only the parity of quotes counts.
func (s *scanner) quotes(p []byte) {
	s.blocks(p, s.how.quote, func(lf, quote uint64) uint64 {
		inside := prefixXor(quote)
		if s.inQuote {
			inside = ^inside
		}
		s.inQuote = inside>>63 != 0
		return lf &^ inside
	})
}

// prefixXor returns in each bit the parity of the bits up to it.
func prefixXor(x uint64) uint64 {
	for i := 1; i < 64; i *= 2 {
		x ^= x << i
	}
	return x
}

// backslashes takes bytes where a backslash makes the next byte data.
func (s *scanner) backslashes(p []byte) {
	s.blocks(p, '\\', func(lf, slash uint64) uint64 {
		var carry uint64
		if s.escaped {
			carry = 1
		}
		// As simdjson does: a run of backslashes escapes what follows it if it is odd, which an addition finds out for all
		// runs at once.
		slash &^= carry
		follows := slash<<1 | carry
		oddStarts := slash &^ evens &^ follows
		sum, over := bits.Add64(oddStarts, slash, 0)
		s.escaped = over != 0
		escaped := (evens ^ sum<<1) & follows
		return lf &^ escaped
	})
}

// blocks calls ends for each 64 bytes, which returns those of the line ends that end a record.
func (s *scanner) blocks(p []byte, c byte, ends func(lf, is uint64) uint64) {
	at := s.at
	for ; len(p) >= 64; at, p = at+64, p[64:] {
		lf, is := masks((*[64]byte)(p), c)
		out := ends(lf, is)
		n := int64(bits.OnesCount64(lf))
		s.lines += n
		if out == 0 {
			s.open += n
			continue
		}
		s.records += int64(bits.OnesCount64(out))
		top := 63 - bits.LeadingZeros64(out)
		s.end = at + int64(top) + 1
		s.open = int64(bits.OnesCount64(lf >> top >> 1))
	}
	s.bytewise(p, at)
}

// bytewise takes any bytes; they begin at an offset.
func (s *scanner) bytewise(p []byte, at int64) {
	quoted := s.how.format == CSV
	escape := s.how.escape
	switch {
	case !quoted:
		escape = '\\'
	case escape == s.how.quote:
		escape = 0 // parity is enough; Check allows no NUL
	}
	for i, c := range p {
		data := s.escaped || s.inQuote // a line end here is data
		switch {
		case s.escaped:
			s.escaped = false
		case c == escape && escape != 0 && (s.inQuote || !quoted):
			s.escaped = true // as in COPY, csv's escape counts in quoted parts only
		case quoted && c == s.how.quote:
			s.inQuote = !s.inQuote
		}
		if c != '\n' {
			continue
		}
		s.lines++
		if data {
			s.open++
			continue
		}
		s.records++
		s.end, s.open = at+int64(i)+1, 0
	}
}
