package files

import (
	"bytes"
	"fmt"

	"github.com/terapush/terapush/pkg/batch"
)

// dress returns the buffer's records as they are sent: as they are in the file where that is the same, or else written
// into the rest of the buffer. Records without a common meaning are left out and returned.
func (s *Source) dress(b *buffer) (encoded []byte, bad []*RecordError) {
	w := rewriter{
		how: s.how, wire: s.c.Wire, fields: s.c.Fields, from: b.raw, path: s.c.Spec.Files[b.at.File].Path, line: b.at.FirstLine,
	}
	n := len(b.raw)
	room := b.memory[n:n]
	switch {
	case s.c.Wire == batch.TSV && s.how.format == CSV:
		return w.csvToTSV(room), w.bad
	case s.how.format == CSV && w.csvDiffers(b.seen):
		return w.csv(room), w.bad
	case s.how.format != CSV && w.escapesDiffer(b.seen):
		return w.escaped(room), w.bad
	}
	return b.raw, nil
}

// rewriter writes the records of a batch as another format reads them.
type rewriter struct {
	how    dialect
	wire   batch.Format
	fields int
	from   []byte
	bad    []*RecordError

	path    string
	line    int64 // of the byte counted
	counted int
}

// refuse notes that the record at an offset is bad, and returns where the next one begins.
func (w *rewriter) refuse(at int, format string, args ...any) int {
	w.line += int64(bytes.Count(w.from[w.counted:at], newline))
	w.counted = at
	n, _, _ := w.how.next(w.from[at:])
	w.bad = append(w.bad, &RecordError{
		Path: w.path, Line: w.line, Why: fmt.Sprintf(format, args...), Record: bytes.Clone(w.from[at : at+n]),
	})
	return at + n
}

// A carriage return outside of quotes that ends no line ends one for PostgreSQL if it comes first, and is an error later.
const bareCR = "a carriage return that is not before a newline: PostgreSQL reads it as the end of a line"

// csvDiffers reports whether COPY would not read csv as it is.
func (w *rewriter) csvDiffers(seen seen) bool {
	if seen.cr {
		return true
	}
	if !seen.backslash {
		return false
	}
	for rest := w.from; ; {
		i := bytes.Index(rest, endOfCopy)
		if i < 0 {
			return false
		}
		rest = rest[i+len(endOfCopy):]
		if rest[0] == '\n' {
			return true
		}
	}
}

// endOfCopy ends a COPY where it is alone in a line: in csv until PostgreSQL 17, and in text always.
var endOfCopy = []byte(`\.`)

// csv appends csv in which every record ends with a newline, and none is the end of a COPY.
func (w *rewriter) csv(out []byte) []byte {
	for at := 0; at < len(w.from); {
		n, _, _ := w.how.next(w.from[at:])
		record := w.from[at : at+n-1]
		if n > 1 && record[n-2] == '\r' {
			record = record[:n-2]
		}
		switch {
		case bytes.IndexByte(record, '\r') >= 0 && w.how.bareCR(record):
			w.refuse(at, bareCR)
		case bytes.Equal(record, endOfCopy):
			out = append(out, w.how.quote)
			out = append(out, record...)
			out = append(out, w.how.quote, '\n')
		default:
			out = append(out, record...)
			out = append(out, '\n')
		}
		at += n
	}
	return out
}

// bareCR reports whether a record of csv, without its line end, has a carriage return outside of quotes.
func (d dialect) bareCR(record []byte) bool {
	s := scanner{how: d}
	for i, c := range record {
		if c == '\r' && !s.inQuote {
			return true
		}
		s.escapes(record[i : i+1])
	}
	return false
}

// escapesDiffer reports whether what the batch is sent as reads its text or tsv otherwise.
func (w *rewriter) escapesDiffer(seen seen) bool {
	if seen.cr || w.wire == batch.TSV && (w.how.delim != '\t' || string(w.how.null) != `\N`) {
		return true
	}
	odd := w.odd()
	if !seen.backslash || odd == "" {
		return false
	}
	var is [256]bool
	for i := range len(odd) {
		is[odd[i]] = true
	}
	for rest := w.from; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			return false
		}
		if is[rest[i+1]] { // Every batch ends with a line end, so a byte follows.
			return true
		}
		rest = rest[i+2:]
	}
}

// odd returns the bytes that have another meaning behind a backslash in the file than where it is sent.
func (w *rewriter) odd() string {
	switch {
	case w.how.format == Text && w.wire == batch.PGText:
		return "."
	case w.how.format == TSV && w.wire == batch.TSV:
		return ""
	case w.how.format == TSV:
		return ".fvxZ0123456789"
	}
	return ".fvxZ01234567"
}

// escaped appends text or tsv in the escapes of COPY or LOAD DATA.
func (w *rewriter) escaped(out []byte) []byte {
	p := w.from
	for at := 0; at < len(p); {
		start, n, why := len(out), 1, ""
		field, from := len(out), at // where the field begins, written and read
		i := at
	record:
		for ; ; i++ {
			switch c := p[i]; {
			case c == w.how.delim:
				out = append(w.endField(out, field, p[from:i]), w.delim())
				field, from = len(out), i+1
				n++
			case c == '\n', c == '\r' && p[i+1] == '\n':
				out = append(w.endField(out, field, p[from:i]), '\n')
				i++
				if c == '\r' {
					i++
				}
				break record
			case c == '\r':
				why = bareCR
				break record
			case c == '\\':
				var b byte
				if b, i = w.how.unescape(p, i+1); i < 0 {
					why = `a \. ends the data of COPY, or is an error`
					break record
				}
				out = w.put(out, b)
			default:
				out = w.put(out, c)
			}
		}
		if why != "" {
			out, at = out[:start], w.refuse(at, "%s", why)
			continue
		}
		at = i
	}
	return out
}

func (w *rewriter) delim() byte {
	if w.wire == batch.TSV {
		return '\t'
	}
	return w.how.delim
}

// endField makes a field NULL if it is that in the file, and not if it is not.
func (w *rewriter) endField(out []byte, field int, raw []byte) []byte {
	switch {
	case bytes.Equal(raw, w.how.null) && w.wire == batch.TSV:
		return append(out[:field], `\N`...)
	case bytes.Equal(raw, w.how.null):
		return append(out[:field], raw...)
	case w.wire == batch.PGText && bytes.Equal(out[field:], w.how.null):
		first := out[field]
		rest := bytes.Clone(out[field+1:])
		return append(fmt.Appendf(out[:field], `\%03o`, first), rest...)
	}
	return out
}

// put appends a byte of data.
func (w *rewriter) put(out []byte, b byte) []byte {
	switch {
	case b == '\n':
		return append(out, `\n`...)
	case b == '\r':
		return append(out, `\r`...)
	case b == '\\':
		return append(out, `\\`...)
	case b == 0 && w.wire == batch.TSV:
		return append(out, `\0`...)
	case b == 0:
		return append(out, `\000`...) // an error: no text of PostgreSQL has it
	case b == w.delim():
		return append(out, '\\', b)
	}
	return append(out, b)
}

// unescape returns the byte that stands behind a backslash, and where the last byte is that belongs to it, −1 if there is
// no such escape.
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

// digits reads at most so many digits, and returns their low eight bits and where the last is.
func digits(p []byte, i, base, most int) (byte, int) {
	n, from := 0, i
	for ; i < from+most; i++ { // a line end comes before the end of p
		digit := bytes.IndexByte([]byte("0123456789abcdef")[:base], p[i]|0x20&(p[i]>>1))
		if digit < 0 {
			break
		}
		n = n*base + digit
	}
	return byte(n), i - 1
}
