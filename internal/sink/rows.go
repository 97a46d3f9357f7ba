package sink

import (
	"bytes"
	"errors"
)

// Text is the format of rows in a text. The zero value has a row in every line.
type Text struct {
	// End is what ends a row; "" is a line feed.
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
	// Filled leaves out rows without a byte.
	Filled bool
	// Marker is a row that ends the data, "" if none does. It begins with a backslash; a carriage return may follow it.
	Marker string
}

// Delimited counts rows of text by their ends, and a last one without an end. It searches from one byte with a meaning to
// the next, and keeps nothing of the data.
type Delimited struct {
	text  Text
	blank []byte // two ends in a row
	fall  []int  // of each length of a beginning of End: the longest shorter one that it ends with

	n       int64
	open    bool // the last row has begun and not ended
	matched int  // bytes of End that the data ends with
	quoted  bool // inside of a value in quotes
	escaped bool // behind an Escape
	marked  int  // bytes of Marker that the row has begun with, where it has no others
	ended   bool // behind the marker
	before  byte // the last byte, 0 where it is none that a quote may follow
	begun   bool
}

// NewDelimited makes a counter.
func NewDelimited(t Text) *Delimited {
	if t.End == "" {
		t.End = "\n"
	}
	if t.Escape == t.Quote {
		t.Escape = 0 // a doubled quote: the value ends and goes on
	}
	d := &Delimited{text: t, fall: make([]int, len(t.End)), blank: []byte(t.End + t.End)}
	for i, k := 1, 0; i < len(t.End); i++ { // Knuth, Morris, Pratt
		for k > 0 && t.End[i] != t.End[k] {
			k = d.fall[k-1]
		}
		if t.End[i] == t.End[k] {
			k++
		}
		d.fall[i] = k
	}
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
	quote, escape := finder{d.text.Quote, -1}, finder{d.text.Escape, -1}
	mark := finder{0, -1}
	switch {
	case d.text.Bare:
		mark.c = d.text.Escape
	case d.text.Marker != "":
		mark.c = d.text.Marker[0]
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
		d.quoted = d.text.Anywhere || !d.begun || d.before == d.text.Quote || ends(d.text.End, d.before) || ends(d.text.Separator, d.before)
	} else {
		if d.text.Marker != "" && !d.open && d.matched == 0 {
			d.marked = 1
		}
		d.escaped = d.text.Bare && d.marked == 0
	}
	d.open, d.begun, d.matched, d.before = true, true, 0, 0
	return at + 1
}

// marker goes on with a row that has begun as the marker does, and returns how many bytes it took.
func (d *Delimited) marker(c byte) int {
	switch {
	case d.marked < len(d.text.Marker) && c == d.text.Marker[d.marked]:
		d.marked++
		return 1
	case d.marked == len(d.text.Marker) && c == '\r':
		return 1
	case d.marked == len(d.text.Marker) && c == d.text.End[0]:
		d.ended = true
		return 1
	}
	d.escaped = d.text.Bare && d.marked == 1 // it was an escape like others
	d.marked = 0
	return 0
}

func ends(s string, last byte) bool { return s != "" && s[len(s)-1] == last }

// plain counts rows outside of quotes.
func (d *Delimited) plain(p []byte) {
	if len(p) == 0 {
		return
	}
	d.begun, d.before = true, p[len(p)-1]
	if len(d.text.End) == 1 {
		d.n += int64(bytes.Count(p, d.blank[:1]))
		if d.text.Filled {
			d.n -= d.blanks(p)
		}
		d.open = d.before != d.text.End[0]
		return
	}
	for len(p) > 0 {
		if d.matched == 0 {
			i := bytes.IndexByte(p, d.text.End[0])
			d.open = d.open || i != 0
			if i < 0 {
				return
			}
			d.matched, p = 1, p[i+1:]
			continue
		}
		if p[0] != d.text.End[d.matched] {
			d.matched, d.open = d.fall[d.matched-1], true
			continue
		}
		d.matched, p = d.matched+1, p[1:]
		if d.matched == len(d.text.End) {
			if d.open || !d.text.Filled {
				d.n++
			}
			d.matched, d.open = 0, false
		}
	}
}

// blanks returns how many rows in p are empty, where a row's end is a single byte.
func (d *Delimited) blanks(p []byte) (n int64) {
	if !d.open && p[0] == d.blank[0] {
		n++
	}
	for {
		i := bytes.Index(p, d.blank)
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
	isMarker := d.marked > 0 && d.marked == len(d.text.Marker)
	if !isMarker && (d.open || d.matched > 0) {
		n++
	}
	return max(0, n-d.text.Skip), nil
}
