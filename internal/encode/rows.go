package encode

import (
	"encoding/binary"
	"slices"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// layout is a format: the bytes around the values, and the values' writers.
type layout struct {
	format      batch.Format
	head, tail  string                                 // around all rows
	between     string                                 // separates rows
	begin, end  string                                 // of every row
	afterColumn string                                 // between two columns
	null        string                                 // a NULL, without delimiters
	label       func(c rows.Column) string             // before every value of the column; may be nil
	value       func(c rows.Column, digits int) writer // nil for a column that the format cannot carry
	refusal     string                                 // why it refuses a text column, and what to do instead
}

// writer writes the values of one column: it is a value for a drawn column, a stamped for a derived one.
type writer interface {
	// max is the most bytes of a value, and the length of all values of a derived column.
	max() int
}

// value writes the values of a drawn column. It is a pointer: an interface calls a method of a struct by way of a wrapper.
type value interface {
	writer
	// append appends value i of the column. It may overwrite dst's capacity after the value.
	append(dst []byte, column *rows.Vector, i int) []byte
}

// stamped writes the values of a derived column.
type stamped interface {
	writer
	// stamp writes the first n values of the column at buf[at[0]], buf[at[stride]], buf[at[2·stride]] … and nothing else.
	stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int)
}

// enclosed is a writer with delimiters, which the loop writes together with the column separators.
type enclosed struct {
	open, close string
	writer
}

// rowEncoder is the Encoder and Stamper of all layouts.
type rowEncoder struct {
	layout
	fields  []field
	derived []int    // the columns to stamp
	comma   constant // between two rows
	close   constant // after the last value
	maxRow  int
}

// field is a column: either value or stamped is set.
type field struct {
	lead    constant // what precedes the value
	value   value
	stamped stamped
	bytes   int // of a stamped value
}

func newRowEncoder(l layout, s rows.Schema, digits []int) *rowEncoder {
	e := &rowEncoder{layout: l, comma: newConstant(l.between), maxRow: len(l.between)}
	lead := l.begin
	for i, c := range s.Columns {
		if i > 0 {
			lead += l.afterColumn
		}
		if l.label != nil {
			lead += l.label(c)
		}
		w, behind := l.value(c, digits[i]), ""
		around, is := w.(enclosed)
		if !is {
			around.writer = w
		}
		switch {
		case c.Nullable:
			w = withNull(w, l.null)
		case is:
			lead += around.open
			w, behind = around.writer, around.close
		}
		f := field{lead: newConstant(lead)}
		if c.Derived {
			if c.Type.Variable() {
				w = fixed{value: w.(value), bytes: c.MaxBytes}
			}
			f.stamped, f.bytes = w.(stamped), w.max()
			e.derived = append(e.derived, i)
		} else {
			f.value = w.(value)
		}
		e.maxRow += len(lead) + w.max()
		e.fields = append(e.fields, f)
		lead = behind
	}
	e.close = newConstant(lead + l.end)
	e.maxRow += len(e.close.text)
	return e
}

func (e *rowEncoder) Format() batch.Format         { return e.format }
func (e *rowEncoder) MaxRow() int                  { return e.maxRow }
func (e *rowEncoder) AppendHead(dst []byte) []byte { return append(dst, e.head...) }
func (e *rowEncoder) AppendTail(dst []byte) []byte { return append(dst, e.tail...) }

// AppendRows leaves room for the derived fields and then stamps them, which is faster than writing them one by one.
func (e *rowEncoder) AppendRows(dst []byte, b *rows.Block, at *Offsets) []byte {
	from := at.Rows
	for i := range b.Rows {
		if from+i > 0 {
			dst = e.comma.append(dst)
		}

		for c := range e.fields {
			f := &e.fields[c]
			dst = f.lead.append(dst)
			if f.stamped != nil {
				at.Fields = append(at.Fields, uint32(len(dst)))
				dst = extend(dst, f.bytes)
				continue
			}
			dst = f.value.append(dst, &b.Columns[c], i)
		}
		dst = e.close.append(dst)
	}

	at.Rows += b.Rows
	e.Stamp(dst, at, from, b)
	return dst
}

func (e *rowEncoder) Stamp(buf []byte, at *Offsets, from int, b *rows.Block) {
	stride := len(e.derived)
	for j, c := range e.derived {
		if b.Rows > 0 {
			e.fields[c].stamped.stamp(buf, at.Fields[from*stride+j:], stride, &b.Columns[c], b.Rows)
		}
	}
}

// constant is a text that is written in every row.
type constant struct {
	text string
	word uint64 // the text in the lowest bytes, if it has at most 8
}

func newConstant(text string) constant {
	c := constant{text: text}
	for i := range min(len(text), 8) {
		c.word |= uint64(text[i]) << (8 * i)
	}
	return c
}

// append writes a short text as one word, whose rest is overwritten later: copying a few bytes, of a number unknown to the
// compiler, takes three times as long, and a row of small numbers consists of little else.
func (c *constant) append(dst []byte) []byte {
	n := len(dst)
	if len(c.text) <= 8 && cap(dst)-n >= 8 {
		binary.LittleEndian.PutUint64(dst[n:n+8], c.word)
		return dst[:n+len(c.text)]
	}
	return append(dst, c.text...)
}

// extend makes dst longer by n bytes of undefined content.
func extend(dst []byte, n int) []byte {
	if cap(dst)-len(dst) < n {
		dst = slices.Grow(dst, n)
	}
	return dst[:len(dst)+n]
}
