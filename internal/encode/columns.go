package encode

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// columns keeps the values of a column together, as drivers bind them; batch.Columns documents the layout and reads it.
// It carries every type but vectors and arrays, and a block's columns become the batch's by copying, but for which rows are NULL.
//
// As in parquet, the number of rows is known in advance: every fixed value is written to its final position, and the values
// of a variable column to where they would be if all before them had the maximum length. The tail closes the gaps; if all
// values have that length, as those of a payload do, nothing moves.
//
// Unlike parquet's, the derived fields can be stamped. The positions of fixed values follow from the number of rows. A
// derived text has values of one length and follows the variable columns before it, whose last ends are their lengths. So
// Offsets has only the number of rows, and stamping is copying.
type columns struct {
	schema rows.Schema
	maxRow int
}

// columnWidth returns the most bytes of a row in the column; 0 for a type that columns cannot carry.
func columnWidth(c rows.Column) int {
	width := 8
	switch {
	case c.Type.IsList():
		return 0
	case c.Type.Variable():
		width = 4 + c.MaxBytes
	case c.Type.InBytes():
		width = rows.UUIDBytes
	case c.Type.Size() == 0:
		return 0
	}
	if c.Nullable {
		width++ // a bit
	}
	return width
}

func newColumns(s rows.Schema) *columns {
	e := &columns{schema: s}
	for _, c := range s.Columns {
		e.maxRow += columnWidth(c)
	}
	return e
}

func (e *columns) Format() batch.Format { return batch.ColumnArrays }
func (e *columns) MaxRow() int          { return e.maxRow }

func (e *columns) MaxBytes(n int64) int64 {
	bytes := e.fixedBytes(int(n))
	for _, c := range e.schema.Columns {
		bytes += int(n) * c.MaxBytes
	}
	return int64(bytes)
}

// fixedBytes returns the length of the fixed values of n rows, after which the first variable column's values begin.
func (e *columns) fixedBytes(n int) int {
	bytes := 0
	for _, c := range e.schema.Columns {
		bytes += batch.ColumnBytes(c, n)
	}
	return bytes
}

func (e *columns) AppendHead(dst []byte) []byte { return dst }

func (e *columns) AppendRows([]byte, *rows.Block, *Offsets) []byte { panic(onlyAPlanOfColumns) }
func (e *columns) AppendTail([]byte) []byte                        { panic(onlyAPlanOfColumns) }

const onlyAPlanOfColumns = "encode: columns are made by the encoder that ForBatch returns"

func (e *columns) ForBatch(n int) Encoder {
	w := &columnsWriter{columns: e, rows: n, size: e.fixedBytes(n), places: make([]columnPlace, len(e.schema.Columns))}
	fixed := 0
	for i, c := range e.schema.Columns {
		w.places[i] = columnPlace{fixed: fixed, start: w.size, end: w.size}
		fixed += batch.ColumnBytes(c, n)
		w.size += n * c.MaxBytes
	}
	return w
}

// columnsWriter makes one batch.
type columnsWriter struct {
	*columns
	rows   int // of the batch
	given  int // so far
	size   int // of the buffer, if all values have the maximum length
	places []columnPlace
}

// columnPlace is the position of a column in the buffer.
type columnPlace struct {
	fixed      int // its fixed values
	start, end int // the values of a variable one that are written
}

// AppendRows makes dst as long as the columns can become. What is not written yet is undefined until AppendTail.
func (w *columnsWriter) AppendRows(dst []byte, b *rows.Block, at *Offsets) []byte {
	if w.given+b.Rows > w.rows {
		panic(fmt.Sprintf("encode: %d rows for columns of %d", w.given+b.Rows, w.rows))
	}
	if len(dst) < w.size {
		dst = slices.Grow(dst, w.size-len(dst))[:w.size]
	}
	at.Rows = w.rows
	if b.Rows == 0 {
		return dst
	}
	for i, c := range w.schema.Columns {
		v, p := &b.Columns[i], &w.places[i]
		if c.Nullable {
			w.putNulls(dst[p.fixed+batch.ColumnNulls(c, w.rows):], v, b.Rows)
		}
		if !c.Type.Variable() {
			copyFixed(dst[p.fixed:], c, w.given, v, b.Rows)
			continue
		}
		checkLengths(c, v, b.Rows)
		written := uint32(p.end - p.start)
		to := dst[p.fixed+4*w.given:]
		for row, end := range v.Ends[:b.Rows] {
			binary.NativeEndian.PutUint32(to[4*row:], written+end)
		}
		p.end += copy(dst[p.end:], v.Data[:v.Ends[b.Rows-1]])
	}
	w.given += b.Rows
	return dst
}

