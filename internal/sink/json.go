package sink

import "errors"

// JSON counts values: those that stand by themselves and are no arrays, or those in arrays.
type JSON struct {
	// Array takes the text for an array, or several one behind the other, whose elements are the rows.
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
		if j.depth == 0 { // of a value, or of the array that values stood in
			j.inside = false
		}
		return
	}
	switch {
	case j.depth == level && !j.inside:
		j.n, j.inside = j.n+1, true
		j.bad = j.bad || level == 0 && c == '['
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

var errJSON = errors.New("the JSON has no end, or is no array where one was announced, or is one where none was")

// Rows returns the number of values.
func (j *JSON) Rows() (int64, error) {
	if j.bad || j.depth != 0 || j.quoted {
		return 0, errJSON
	}
	return j.n, nil
}
