package oracle

import (
	"fmt"
	"unsafe"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// microsPerDay is what a date counts in binds.
const microsPerDay = 24 * 60 * 60 * 1_000_000

// yearOne is the time that godror binds as a NULL: time.Time{}.
const yearOne = -62_135_596_800 * 1_000_000

// binds turns batches into what a driver binds, on one session. Numbers, texts and bytes are views of the batch's buffer;
// the arrays of texts and bytes hold pointers into it and are filled anew for each batch, so that no row allocates.
//
// They go to the driver as slices of plain types, []int64, []string and [][]byte, which godror reads as they are and
// go-ora by reflection. A slice of driver.Value would put every value into a box of its own before the driver does.
type binds struct {
	client  client
	schema  rows.Schema
	args    []any
	texts   [][]string // by column
	raws    [][][]byte
	moments []any
}

func newBinds(c client, s rows.Schema) *binds {
	n := len(s.Columns)
	return &binds{client: c, schema: s, texts: make([][]string, n), raws: make([][][]byte, n), moments: make([]any, n)}
}

// bindError says that rows cannot be bound as they are.
type bindError struct{ reason string }

func (e *bindError) Error() string { return e.reason }

// arrays are the wanted rows of a batch, one array for each column, all of the same length and never empty. They live
// until the columns are closed.
//
// Both matter: go-ora takes the shortest array for the number of rows and panics for an empty one, and godror sets a value
// that is no array in the first row only.
func (a *binds) arrays(c *batch.Columns) ([]any, error) {
	n := c.Rows - c.From
	if n < 1 {
		return nil, &bindError{"no rows are wanted of the batch"}
	}
	a.args = a.args[:0]
	for i := range c.Vectors {
		v := &c.Vectors[i]
		length := len(v.Ints)
		if v.Type.Variable() {
			length = len(v.Ends)
		}
		if length != c.Rows {
			return nil, &bindError{fmt.Sprintf("column %s has %d values in a batch of %d rows", a.schema.Columns[i].Name, length, c.Rows)}
		}
		switch v.Type {
		case rows.Int64, rows.Decimal:
			a.args = append(a.args, v.Ints[c.From:])
		case rows.Text:
			a.texts[i] = valuesOf(a.texts[i], v, c.From, textOf)
			a.args = append(a.args, a.texts[i])
		case rows.Bytes:
			a.raws[i] = valuesOf(a.raws[i], v, c.From, bytesOf)
			a.args = append(a.args, a.raws[i])
		case rows.Date, rows.Timestamp:
			values, unit := v.Ints[c.From:], unitOf(v.Type)
			for _, value := range values {
				if value*unit == yearOne {
					return nil, a.noMoment(i)
				}
			}
			a.moments[i] = a.client.array(a.moments[i], values, unit)
			a.args = append(a.args, a.moments[i])
		}
	}
	a.args = append(a.args, a.client.options...)
	return a.args, nil
}

// row is row i of a batch, one value for each column.
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
				return nil, a.noMoment(column)
			}
			a.args = append(a.args, a.client.moment(micros))
		}
	}
	a.args = append(a.args, a.client.options...)
	return a.args, nil
}

// release lets go of the batch's buffer, which will be filled anew.
func (a *binds) release() {
	clear(a.args)
	for i := range a.texts {
		clear(a.texts[i])
		clear(a.raws[i])
	}
}

func (a *binds) noMoment(column int) error {
	return &bindError{fmt.Sprintf("column %s: midnight of 0001-01-01 cannot be bound, drivers take it for a NULL",
		a.schema.Columns[column].Name)}
}

// unitOf is the microseconds that a value of the type counts.
func unitOf(t rows.Type) int64 {
	if t == rows.Date {
		return microsPerDay
	}
	return 1
}

// valuesOf are the values of a column from a row on, in all where there is room.
func valuesOf[T any](all []T, v *rows.Vector, from int, of func([]byte) T) []T {
	n := len(v.Ends) - from
	if cap(all) < n {
		all = make([]T, n)
	}
	all = all[:n]
	for i := range all {
		all[i] = of(v.Value(from + i))
	}
	return all
}

// textOf is the bytes as a text without a copy: nobody writes to a batch that is being read.
func textOf(value []byte) string { return unsafe.String(unsafe.SliceData(value), len(value)) }

func bytesOf(value []byte) []byte { return value }
