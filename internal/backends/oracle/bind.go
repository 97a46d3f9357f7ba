package oracle

import (
	"database/sql"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unsafe"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

const microsPerDay = 24 * 60 * 60 * 1_000_000

// yearOne is time.Time{}, which godror binds as a NULL.
const yearOne = -62_135_596_800 * 1_000_000

// The bits of −0, of which the server makes 0 (SQL Language Reference, "Floating-Point Numbers").
const minusZero, minusZero32 = math.MinInt64, 1 << 31

// nan and nan32 are the bits of a NaN, which stands for a NULL: no value is one.
const nan, nan32 = 0x7FF8_0000_0000_0000, 0x7FC0_0000

// binds makes the arguments of one session's INSERT. Numbers, texts and bytes are views of the batch's buffer; all
// other arrays are filled again for each batch, so that no row allocates.
//
// They are slices of plain types, []int64, []string and [][]byte, which godror takes directly and go-ora by reflection.
// A slice of driver.Value would put every value into an interface first. A NULL is an empty text or an empty RAW, which
// both drivers send as the server reads it; whole numbers with a NULL in the batch are []sql.NullInt64.
type binds struct {
	client  client
	schema  rows.Schema
	args    []any
	columns []scratch
}

// scratch is the memory for the arrays of one column.
type scratch struct {
	ints  []sql.NullInt64
	texts []string
	raws  [][]byte
	times any
	made  []byte // texts and raw values that are not in the batch
}

func newBinds(c client, s rows.Schema) *binds {
	return &binds{client: c, schema: s, columns: make([]scratch, len(s.Columns))}
}

// bindError is the error of rows that cannot be bound.
type bindError struct{ reason string }

func (e *bindError) Error() string { return e.reason }

// check returns an error if a value would become another one on its way, or none.
func (a *binds) check(c *batch.Columns) error {
	for i := range c.Vectors {
		v, name := &c.Vectors[i], a.schema.Columns[i].Name
		if n := length(v); n != c.Rows {
			return &bindError{fmt.Sprintf("column %s has %d values in a batch of %d rows", name, n, c.Rows)}
		}
		if why := unbindable(a.schema.Columns[i], v); why != "" {
			return &bindError{"column " + name + ": " + why}
		}
	}
	return nil
}

// arrays returns an array of the batch's rows for each column. They are valid until the columns are closed.
//
// All have the same length and none is empty, as no batch of columns is: go-ora takes the shortest for the number of
// rows and panics for an empty one. None is a scalar, which godror sets in the first row only.
func (a *binds) arrays(c *batch.Columns) []any {
	a.args = a.args[:0]
	for i := range c.Vectors {
		a.args = append(a.args, a.columns[i].array(&c.Vectors[i], &a.client))
	}
	a.args = append(a.args, a.client.options...)
	return a.args
}

// row returns one value for each column, of row i of a batch. They are valid until the next call.
func (a *binds) row(c *batch.Columns, i int) []any {
	a.args = a.args[:0]
	for column := range c.Vectors {
		a.args = append(a.args, a.columns[column].one(&c.Vectors[column], i, &a.client))
	}
	a.args = append(a.args, a.client.options...)
	return a.args
}

// release drops all references to the batch's buffer, which is reused.
func (a *binds) release() {
	clear(a.args)
	for i := range a.columns {
		clear(a.columns[i].texts)
		clear(a.columns[i].raws)
	}
}

// form is what a type is bound as.
type form int

const (
	numbers form = iota
	texts
	raws
	times
)

func formOf(t rows.Type) form {
	switch t {
	case rows.Bytes, rows.Float64, rows.Float32:
		return raws
	case rows.Date, rows.Timestamp:
		return times
	case rows.UUID, rows.Wide, rows.Uint64:
		return texts
	}
	if t.IsText() {
		return texts
	}
	return numbers
}

// array returns the values of a column.
func (s *scratch) array(v *rows.Vector, c *client) any {
	s.made = s.made[:0]
	switch formOf(v.Type) {
	case raws:
		s.raws = valuesOf(s.raws, v, s.raw)
		return s.raws
	case texts:
		s.texts = valuesOf(s.texts, v, s.text)
		return s.texts
	case times:
		s.times = c.timesOf(v).array(s.times, v, unitOf(v.Type))
		return s.times
	}
	if v.CountNulls() == 0 {
		return v.Ints
	}
	s.ints = valuesOf(s.ints, v, func(v *rows.Vector, i int) sql.NullInt64 {
		return sql.NullInt64{Int64: v.Ints[i], Valid: !v.IsNull(i)}
	})
	return s.ints
}

// one returns value i of a column.
func (s *scratch) one(v *rows.Vector, i int, c *client) any {
	s.made = s.made[:0]
	switch formOf(v.Type) {
	case raws:
		return s.raw(v, i)
	case texts:
		return s.text(v, i)
	case times:
		return c.timesOf(v).one(v, i, unitOf(v.Type))
	}
	if v.IsNull(i) {
		return sql.NullInt64{} // nil would be a text
	}
	return v.Ints[i]
}

func (s *scratch) raw(v *rows.Vector, i int) []byte {
	if v.Type == rows.Bytes {
		return v.Value(i)
	}
	return s.put(v, i)
}

func (s *scratch) text(v *rows.Vector, i int) string {
	if v.Type.IsText() {
		return textOf(v.Value(i))
	}
	return textOf(s.put(v, i))
}

// textOf converts without a copy: neither a batch nor what is made of it is written while it is read.
func textOf(value []byte) string { return unsafe.String(unsafe.SliceData(value), len(value)) }

// put makes the text or the RAW of which statements.insert makes the value. That of a NULL is empty, or a NaN.
func (s *scratch) put(v *rows.Vector, i int) []byte {
	from := len(s.made)
	switch isNull := v.IsNull(i); {
	case isNull && v.Type == rows.Float64:
		s.made = binary.BigEndian.AppendUint64(s.made, nan)
	case isNull && v.Type == rows.Float32:
		s.made = binary.BigEndian.AppendUint32(s.made, nan32)
	case isNull:
	case v.Type == rows.UUID:
		s.made = rows.AppendUUID(s.made, v.UUID(i))
	case v.Type == rows.Wide:
		s.made = rows.AppendWideText(s.made, v.UUID(i), 0)
	case v.Type == rows.Uint64:
		s.made = strconv.AppendUint(s.made, uint64(v.Ints[i]), 10)
	case v.Type == rows.Float64:
		s.made = binary.BigEndian.AppendUint64(s.made, uint64(v.Ints[i]))
	case v.Type == rows.Float32:
		s.made = binary.BigEndian.AppendUint32(s.made, uint32(v.Ints[i]))
	}
	return s.made[from:]
}

// length is how many values a vector has.
func length(v *rows.Vector) int {
	switch {
	case v.Type.Variable():
		return len(v.Ends)
	case v.Type.InBytes():
		return len(v.Data) / rows.UUIDBytes
	default:
		return len(v.Ints)
	}
}

// unbindable says why a value of a column would become another one; "" if none would.
func unbindable(c rows.Column, v *rows.Vector) string {
	switch {
	case v.Type == rows.Float64 && slices.Contains(v.Ints, minusZero),
		v.Type == rows.Float32 && slices.Contains(v.Ints, minusZero32):
		return "−0 cannot be bound, the server makes 0 of it: write 0"
	case formOf(v.Type) == times && slices.Contains(v.Ints, yearOne/unitOf(v.Type)):
		return "midnight of 0001-01-01 cannot be bound, drivers take it for a NULL"
	case c.Nullable && v.Type.Variable() && hasEmpty(v):
		return "some values are NULL and others are empty, and the server stores both as NULL: " +
			"give them a length of 1 or more, or remove nulls"
	}
	return ""
}

// hasEmpty reports whether a value is empty that is not NULL.
func hasEmpty(v *rows.Vector) bool {
	last := uint32(0)
	for i, end := range v.Ends {
		if end == last && !v.IsNull(i) {
			return true
		}
		last = end
	}
	return false
}

// unitOf is how many microseconds a value of the type counts.
func unitOf(t rows.Type) int64 {
	if t == rows.Date {
		return microsPerDay
	}
	return 1
}

// valuesOf returns what is bound of a column. It reuses all.
func valuesOf[T any](all []T, v *rows.Vector, of func(v *rows.Vector, i int) T) []T {
	n := length(v)
	all = slices.Grow(all[:0], n)[:n]
	for i := range all {
		all[i] = of(v, i)
	}
	return all
}
