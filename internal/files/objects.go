package files

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// objects appends the JSON objects of a batch, a line each. It looks at their names, and leaves values to the server,
// but that a number for a Quoted column goes as a text. some says that names of no column are left to the server, which
// leaves them out.
func (w *rewriter) objects(out []byte, some bool) []byte {
	found := make([]bool, len(w.columns))
	for at := 0; at < len(w.from); {
		to, _ := lineEnd(w.from, at)
		o := members{in: w.from[at : to-1]}
		start, copied := len(out), 0
		clear(found)
		for last := -1; o.next(); {
			i := w.column(o.name, last+1)
			switch {
			case i >= 0 && found[i]:
				o.problem = fmt.Sprintf("the name %q is there twice", o.name)
			case i < 0 && !some:
				o.problem = fmt.Sprintf("the name %q is not among the columns, which are those of the file's first record: "+
					"name all of them with --columns", o.name)
			case i >= 0:
				found[i], last = true, i
				o.problem = w.columns[i].other(bytes.Trim(o.in[o.from:o.to], `"`))
			}
			if o.problem != "" {
				break
			}
			if i >= 0 && w.columns[i].Quoted && o.isNumber() {
				out = append(append(out, o.in[copied:o.from]...), '"')
				out = append(append(out, o.in[o.from:o.to]...), '"')
				copied = o.to
			}
		}
		if o.problem != "" {
			out, at = out[:start], w.refuse(at, o.problem)
			continue
		}
		out = append(append(out, o.in[copied:]...), '\n')
		at = to
	}
	return out
}

// column returns the index of a column, −1 if no column has the name, whatever the case of its letters. likely is where
// it is if objects have their names in one order.
func (w *rewriter) column(name []byte, likely int) int {
	if likely < len(w.columns) && w.columns[likely].Column == string(name) {
		return likely
	}
	for i, c := range w.columns {
		if c.Column == string(name) || len(c.Column) == len(name) && bytes.EqualFold([]byte(c.Column), name) {
			return i
		}
	}
	return -1
}

// members goes over the names and values of a line that should be a JSON object.
type members struct {
	in       []byte
	at       int
	name     []byte // unescaped
	from, to int    // of its value
	problem  string // with the object, which then has no next
}

// next goes to the next name, and reports whether there is one.
func (o *members) next() bool {
	if o.problem != "" {
		return false
	}
	c := o.byte()
	switch {
	case o.name == nil && c != '{':
		return o.wrong("a line is a JSON object")
	case o.name != nil && c != ',' && c != '}':
		return o.wrong("a comma or the object's end is missing")
	}
	o.at++
	if o.name == nil && o.byte() == '}' {
		c = '}'
		o.at++
	}
	if c == '}' {
		if o.byte(); o.at < len(o.in) {
			return o.wrong("there is more behind the object")
		}
		return false
	}

	if o.byte() != '"' {
		return o.wrong("a name in quotation marks is missing")
	}
	from := o.at
	o.string()
	o.name = o.in[from+1 : max(o.at-1, from+1)]
	if bytes.IndexByte(o.name, '\\') >= 0 {
		var name string
		if json.Unmarshal(o.in[from:o.at], &name) != nil {
			return o.wrong("a name is not right")
		}
		o.name = []byte(name)
	}
	if o.byte() != ':' {
		return o.wrong("a colon is missing")
	}
	o.at++
	o.byte()
	o.from = o.at
	o.value()
	o.to = o.at
	if o.from == o.to {
		return o.wrong("a value is missing")
	}
	return true
}

func (o *members) wrong(why string) bool {
	o.problem = fmt.Sprintf("not JSON, byte %d: %s", o.at+1, why)
	if len(bytes.TrimSpace(o.in)) == 0 {
		o.problem = "the line is empty, and has no JSON object"
	}
	return false
}

// byte returns the next byte that is no white space; 0 at the end.
func (o *members) byte() byte {
	for ; o.at < len(o.in); o.at++ {
		switch c := o.in[o.at]; c {
		case ' ', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

// value goes behind a value, or to the end.
func (o *members) value() {
	for depth := 0; o.at < len(o.in); {
		switch o.in[o.at] {
		case '"':
			o.string()
		case '{', '[':
			depth++
			o.at++
		case '}', ']':
			if depth == 0 {
				return
			}
			depth--
			o.at++
		case ',', ' ', '\t', '\r':
			if depth == 0 {
				return
			}
			o.at++
		default:
			o.at++
		}
	}
}

// string goes behind a string, or to the end.
func (o *members) string() {
	const quotes = '"' * ones
	for o.at++; ; o.at++ {
		o.at = until(o.in, o.at, quotes, quotes, slashes)
		if o.at >= len(o.in) {
			o.at = len(o.in)
			return
		}
		switch o.in[o.at] {
		case '"':
			o.at++
			return
		case '\\':
			o.at++
		}
	}
}

// isNumber reports whether the value is one.
func (o *members) isNumber() bool {
	c := o.in[o.from]
	return c == '-' || '0' <= c && c <= '9'
}

// namesOf returns the names in a line that should be a JSON object, and says what is wrong with it.
func namesOf(line []byte) (names []string, problem string) {
	o := members{in: bytes.TrimRight(line, "\r\n")}
	for o.next() {
		names = append(names, string(o.name))
	}
	return names, o.problem
}
