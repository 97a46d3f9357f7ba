package files

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones

	slashes  = '\\' * ones
	controls = '\r' + 1
)

// The lowest bit that these set is right: below it there is none of the bytes, and in its byte there is one.

// equal sets a bit for a byte that is that of c in every byte.
func equal(w, c uint64) uint64 {
	w ^= c
	return (w - ones) &^ w & highs
}

// control sets a bit for a byte below controls: NUL, tab, the line ends, and some others.
func control(w uint64) uint64 { return (w - controls*ones) &^ w & highs }

// first returns which byte the lowest bit is in, 8 if there is none.
func first(found uint64) int { return bits.TrailingZeros64(found) / 8 }

// until returns the place of the first byte from i on that is a control or one of three, and else of the end.
func until(p []byte, i int, a, b, c uint64) int {
	for {
		word := load(p, i)
		n := first(control(word) | equal(word, a) | equal(word, b) | equal(word, c))
		if i += n; n < 8 {
			return min(i, len(p))
		}
	}
}

// csvToTSV appends the records as LOAD DATA reads them by default, eight bytes at a time. It writes up to three bytes for
// each byte, and eight more behind them.
func (w *rewriter) csvToTSV(dst []byte) []byte {
	p := w.from
	delim, quote, null := w.how.delim, w.how.quote, w.how.null
	delims, quotes := uint64(delim)*ones, uint64(quote)*ones
	var special [256]bool // outside of quotes
	for c := range special {
		special[c] = c < controls || c == '\\' || c == int(delim) || c == int(quote)
	}

	j := len(dst)
	out := slices.Grow(dst, 3*len(p)+slack)
	out = out[:cap(out)]

	for i := 0; i < len(p); {
		record, recordOut := i, j
		fields := 0
		bare := false
		refused := -1 // the column of a NULL that must not be sent
		for more := true; more; {
			field, fieldOut := i, j
			end := 0
		unquoted:
			for {
				// Where a field begins, and where a quote has closed, it is most often the next byte.
				for i < len(p) && !special[p[i]] {
					word := load(p, i)
					binary.LittleEndian.PutUint64(out[j:], word)
					n := first(control(word) | equal(word, slashes) | equal(word, delims) | equal(word, quotes))
					i, j = i+n, j+n
				}
				end = i
				if i >= len(p) {
					more = false
					break
				}

				switch c := p[i]; c {
				case delim:
					i++
					break unquoted
				case quote:
					i, j = w.quoted(p, i+1, out, j)
				case '\n':
					more = false
					i++
					break unquoted
				case '\r':
					bare = i+1 < len(p) && p[i+1] != '\n'
					more = false
					i = min(i+2, len(p))
					break unquoted
				default:
					j = putTSV(out, j, c)
					i++
				}
			}

			fields++
			if bytes.Equal(p[field:end], null) { // which has no quotes
				out[fieldOut], out[fieldOut+1] = '\\', 'N'
				j = fieldOut + 2
				if fields <= len(w.columns) && w.columns[fields-1].NoNull && refused < 0 && !bare {
					refused = fields - 1
				}
			}
			out[j] = '\t'
			j++
		}

		out[j-1] = '\n'
		switch {
		case refused >= 0:
			i, j = w.refuse(record, w.columns[refused].refusesNull()), recordOut
		case bare:
			i, j = w.refuse(record, bareCR), recordOut
		case fields != w.fields:
			i, j = w.refuse(record, ragged(p[record:i], fields, w.fields)), recordOut
		}
	}
	return out[:j]
}

// quoted writes a quoted part, and returns where both go on behind its closing quote.
func (w *rewriter) quoted(p []byte, i int, out []byte, j int) (int, int) {
	quote, escape := w.how.quote, w.how.escape
	quotes, escapes := uint64(quote)*ones, uint64(escape)*ones
	for i < len(p) {
		word := load(p, i)
		binary.LittleEndian.PutUint64(out[j:], word)
		found := control(word) | equal(word, slashes) | equal(word, quotes)
		if escape != quote {
			found |= equal(word, escapes)
		}
		n := first(found)
		i, j = i+n, j+n
		if n == 8 || i >= len(p) {
			continue
		}

		c := p[i]
		i++
		if c == escape && i < len(p) && (p[i] == quote || p[i] == escape) {
			c = p[i]
			i++
		} else if c == quote {
			break
		}
		j = putTSV(out, j, c)
	}
	return i, j
}

// load returns the next eight bytes, zeros behind the end.
func load(p []byte, i int) uint64 {
	if i+8 <= len(p) {
		return binary.LittleEndian.Uint64(p[i:])
	}
	var last [8]byte
	if i < len(p) {
		copy(last[:], p[i:])
	}
	return binary.LittleEndian.Uint64(last[:])
}

// putTSV writes a byte of data that may need a backslash, and returns where the next goes.
func putTSV(out []byte, j int, c byte) int {
	short := c
	switch c {
	case '\\':
	case '\t':
		short = 't'
	case '\n':
		short = 'n'
	case '\r':
		short = 'r'
	case 0:
		short = '0'
	default:
		out[j] = c
		return j + 1
	}
	out[j], out[j+1] = '\\', short
	return j + 2
}

// ragged says what is wrong with a record's fields.
func ragged(record []byte, has, needed int) string {
	switch {
	case len(bytes.TrimRight(record, "\r\n")) == 0:
		return fmt.Sprintf("the line is empty, which is one field, and %d are needed", needed)
	case has == 1:
		return fmt.Sprintf("1 field, and %d are needed: is the delimiter another one?", needed)
	}
	return fmt.Sprintf("%d fields, and %d are needed", has, needed)
}
