package batch

import (
	"fmt"
	"unsafe"

	"github.com/terapush/terapush/pkg/rows"
)

// Columns are the arrays of a batch whose format is columns, for drivers that bind arrays. Like a Body it keeps the
// buffer until it is closed, and is used by one goroutine.
//
// Such a batch holds first, in the schema's order, n fixed values of each column: an int64 for what rows.Vector keeps in
// Ints, for a UUID its 16 bytes, and for a variable column the uint32 end of its value; each column's begin at a multiple
// of 8. Behind those of a nullable column are the words of rows.Vector.Nulls. Then, in the same order, come the values of
// every variable column, back to back and with nothing in between. The numbers are in the machine's own byte order, since
// they never leave the process.
type Columns struct {
	// Vectors are views of the buffer, one for each column of the schema. They must not be written to or used after Close.
	Vectors []rows.Vector
	// Rows is the number of rows in the vectors.
	Rows int

	batch *Batch
}

// Columns returns the arrays of a batch that was encoded with the schema. The caller must close them once the driver
// can no longer read from them.
func (b *Batch) Columns(s rows.Schema) (*Columns, error) {
	n := int(b.Rows)
	if b.Format != ColumnArrays {
		return nil, fmt.Errorf("batch: %s is encoded as %s, not as columns", b.ID, b.Format)
	}
	if n < 1 {
		return nil, fmt.Errorf("batch: %s is of columns and has no rows", b.ID)
	}
	places, data := ColumnPlaces(s, n)
	if len(b.Encoded) < data {
		return nil, fmt.Errorf("batch: %s has %d bytes, too few for %d rows of %s", b.ID, len(b.Encoded), n, s.Dataset)
	}
	if uintptr(unsafe.Pointer(&b.Encoded[0]))%word != 0 {
		return nil, fmt.Errorf("batch: %s begins at no multiple of %d bytes, so its numbers cannot be read in place", b.ID, word)
	}
	c := &Columns{Vectors: make([]rows.Vector, len(s.Columns)), Rows: n, batch: b}
	for i, column := range s.Columns {
		v := &c.Vectors[i]
		v.Type = column.Type
		at := unsafe.Pointer(&b.Encoded[places[i]])
		if column.Nullable {
			nulls := unsafe.Pointer(&b.Encoded[places[i]+ColumnNulls(column, n)])
			v.Nulls = unsafe.Slice((*uint64)(nulls), NullBytes(n)/word)
		}
		switch {
		case column.Type.InBytes():
			v.Data = b.Encoded[places[i]:][: n*rows.UUIDBytes : n*rows.UUIDBytes]
			continue
		case !column.Type.Variable():
			v.Ints = unsafe.Slice((*int64)(at), n)
			continue
		}
		v.Ends = unsafe.Slice((*uint32)(at), n)
		end := data + int(v.Ends[n-1])
		if end > len(b.Encoded) {
			return nil, fmt.Errorf("batch: %s ends within the values of column %s", b.ID, column.Name)
		}
		v.Data = b.Encoded[data:end:end]
		data = end
	}
	if data < len(b.Encoded) {
		return nil, fmt.Errorf("batch: %s has %d bytes after %d rows of %s", b.ID, len(b.Encoded)-data, n, s.Dataset)
	}
	b.Hold()
	b.sent.Store(0)
	return c, nil
}

// Passed notes that the driver has sent the rows before this one, for Batch.Sent. At Rows it calls Batch.AllRead, once.
func (c *Columns) Passed(row int) {
	if c.batch == nil {
		return
	}

	all := int64(len(c.batch.Encoded))
	was := c.batch.sent.Swap(all * int64(row) / int64(c.Rows))
	if row == c.Rows && was < all && c.batch.AllRead != nil {
		c.batch.AllRead()
	}
}

// Close releases the batch; a second Close does nothing.
func (c *Columns) Close() error {
	if c.batch != nil {
		c.Vectors = nil
		c.batch.Release()
		c.batch = nil
	}
	return nil
}

// word is the alignment of columns: the size of a number.
const word = 8

// ColumnPlaces returns where in a batch of columns the n fixed values of each column begin, and where the first
// variable column's values do, in bytes from the batch's start.
func ColumnPlaces(s rows.Schema, n int) (places []int, data int) {
	for _, c := range s.Columns {
		places = append(places, data)
		data += ColumnBytes(c, n)
	}
	return places, data
}

// ColumnBytes returns the bytes of n fixed values of a column, with padding, and of its NULLs.
func ColumnBytes(c rows.Column, n int) int {
	bytes := ColumnNulls(c, n)
	if c.Nullable {
		bytes += NullBytes(n)
	}
	return bytes
}

// ColumnNulls returns the bytes of n fixed values of a column, with padding, after which its NULLs are.
func ColumnNulls(c rows.Column, n int) int {
	width := word
	switch {
	case c.Type.Variable():
		width = word / 2
	case c.Type.InBytes():
		width = rows.UUIDBytes
	}
	return (n*width + word - 1) / word * word
}

// NullBytes returns the bytes that say which of n rows are NULL.
func NullBytes(n int) int { return (n + 63) / 64 * word }
