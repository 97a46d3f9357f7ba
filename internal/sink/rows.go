package sink

import "bytes"

// Lines counts rows of text: line feeds, and a last line without one. A line feed inside a value, escaped or in
// quotes, counts as well; terapush writes none.
type Lines struct {
	n    int64
	open bool // the last line has begun and not ended
}

// Write counts in p.
func (l *Lines) Write(p []byte) {
	if len(p) == 0 {
		return
	}
	l.n += int64(bytes.Count(p, []byte{'\n'}))
	l.open = p[len(p)-1] != '\n'
}

// Rows is the number of lines.
func (l *Lines) Rows() (int64, error) {
	if l.open {
		return l.n + 1, nil
	}
	return l.n, nil
}
