package files

import (
	"bytes"
	"strconv"
)

// field is one of a record.
type field struct {
	how     dialect
	value   []byte // without quotes and escapes, until the next is read
	null    bool
	next    int    // where the next one begins
	ends    bool   // the record
	problem string // with the record

	buffer []byte // of a value that is not in the file as it is
}

// read reads the next field of bytes that end with a line end.
func (f *field) read(p []byte) {
	from, run := f.next, f.next // run is where bytes begin that are to be copied
	inQuote := false
	csv := f.how.format == CSV
	delims, specials, escapes := ones*uint64(f.how.delim), ones*uint64(f.how.special()), ones*uint64(f.how.escape)
	f.buffer = f.buffer[:0]

	for i := until(p, from, delims, specials, escapes); ; i = until(p, i, delims, specials, escapes) {
		c := p[i]
		switch {
		case inQuote && c == f.how.escape && (p[i+1] == f.how.quote || p[i+1] == f.how.escape):
			f.buffer = append(f.buffer, p[run:i]...)
			run = i + 1
			i += 2
		case csv && c == f.how.quote:
			f.buffer = append(f.buffer, p[run:i]...)
			inQuote = !inQuote
			i++
			run = i
		case inQuote:
			i++
		case c == f.how.delim, c == '\n', c == '\r' && p[i+1] == '\n':
			f.null = bytes.Equal(p[from:i], f.how.null) // which has no quotes
			if f.value = p[run:i]; run > from {
				f.buffer = append(f.buffer, f.value...)
				f.value = f.buffer
			}
			f.ends = c != f.how.delim
			f.next = i + 1
			if c == '\r' && f.ends {
				f.next++
			}
			return
		case c == '\r':
			f.problem = bareCR
			return
		case !csv && c == '\\':
			b, last := f.how.unescape(p, i+1)
			if last < 0 {
				f.problem = `a \. ends the data of COPY, or is an error`
				return
			}
			f.buffer = append(append(f.buffer, p[run:i]...), b)
			i = last + 1
			run = i
		default:
			i++
		}
	}
}

// unescape returns the byte that stands behind a backslash, and where the last byte is that belongs to it, −1 if there
// is no such escape.
func (d dialect) unescape(p []byte, i int) (byte, int) {
	c := p[i]
	switch c {
	case 'b':
		return '\b', i
	case 'n':
		return '\n', i
	case 'r':
		return '\r', i
	case 't':
		return '\t', i
	}
	if d.format == TSV {
		switch c {
		case '0':
			return 0, i
		case 'Z':
			return 26, i
		}
		return c, i
	}

	switch {
	case c == 'f':
		return '\f', i
	case c == 'v':
		return '\v', i
	case c == '.':
		return 0, -1
	case '0' <= c && c <= '7':
		return digits(p, i, 8, 3)
	case c == 'x':
		if b, last := digits(p, i+1, 16, 2); last > i {
			return b, last
		}
	}
	return c, i
}

// digits reads at most so many digits, and returns their low eight bits and where the last is. A line end lies behind.
func digits(p []byte, i, base, most int) (byte, int) {
	n, from := 0, i
	for ; i < from+most; i++ {
		digit, err := strconv.ParseUint(string(p[i:i+1]), base, 8)
		if err != nil {
			break
		}
		n = n*base + int(digit)
	}
	return byte(n), i - 1
}
