package encode

import (
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// layout is a format: the bytes around the values, and who writes those.
type layout struct {
	format      batch.Format
	head, tail  string                                // around all rows
	between     string                                // between two rows, part of neither: a body may begin at any row
	begin, end  string                                // of every row
	afterColumn string                                // between two columns
	label       func(c rows.Column) string            // in front of every value of the column; nil = nothing
	value       func(c rows.Column, digits int) value // nil for a column that the format cannot carry
	refusal     string                                // of a text column: why, and what to do instead
}

// value writes the values of one column.
type value interface {
	// max is the most bytes that append adds.
	max() int
	// append appends value i of the column.
	append(dst []byte, column *rows.Vector, i int) []byte
}

// stamped is a value of a derived column.
type stamped interface {
	value
	// stamp rewrites what append once wrote at buf[at[0]], buf[at[stride]], buf[at[2·stride]] … with the first n values
	// of the column.
	stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int)
}

// rowEncoder is the Encoder and Stamper of all layouts.
type rowEncoder struct {
	layout
	fields  []field
	derived []int // the columns to stamp
	maxRow  int
}

type field struct {
	lead    string // what stands in front of the value
	value   value
	derived bool
}

func newRowEncoder(l layout, s rows.Schema, digits []int) *rowEncoder {
	e := &rowEncoder{layout: l, maxRow: len(l.between) + len(l.end)}
	for i, c := range s.Columns {
		f := field{lead: l.afterColumn, value: l.value(c, digits[i]), derived: c.Derived}
		if i == 0 {
			f.lead = l.begin
		}
		if l.label != nil {
			f.lead += l.label(c)
		}
		if c.Derived {
			e.derived = append(e.derived, i)
			if c.Type.Variable() {
				f.value = fixed{value: f.value, bytes: c.MaxBytes}
			}
		}
		e.maxRow += len(f.lead) + f.value.max()
		e.fields = append(e.fields, f)
	}
	return e
}

func (e *rowEncoder) Format() batch.Format         { return e.format }
func (e *rowEncoder) MaxRow() int                  { return e.maxRow }
func (e *rowEncoder) AppendHead(dst []byte) []byte { return append(dst, e.head...) }
func (e *rowEncoder) AppendTail(dst []byte) []byte { return append(dst, e.tail...) }

func (e *rowEncoder) AppendRows(dst []byte, b *rows.Block, at *Offsets) []byte {
	for i := range b.Rows {
		if len(at.Starts) > 0 {
			dst = append(dst, e.between...)
		}
		at.Starts = append(at.Starts, uint32(len(dst)))
		for c := range e.fields {
			f := &e.fields[c]
			dst = append(dst, f.lead...)
			if f.derived {
				at.Fields = append(at.Fields, uint32(len(dst)))
			}
			dst = f.value.append(dst, &b.Columns[c], i)
		}
		dst = append(dst, e.end...)
	}
	return dst
}

func (e *rowEncoder) Stamp(buf []byte, at *Offsets, from int, b *rows.Block) {
	stride := len(e.derived)
	for j, c := range e.derived {
		e.fields[c].value.(stamped).stamp(buf, at.Fields[from*stride+j:], stride, &b.Columns[c], b.Rows)
	}
}
