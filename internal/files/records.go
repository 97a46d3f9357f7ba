package files

import (
	"bytes"
	"iter"
)

// Records returns the records of bytes that begin at one, each with its line end, and the number of line ends before it.
// The last one may lack its line end.
func (s Spec) Records(p []byte) iter.Seq2[int64, []byte] {
	return func(yield func(int64, []byte) bool) {
		how := s.dialect()
		for lines := int64(0); len(p) > 0; {
			n, in, _ := how.next(p)
			if !yield(lines, p[:n]) {
				return
			}
			p = p[n:]
			lines += in
		}
	}
}

// fields takes a record apart, as COPY does. It is for headers: null is not recognised.
func (d dialect) fields(record []byte) []string {
	record = bytes.TrimSuffix(record, newline)
	record = bytes.TrimSuffix(record, []byte{'\r'})
	var all []string
	var field []byte
	inQuote := false
	for i := 0; i < len(record); i++ {
		c := record[i]
		switch {
		case d.format != CSV && c == '\\' && i+1 < len(record):
			i++
			field = append(field, record[i])
		case d.format == CSV && inQuote && c == d.escape && i+1 < len(record) && (record[i+1] == d.quote || record[i+1] == d.escape):
			i++
			field = append(field, record[i])
		case d.format == CSV && c == d.quote:
			inQuote = !inQuote
		case c == d.delim && !inQuote:
			all = append(all, string(field))
			field = field[:0]
		default:
			field = append(field, c)
		}
	}
	return append(all, string(field))
}