// putNulls sets the bits of the block's NULLs behind those of the rows before it.
func (w *columnsWriter) putNulls(to []byte, v *rows.Vector, n int) {
	if w.given == 0 {
		clear(to[:batch.NullBytes(w.rows)])
	}
	for i := range n {
		if row := w.given + i; v.IsNull(i) {
			word := to[row/64*8:]
			binary.NativeEndian.PutUint64(word, binary.NativeEndian.Uint64(word)|1<<(row%64))
		}
	}
}

// checkLengths panics if a column would exceed its place.
func checkLengths(c rows.Column, v *rows.Vector, n int) {
	if c.Derived {
		checkOneLength(c, v, n)
		return
	}
	last := uint32(0)
	for _, end := range v.Ends[:n] {
		if end-last > uint32(c.MaxBytes) {
			panic(fmt.Sprintf("encode: a value of column %s is longer than %d bytes", c.Name, c.MaxBytes))
		}
		last = end
	}
}

// AppendTail closes the gaps between variable columns, and clears 4 bytes of padding after ends if there are any, so that
// equal rows have equal bytes.
func (w *columnsWriter) AppendTail(dst []byte) []byte {
	if w.given != w.rows {
		panic(fmt.Sprintf("encode: columns of %d rows were given %d", w.rows, w.given))
	}
	end := w.fixedBytes(w.rows)
	for i, c := range w.schema.Columns {
		if !c.Type.Variable() {
			continue
		}
		p := &w.places[i]
		clear(dst[p.fixed+4*w.rows : p.fixed+batch.ColumnNulls(c, w.rows)])
		if p.start != end {
			copy(dst[end:], dst[p.start:p.end])
		}
		end += p.end - p.start
	}
	return dst[:end]
}

func (e *columns) Stamp(buf []byte, at *Offsets, from int, b *rows.Block) {
	n := at.Rows
	if from+b.Rows > n {
		panic(fmt.Sprintf("encode: rows to %d of columns of %d", from+b.Rows, n))
	}
	fixed, values := 0, e.fixedBytes(n)
	for i, c := range e.schema.Columns {
		v := &b.Columns[i]
		switch {
		case !c.Type.Variable():
			if c.Derived {
				copyFixed(buf[fixed:], c, from, v, b.Rows)
			}
		case c.Derived:
			checkOneLength(c, v, b.Rows)
			copy(buf[values+from*c.MaxBytes:], v.Data[:b.Rows*c.MaxBytes])
			values += n * c.MaxBytes
		default:
			values += int(binary.NativeEndian.Uint32(buf[fixed+4*(n-1):]))
		}
		fixed += batch.ColumnBytes(c, n)
	}
}

// copyFixed writes n numbers, days or microseconds in the machine's byte order, or UUIDs, from a row of the column at dst on.
// Drivers turn them into a database's dates, times and decimals, so they are checked as in text formats.
func copyFixed(dst []byte, c rows.Column, from int, v *rows.Vector, n int) {
	if c.Type.InBytes() {
		for i := range n {
			if c.Type == rows.Wide {
				checkWide(v.UUID(i), rows.WideDigits-c.Digits)
			}
		}
		copy(dst[rows.UUIDBytes*from:], v.Data[:rows.UUIDBytes*n])
		return
	}

	values := v.Ints[:n]
	switch c.Type {
	case rows.Int16, rows.Int32, rows.Uint16, rows.Uint32:
		for _, v := range values {
			checkWidth(c.Type, v)
		}
	case rows.Bool:
		for _, v := range values {
			checkBool(v)
		}
	case rows.Float32:
		for _, v := range values {
			checkFloat32(v)
		}
	case rows.Float64:
		for _, v := range values {
			checkFloat64(v)
		}
	case rows.Date:
		for _, v := range values {
			checkDate(v)
		}
	case rows.Timestamp, rows.TimestampTZ:
		for _, v := range values {
			checkTime(v)
		}
	case rows.Time:
		for _, v := range values {
			checkClock(v)
		}
	case rows.Decimal:
		most := powerOfTen(c.Digits) - 1
		for _, v := range values {
			magnitude(v, most)
		}
	}
	copy(dst[8*from:][:8*n], unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 8*n))
}

// checkOneLength panics if values of a derived text have another length than its column, and could not be stamped.
func checkOneLength(c rows.Column, v *rows.Vector, n int) {
	for i, end := range v.Ends[:n] {
		if int(end) != (i+1)*c.MaxBytes {
			panic(fmt.Sprintf("encode: %d bytes in a derived column of which every value has %d", len(v.Value(i)), c.MaxBytes))
		}
	}
}
