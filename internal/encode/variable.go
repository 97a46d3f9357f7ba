package encode

import (
	"encoding/hex"
	"fmt"

	"github.com/terapush/terapush/pkg/rows"
)

// text returns the writer of a variable column, between two delimiters and with escapes. Plain columns need no escapes in
// any format.
func text(c rows.Column, open, close string, escape map[byte]string) writer {
	if c.Plain {
		return enclosed{open, close, &raw{c.MaxBytes}}
	}
	return enclosed{open, close, &escaped{maxBytes: c.MaxBytes, escapes: newEscapes(escape)}}
}

// raw writes values as they are.
type raw struct{ maxBytes int }

func (r *raw) max() int { return r.maxBytes }

func (r *raw) append(dst []byte, column *rows.Vector, i int) []byte {
	return append(dst, column.Value(i)...)
}

// escaped writes values with some of their bytes replaced.
type escaped struct {
	maxBytes int
	escapes  *escapes
}

// escapes maps each byte to its escape; "" is none.
type escapes [256]string

func newEscapes(escape map[byte]string) *escapes {
	e := new(escapes)
	for b, s := range escape {
		e[b] = s
	}
	return e
}

func (e *escaped) max() int {
	longest := 1
	for _, s := range e.escapes {
		longest = max(longest, len(s))
	}
	return longest * e.maxBytes
}

func (e *escaped) append(dst []byte, column *rows.Vector, i int) []byte {
	return appendEscaped(dst, column.Value(i), e.escapes)
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

// hexed writes bytes as two hexadecimal digits each.
type hexed struct{ maxBytes int }

func (h *hexed) max() int { return 2 * h.maxBytes }

func (h *hexed) append(dst []byte, column *rows.Vector, i int) []byte {
	return hex.AppendEncode(dst, column.Value(i))
}

// fixed writes a derived column of a variable type. Its values have one length and need no escapes, so each can replace
// any other; the value writer overwrites nothing after them.
type fixed struct {
	value value
	bytes int
}

func (f fixed) max() int { return f.value.max() }

func (f fixed) stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int) {
	for i := range n {
		if n := len(column.Value(i)); n != f.bytes {
			panic(fmt.Sprintf("encode: %d bytes in a derived column of which every value has %d", n, f.bytes))
		}
		f.value.append(buf[:at[i*stride]], column, i)
	}
}
