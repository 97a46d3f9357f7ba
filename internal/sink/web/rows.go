package web

import (
	"bytes"
	"errors"
)

// Text says how rows lie in a text.
type Text struct {
	// End is what ends a row; "" is a line feed.
	End string
	// Quote begins and ends a value in which rows do not end, if it stands where a value begins: behind the last byte of
	// Separator, or behind End. 0: there are no quotes.
	Quote     byte
	Separator string
	// Skip is how many rows at the beginning are none.
	Skip int64
}

// Delimited counts rows of text by what ends them, and a last one that nothing ends.
type Delimited struct {
	text Text
	fall []int // of each length of a beginning of End: the longest shorter one that it ends with

	n       int64
	open    bool // the last row has begun and not ended
	matched int  // bytes of End that the data ends with
	quoted  bool // inside of a value in quotes
	before  byte // the last byte, outside of quotes
	begun   bool
}

// NewDelimited makes a counter.
func NewDelimited(t Text) *Delimited {
	if t.End == "" {
		t.End = "\n"
	}
	d := &Delimited{text: t, fall: make([]int, len(t.End))}
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

// Write counts in p.
func (d *Delimited) Write(p []byte) {
	for len(p) > 0 && d.text.Quote != 0 {
		i := bytes.IndexByte(p, d.text.Quote)
		if d.quoted {
			if i < 0 {
				return
			}
			d.quoted, d.before, p = false, d.text.Quote, p[i+1:]
			continue
		}
		if i < 0 {
			break
		}
		d.plain(p[:i])
		// Behind a quote that ended a value, another one stands for a quote in it: the value goes on.
		d.quoted = !d.begun || d.before == d.text.Quote || ends(d.text.End, d.before) || ends(d.text.Separator, d.before)
		d.open, d.begun, d.matched, d.before, p = true, true, 0, d.text.Quote, p[i+1:]
		if !d.quoted {
			d.before = 0 // a quote in the middle of a value is a letter like others
		}
	}
	d.plain(p)
}

func ends(s string, last byte) bool { return s != "" && s[len(s)-1] == last }

// plain counts outside of quotes.
func (d *Delimited) plain(p []byte) {
	if len(p) == 0 {
		return
	}
	d.begun, d.before = true, p[len(p)-1]
	if len(d.text.End) == 1 {
		d.n += int64(bytes.Count(p, []byte(d.text.End)))
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
			d.n, d.matched, d.open = d.n+1, 0, false
		}
	}
}

var errQuote = errors.New("a value in quotes has no end")

// Rows is the number of rows.
func (d *Delimited) Rows() (int64, error) {
	if d.quoted {
		return 0, errQuote
	}
	n := d.n
	if d.open || d.matched > 0 {
		n++
	}
	return max(0, n-d.text.Skip), nil
}

// JSON counts values: those that stand by themselves, or those in an array that is the whole text.
type JSON struct {
	// Array takes the text for one array, whose elements are the rows.
	Array bool

	n       int64
	depth   int
	quoted  bool
	escaped bool
	inside  bool // of a value that counts
	bad     bool
}

// Write counts in p.
func (j *JSON) Write(p []byte) {
	for _, c := range p {
		switch {
		case j.escaped:
			j.escaped = false
		case j.quoted:
			j.quoted, j.escaped = c != '"', c == '\\'
		default:
			j.plain(c)
		}
	}
}

func (j *JSON) plain(c byte) {
	level := 0
	if j.Array {
		level = 1
	}
	switch c {
	case ' ', '\t', '\r', '\n':
		if level == 0 && j.depth == 0 { // a line end separates values that have no other end
			j.inside = false
		}
		return
	case ',':
		j.inside = j.inside && j.depth != level
		return
	case '}', ']':
		j.depth--
		j.bad = j.bad || j.depth < 0
		if j.depth == level && level == 0 {
			j.inside = false
		}
		return
	}
	switch {
	case j.depth == level && !j.inside:
		j.n, j.inside = j.n+1, true
	case j.depth < level && c != '[':
		j.bad = true
	}
	switch c {
	case '"':
		j.quoted = true
	case '{', '[':
		j.depth++
	}
}

var errJSON = errors.New("the JSON has no end, or is no array where one was announced")

// Rows is the number of values.
func (j *JSON) Rows() (int64, error) {
	if j.bad || j.depth != 0 || j.quoted {
		return 0, errJSON
	}
	return j.n, nil
}
