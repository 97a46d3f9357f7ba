package oracle

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

const microsPerDay = 24 * 60 * 60 * 1_000_000

// yearOne is time.Time{}, which godror binds as a NULL.
const yearOne = -62_135_596_800 * 1_000_000

// binds makes the arguments of one session's INSERT. Numbers, texts and bytes are views of the batch's buffer; the
// arrays of texts and bytes are filled again for each batch, so that no row allocates.
//
// They are slices of plain types, []int64, []string and [][]byte, which godror takes directly and go-ora by reflection.
// A slice of driver.Value would put every value into an interface first.
type binds struct {
	client client
	schema rows.Schema
	args   []any
	texts  [][]string // by column
	raws   [][][]byte
	times  []any
}

func newBinds(c client, s rows.Schema) *binds {
	n := len(s.Columns)
	return &binds{client: c, schema: s, texts: make([][]string, n), raws: make([][][]byte, n), times: make([]any, n)}
}

// bindError is the error of rows that cannot be bound.
type bindError struct{ reason string }

func (e *bindError) Error() string { return e.reason }

// arrays returns an array of the batch's rows for each column. They are valid until the columns are closed.
//
// All have the same length and none is empty, as no batch of columns is: go-ora takes the shortest for the number of
// rows and panics for an empty one. None is a scalar, which godror sets in the first row only.
func (a *binds) arrays(c *batch.Columns) ([]any, error) {
	a.args = a.args[:0]
	for i := range c.Vectors {
		v := &c.Vectors[i]
		length := len(v.Ints)
		if v.Type.Variable() {
			length = len(v.Ends)
		}
		if length != c.Rows {
			return nil, &bindError{fmt.Sprintf("column %s has %d values in a batch of %d rows",
				a.schema.Columns[i].Name, length, c.Rows)}
		}
		switch v.Type {
		case rows.Int64, rows.Decimal:
			a.args = append(a.args, v.Ints)
		case rows.Text:
			a.texts[i] = valuesOf(a.texts[i], v, textOf)
			a.args = append(a.args, a.texts[i])
		case rows.Bytes:
			a.raws[i] = valuesOf(a.raws[i], v, bytesOf)
			a.args = append(a.args, a.raws[i])
		case rows.Date, rows.Timestamp:
			unit := unitOf(v.Type)
			if slices.Contains(v.Ints, yearOne/unit) {
				return nil, a.unbindable(i)
			}
			a.times[i] = a.client.array(a.times[i], v.Ints, unit)
			a.args = append(a.args, a.times[i])
		}
	}
	a.args = append(a.args, a.client.options...)
	return a.args, nil
}

// row returns one value for each column, of row i of a batch.
func (a *binds) row(c *batch.Columns, i int) ([]any, error) {
	a.args = a.args[:0]
	for column := range c.Vectors {
		v := &c.Vectors[column]
		switch v.Type {
		case rows.Int64, rows.Decimal:
			a.args = append(a.args, v.Ints[i])
		case rows.Text:
			a.args = append(a.args, textOf(v.Value(i)))
		case rows.Bytes:
			a.args = append(a.args, v.Value(i))
		case rows.Date, rows.Timestamp:
			micros := v.Ints[i] * unitOf(v.Type)
			if micros == yearOne {
				return nil, a.unbindable(column)
			}
			a.args = append(a.args, a.client.one(micros))
		}
	}
	a.args = append(a.args, a.client.options...)
	return a.args, nil
}

// release drops all references to the batch's buffer, which is reused.
func (a *binds) release() {
	clear(a.args)
	for i := range a.texts {
		clear(a.texts[i])
		clear(a.raws[i])
	}
}

func (a *binds) unbindable(column int) error {
	return &bindError{fmt.Sprintf("column %s: midnight of 0001-01-01 cannot be bound, drivers take it for a NULL",
		a.schema.Columns[column].Name)}
}

// unitOf is how many microseconds a value of the type counts.
func unitOf(t rows.Type) int64 {
	if t == rows.Date {
		return microsPerDay
	}
	return 1
}

// valuesOf returns the values of a column. It reuses all.
func valuesOf[T any](all []T, v *rows.Vector, of func([]byte) T) []T {
	n := len(v.Ends)
	all = slices.Grow(all[:0], n)[:n]
	for i := range all {
		all[i] = of(v.Value(i))
	}
	return all
}

// textOf converts without a copy: a batch is not written while it is read.
func textOf(value []byte) string { return unsafe.String(unsafe.SliceData(value), len(value)) }

func bytesOf(value []byte) []byte { return value }
