package files

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/terapush/terapush/pkg/batch"
)

// dress returns the buffer's records as they are sent: as they are in the file where that is the same, or else written
// into the rest of the buffer. Records without a common meaning, or without an end, are left out and returned.
func (s *Source) dress(b *buffer) (encoded []byte, bad []*RecordError) {
	last := s.incomplete(b)
	if last == nil {
		return s.dressWhole(b, b.raw)
	}
	encoded, bad = s.dressWhole(b, b.raw[:b.at.To-b.at.From-b.at.Incomplete])
	return encoded, append(bad, last)
}

func (s *Source) dressWhole(b *buffer, raw []byte) (encoded []byte, bad []*RecordError) {
	if len(raw) == 0 {
		return nil, nil
	}
	w := rewriter{
		how: s.how, wire: s.c.Wire, fields: s.c.Fields, from: raw, path: s.c.Spec.Files[b.at.File].Name(),
		line: b.at.FirstLine,
	}
	if s.c.Columns != nil {
		w.columns = s.c.Columns(b.at.File)
	}
	n := len(b.raw)
	room := b.memory[n:n]
	switch {
	case s.how.format == Parquet:
		return raw, nil
	case s.how.format == NDJSON:
		return w.objects(room, s.c.Some), w.bad
	case s.c.Rewrite:
		return w.rewrite(room), w.bad
	case s.c.Wire == batch.TSV && s.how.format == CSV:
		return w.csvToTSV(room), w.bad
	case s.how.format == CSV && w.csvDiffers(b.seen):
		return w.csv(room), w.bad
	case s.how.format != CSV && (w.columns != nil || w.escapesDiffer(b.seen)):
		return w.rewrite(room), w.bad
	}
	return raw, nil
}

// rewriter writes the records of a batch as another format reads them.
type rewriter struct {
	how     dialect
	wire    batch.Format
	fields  int
	columns []Field // of the record's fields; nil: they may be anything
	from    []byte
	bad     []*RecordError

	path    string
	line    int64 // of the byte counted
	counted int
}

// refuse notes that the record at an offset is bad, and returns where the next one begins.
func (w *rewriter) refuse(at int, why string) int {
	w.line += int64(bytes.Count(w.from[w.counted:at], newline))
	w.counted = at
	n, _, _ := w.how.next(w.from[at:])
	w.bad = append(w.bad, &RecordError{
		Path: w.path, Line: w.line, Why: why, Record: bytes.Clone(w.from[at : at+n]),
	})
	return at + n
}

// A carriage return outside of quotes that ends no line ends one for PostgreSQL if it comes first, and is an error
// later.
const bareCR = "a carriage return that is not before a newline, which databases read in different ways: " +
	`put the field in quotes, or write the lines anew if all end so: tr '\r' '\n'`

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

// rewrite appends the records field by field.
func (w *rewriter) rewrite(out []byte) []byte {
	f := field{how: w.how}
	for at := 0; at < len(w.from); {
		start, n := len(out), 0
		f.next, f.ends = at, false
		for !f.ends && f.problem == "" {
			f.read(w.from)
			if n < len(w.columns) && f.problem == "" {
				f.problem = w.columns[n].mistaken(&f)
			}
			out = w.append(out, &f)
			n++
		}
		if f.problem == "" && w.fields > 0 && n != w.fields {
			f.problem = ragged(w.from[at:f.next], n, w.fields)
		}
		if f.problem == "" {
			out[len(out)-1] = '\n'
			at = f.next
			continue
		}
		out, at = out[:start], w.refuse(at, f.problem)
		f.problem = ""
	}
	return out
}

// mistaken says why the server would take a value for another one; "" if it would not.
func (to Field) mistaken(f *field) string {
	switch {
	case to.NoNull && f.null:
		return to.refusesNull()
	case to.NoEmpty && !f.null && len(f.value) == 0:
		return fmt.Sprintf("an empty text for column %s, which is no text: this server would put NULL there", to.Column)
	}
	return to.other(f.value)
}

// other says that the server would take a text for another value; "" if it would not.
func (to Field) other(text []byte) string {
	switch {
	case to.NoZeroDay && bytes.HasPrefix(text, []byte("0000-00-00")):
		return fmt.Sprintf("0000-00-00 for column %s: this server would put 1970-01-01 there", to.Column)
	case to.FloatBits > 0 && overflows(text, to.FloatBits):
		return fmt.Sprintf("a number beyond those of column %s: this server would put infinity there", to.Column)
	}
	return ""
}

// overflows reports whether a text is a number that a float of so many bits cannot hold. One without an exponent has
// more than 38 digits then.
func overflows(text []byte, bits int) bool {
	if !bytes.ContainsAny(text, "eE") && len(text) <= 38 {
		return false
	}
	_, err := strconv.ParseFloat(string(text), bits)
	return errors.Is(err, strconv.ErrRange)
}

func (to Field) refusesNull() string {
	return fmt.Sprintf("NULL for column %s, which takes none: this server would put a value there", to.Column)
}

// append appends a field and a delimiter.
func (w *rewriter) append(out []byte, f *field) []byte {
	switch {
	case w.wire == batch.CSV && f.null:
		return append(out, `\N,`...)
	case w.wire == batch.CSV:
		return append(appendQuoted(out, f.value), ',')
	case w.wire == batch.TSV && f.null:
		return append(out, "\\N\t"...)
	case f.null:
		return append(append(out, w.how.null...), w.how.delim)
	}

	from, run := len(out), 0
	delims := ones * uint64(w.delim())
	for i := until(f.value, 0, delims, slashes, slashes); i < len(f.value); i = until(f.value, i, delims, slashes, slashes) {
		out = w.escape(append(out, f.value[run:i]...), f.value[i])
		i++
		run = i
	}
	out = append(out, f.value[run:]...)
	if w.wire == batch.PGText && bytes.Equal(out[from:], w.how.null) { // which it is not
		rest := bytes.Clone(out[from+1:])
		out = append(fmt.Appendf(out[:from], `\%03o`, out[from]), rest...)
	}
	return append(out, w.delim())
}

// appendQuoted appends a value as csv, in quotes if it needs them or could be taken for NULL.
func appendQuoted(out, value []byte) []byte {
	const quotes, commas = '"' * ones, ',' * ones
	i := until(value, 0, quotes, commas, slashes)
	if i == len(value) && i > 0 {
		return append(out, value...)
	}
	out = append(out, '"')
	for {
		quote := bytes.IndexByte(value, '"')
		if quote < 0 {
			break
		}
		out = append(append(out, value[:quote+1]...), '"')
		value = value[quote+1:]
	}
	return append(append(out, value...), '"')
}

func (w *rewriter) delim() byte {
	if w.wire == batch.TSV {
		return '\t'
	}
	return w.how.delim
}

// escape appends a byte of a field's as tsv or text.
func (w *rewriter) escape(out []byte, b byte) []byte {
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
	case b == w.delim() && b == '\t':
		return append(out, `\t`...)
	case b == w.delim():
		return append(out, '\\', b)
	}
	return append(out, b)
}
