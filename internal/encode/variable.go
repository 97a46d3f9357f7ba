package encode

import (
	"encoding/hex"

	"github.com/terapush/terapush/pkg/rows"
)

// quoted writes values of a variable column between two strings, byte by byte replaced where the format asks for it.
type quoted struct {
	open, close string
	maxBytes    int
	escapes     *escapes // nil: values are copied as they are
}

// escapes maps each byte to what is written for it; "" stands for the byte itself.
type escapes [256]string

// text makes a quoted value; Plain columns need no escapes in any format.
func text(c rows.Column, open, close string, escape map[byte]string) value {
	q := quoted{open: open, close: close, maxBytes: c.MaxBytes}
	if c.Plain {
		return q
	}
	q.escapes = new(escapes)
	for b, s := range escape {
		q.escapes[b] = s
	}
	return q
}

func (q quoted) max() int {
	longest := 1
	if q.escapes != nil {
		for _, s := range q.escapes {
			longest = max(longest, len(s))
		}
	}
	return len(q.open) + longest*q.maxBytes + len(q.close)
}

func (q quoted) append(dst []byte, column *rows.Vector, i int) []byte {
	v := column.Value(i)
	dst = append(dst, q.open...)
	if q.escapes == nil {
		dst = append(dst, v...)
	} else {
		dst = appendEscaped(dst, v, q.escapes)
	}
	return append(dst, q.close...)
}

func appendEscaped(dst, v []byte, e *escapes) []byte {
	copied := 0
	for i, b := range v {
		if s := e[b]; s != "" {
			dst = append(dst, v[copied:i]...)
			dst = append(dst, s...)
			copied = i + 1
		}
	}
	return append(dst, v[copied:]...)
}

// hexed writes bytes as two hexadecimal digits each, between two strings.
type hexed struct {
	open, close string
	maxBytes    int
}

func (h hexed) max() int { return len(h.open) + 2*h.maxBytes + len(h.close) }

func (h hexed) append(dst []byte, column *rows.Vector, i int) []byte {
	dst = append(dst, h.open...)
	dst = hex.AppendEncode(dst, column.Value(i))
	return append(dst, h.close...)
}
