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
)

// The lowest bit that these set is right: below it there is none of the bytes, and in its byte there is one.

// equal sets a bit for a byte that is that of c in every byte.
func equal(w, c uint64) uint64 {
	w ^= c
	return (w - ones) &^ w & highs
}

// control sets a bit for a byte below 14: NUL, tab, the line ends, and some others.
func control(w uint64) uint64 { return (w - 14*ones) &^ w & highs }

// csvToTSV appends the records as LOAD DATA reads them by default, eight bytes at a time. It writes up to three bytes for
// each byte, and eight more behind them.
func (w *rewriter) csvToTSV(dst []byte) []byte {
	p := w.from
	delim, quote, escape, null := w.how.delim, w.how.quote, w.how.escape, w.how.null
	delims, quotes, escapes := uint64(delim)*ones, uint64(quote)*ones, uint64(escape)*ones
	const slashes = '\\' * ones

	j := len(dst)
	out := slices.Grow(dst, 3*len(p)+slack)
	out = out[:cap(out)]

	for i := 0; i < len(p); {
		record, recordOut := i, j
		fields := 0
		bare := false
		for more := true; more && !bare; {
			field, fieldOut, quoted := i, j, false
			end := 0
		unquoted:
			for {
				word := load(p, i)
				binary.LittleEndian.PutUint64(out[j:], word)
				found := control(word) | equal(word, slashes) | equal(word, delims) | equal(word, quotes)
				if found == 0 {
					i, j = i+8, j+8
					continue
				}
				n := bits.TrailingZeros64(found) / 8
				i, j = i+n, j+n
				if i >= len(p) {
					end, more = i, false
					break
				}

				switch c := p[i]; c {
				case delim:
					end = i
					i++
					break unquoted
				case quote:
					i++
					quoted = true
				case '\n':
					end, more = i, false
					i++
					break unquoted
				case '\r':
					if i+1 < len(p) && p[i+1] != '\n' {
						bare = true
						break unquoted
					}
					end, more = i, false
					i += 2
					break unquoted
				default:
					j = putTSV(out, j, c)
					i++
					continue
				}

				for i < len(p) {
					word := load(p, i)
					binary.LittleEndian.PutUint64(out[j:], word)
					found := control(word) | equal(word, slashes) | equal(word, quotes) | equal(word, escapes)
					if found == 0 {
						i, j = i+8, j+8
						continue
					}
					n := bits.TrailingZeros64(found) / 8
					i, j = i+n, j+n
					if i >= len(p) {
						break
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
			}

			fields++
			if !quoted && end-field == len(null) && bytes.Equal(p[field:end], null) {
				out[fieldOut], out[fieldOut+1] = '\\', 'N'
				j = fieldOut + 2
			}
			out[j] = '\t'
			j++
		}

		out[j-1] = '\n'
		switch {
		case bare:
			i, j = w.refuse(record, bareCR), recordOut
		case fields != w.fields:
			i, j = w.refuse(record, "%s", ragged(p[record:i], fields, w.fields)), recordOut
		}
	}
	return out[:j]
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
