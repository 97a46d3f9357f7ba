package sink

import (
	"bytes"
	"errors"
)

// Text is the format of rows in a text. The zero value has a row in every line.
type Text struct {
	// End is what ends a row: one byte, or a carriage return and a line feed. "" is a line feed.
	End string
	// Quote begins and ends a value in which rows do not end, if it stands where a value begins: behind the last byte of
	// Separator, or behind End. 0: there are no quotes.
	Quote     byte
	Separator string
	// Anywhere lets a quote begin in the middle of a value too, as PostgreSQL does.
	Anywhere bool
	// Escape takes its meaning from the byte behind it, inside of quotes. 0: there is none.
	Escape byte
	// Bare lets Escape do so outside of quotes as well.
	Bare bool
	// Skip is how many rows at the beginning do not count, such as a header.
	Skip int64
	// Filled leaves out rows without a byte. It needs an End of one byte.
	Filled bool
	// Marker has a row that is \. end the data. A carriage return may follow it.
	Marker bool
}

const crlf = "\r\n"

var errEnd = errors.New("rows end with one byte here, or with a carriage return and a line feed")

// Delimited counts rows of text by their ends, and a last one without an end. It searches from one byte with a meaning
// to the next, and keeps nothing of the data.
type Delimited struct {
	text           Text
	end, separator byte // the last bytes of text's

	n       int64
	open    bool // the last row has begun and not ended
	quoted  bool // inside of a value in quotes
	escaped bool // behind an Escape
	marked  int  // bytes of \. that the row has begun with, where it has no others
	ended   bool // behind the marker
	before  byte // the last byte, 0 where it is none that a quote may follow
}

// NewDelimited makes a counter. It fails for an End that cannot be counted.
func NewDelimited(t Text) (*Delimited, error) {
	if t.End == "" {
		t.End = "\n"
	}
	if len(t.End) > 1 && (t.End != crlf || t.Filled) {
		return nil, errEnd
	}
	if t.Escape == t.Quote {
		t.Escape = 0 // a doubled quote: the value ends and goes on
	}
	if t.Separator == "" {
		t.Separator = t.End
	}
	end := t.End[len(t.End)-1]
	return &Delimited{text: t, end: end, separator: t.Separator[len(t.Separator)-1], before: end}, nil
}

// Lines makes a counter of lines.
func Lines() *Delimited {
	d, _ := NewDelimited(Text{}) // lines can be counted
	return d
}

// finder finds a byte, and keeps its place: with two finders on one text, neither must search all of it again for every
// hit of the other.
type finder struct {
	c  byte
	at int
}

func (f *finder) next(p []byte, from int) int {
	if f.c == 0 {
		return len(p)
	}
	if f.at < from {
		f.at = len(p)
		if i := bytes.IndexByte(p[from:], f.c); i >= 0 {
			f.at = from + i
		}
	}
	return f.at
}

// Write counts in p.
func (d *Delimited) Write(p []byte) {
	quote, escape, mark := finder{d.text.Quote, -1}, finder{d.text.Escape, -1}, finder{0, -1}
	switch {
	case d.text.Bare:
		mark.c = d.text.Escape
	case d.text.Marker:
		mark.c = '\\'
	}
	for i := 0; i < len(p) && !d.ended; {
		switch {
		case d.marked > 0:
			i += d.marker(p[i])
		case d.escaped:
			d.escaped = false
			i++
		case d.quoted:
			q, e := quote.next(p, i), escape.next(p, i)
			d.escaped, d.quoted = e < q, q >= min(e, len(p))
			d.before = d.text.Quote
			i = min(q, e) + 1
		default:
			q, m := quote.next(p, i), mark.next(p, i)
			i = d.bare(p, i, min(q, m), q < m)
		}
	}
}

// bare counts what stands outside of quotes from i to the next byte that means something, which is a quote or else an
// escape or the beginning of the marker, and returns where to go on.
func (d *Delimited) bare(p []byte, i, at int, isQuote bool) int {
	d.plain(p[i:at])
	if at == len(p) {
		return at
	}
	if isQuote {
		// Behind a quote that ended a value, another one stands for a quote in it: the value goes on.
		d.quoted = d.text.Anywhere || d.before == d.text.Quote || d.before == d.end || d.before == d.separator
	} else {
		if d.text.Marker && !d.open {
			d.marked = 1
		}
		d.escaped = d.text.Bare && d.marked == 0
	}
	d.open, d.before = true, 0
	return at + 1
}

// marker goes on with a row that has begun as \. does, and returns how many bytes it took.
func (d *Delimited) marker(c byte) int {
	switch {
	case d.marked == 1 && c == '.':
		d.marked = 2
		return 1
	case d.marked == 2 && c == '\r':
		return 1
	case d.marked == 2 && c == d.end:
		d.ended = true
		return 1
	}
	d.escaped = d.text.Bare && d.marked == 1 // it was an escape like others
	d.marked = 0
	return 0
}

// plain counts rows outside of quotes.
func (d *Delimited) plain(p []byte) {
	if len(p) == 0 {
		return
	}
	before, last := d.before, p[len(p)-1]
	d.before = last
	if d.text.End == crlf {
		d.n += int64(bytes.Count(p, []byte(crlf)))
		if before == '\r' && p[0] == '\n' {
			d.n++
		}
		if len(p) > 1 {
			before = p[len(p)-2]
		}
		d.open = last != '\n' || before != '\r'
		return
	}

	d.n += int64(bytes.Count(p, []byte{d.end}))
	if d.text.Filled {
		d.n -= d.blanks(p)
	}
	d.open = last != d.end
}

// blanks returns how many rows in p have no byte.
func (d *Delimited) blanks(p []byte) (n int64) {
	if !d.open && p[0] == d.end {
		n++
	}
	for {
		i := bytes.Index(p, []byte{d.end, d.end})
		if i < 0 {
			return n
		}
		n, p = n+1, p[i+1:]
	}
}

var errQuote = errors.New("a value in quotes has no end")

// Rows returns the number of rows.
func (d *Delimited) Rows() (int64, error) {
	if d.quoted {
		return 0, errQuote
	}
	n := d.n
	if d.open && d.marked < 2 { // a marker is no row
		n++
	}
	return max(0, n-d.text.Skip), nil
}
