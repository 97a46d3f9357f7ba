package encode

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// parquet makes a whole Parquet file of every batch (the format's specification: apache/parquet-format, README.md,
// parquet.thrift, Encodings.md and LogicalTypes.md): one row group, every column written as data pages of version 1 in the
// PLAIN encoding, uncompressed, without dictionaries, statistics or indexes, which do not pay for random values. Columns are
// required, but for those with NULLs: the values of their pages come after one bit a row, which is 0 for a NULL. Of vectors and
// arrays see parquet_lists.go.
//
// A file keeps the values of a column together, while a batch is made of rows, a piece at a time. A library's writer does
// not know how many rows will come, and has to keep a second copy of the batch until the row group is complete. Here the
// number is known: every column has its place in the buffer, and values are written to their final position at the speed
// of a copy. parquet-go writes the rest (parquet_meta.go), in some 90 KB for a file of 23 columns and 8 MiB. If values are
// shorter than the schema allows, the tail closes the gaps with one move of each column.
//
// A derived field has one length and is never NULL, so its place follows from where its column begins, which Offsets keep, and from the
// pages before. Pages have no checksum and columns no statistics that a stamp would have to change.
type parquet struct {
	schema  rows.Schema
	columns []parquetColumn
	maxRow  int
	footer  int // most bytes of the metadata
}

// parquetColumn is the plan of one column.
type parquetColumn struct {
	rows.Column
	width    int // most bytes of a value; 1 of a Bool, which has a bit
	pageRows int // rows of every page but the last
	header   int // most bytes of the header of such a page
	fixed    int // of them, those that are the same in every page
	list     *parquetList
}

const (
	parquetMagic = "PAR1"
	// pageBytes is the size of a page, unless one value is longer. It is parquet-mr's: small enough for a reader that
	// decodes page by page, large enough for headers of some 30 bytes.
	pageBytes = 1 << 20
)

// parquetWidth returns the most bytes of a value in the PLAIN encoding, 0 for a type that the format cannot carry. Numbers
// are little-endian, variable values follow a length of 4 bytes.
func parquetWidth(c rows.Column) int {
	switch {
	case c.Type.IsList():
		return newParquetList(c).width()
	case c.Type.Variable():
		return 4 + c.MaxBytes
	case c.Type == rows.UUID:
		return 4 + uuidBytes // its text: readers that know the logical type UUID are few
	case c.Type == rows.Int16 || c.Type == rows.Uint16:
		return 4
	default:
		return int(c.Type.Size())
	}
}

func newParquet(s rows.Schema) *parquet {
	p := &parquet{schema: s, footer: len(parquetFooter(s.Columns, nil, 1<<32))}
	for _, c := range s.Columns {
		width := parquetWidth(c)
		column := parquetColumn{Column: c, width: width, pageRows: max(pageBytes/width, 1)}
		if c.Type.IsList() {
			column.list = newParquetList(c)
		}
		column.header = len(pageHeader(column.entries(column.pageRows), column.most(column.pageRows)))
		column.fixed = column.header - column.varying(column.pageRows)
		p.columns = append(p.columns, column)
		p.maxRow += width
	}
	return p
}

func (p *parquet) Format() batch.Format { return batch.Parquet }
func (p *parquet) MaxRow() int          { return p.maxRow }

func (p *parquet) MaxBytes(n int64) int64 {
	bytes := int64(len(parquetMagic) + p.footer + 4 + len(parquetMagic))
	for _, c := range p.columns {
		bytes += c.chunkBytes(n)
	}
	return bytes
}

// chunkBytes returns the most bytes of n values with their pages' headers.
func (c *parquetColumn) chunkBytes(n int64) int64 {
	whole, rest := n/int64(c.pageRows), int(n%int64(c.pageRows))
	levels := whole*int64(c.levels(c.pageRows)) + int64(c.levels(rest))
	return n*int64(c.width) + levels + whole*int64(c.header) + int64(c.headerOf(rest))
}

// most returns the most bytes of a page of n rows, without its header.
func (c *parquetColumn) most(n int) int { return n*c.width + c.levels(n) }

// levels returns the bytes before the values of a page of n rows that say which are NULL: their number, and one bit-packed
// run of groups of eight rows. Of lists it is what does not grow with the rows.
func (c *parquetColumn) levels(n int) int {
	if n > 0 && c.list != nil {
		return c.list.levels(n)
	}
	if !c.Nullable || n == 0 {
		return 0
	}
	groups := (n + 7) / 8
	return 4 + len(binary.AppendUvarint(nil, runOf(groups))) + groups
}

// runOf is the header of a bit-packed run of so many groups.
func runOf(groups int) uint64 { return uint64(groups)<<1 | 1 }

// headerOf returns the room for the header of a page of n rows.
func (c *parquetColumn) headerOf(n int) int {
	if n == 0 {
		return 0
	}
	return c.fixed + c.varying(n)
}

// varying returns the bytes of the numbers in a page's header: its entries, and twice its length.
func (c *parquetColumn) varying(n int) int { return varint(c.entries(n)) + 2*varint(c.most(n)) }

// varint returns the bytes of a number in Thrift's compact protocol: seven bits a byte, and one for the sign.
func varint(n int) int { return max(1, (bits.Len(uint(n))+1+6)/7) }

func (p *parquet) AppendHead(dst []byte) []byte { return append(dst, parquetMagic...) }

func (p *parquet) AppendRows([]byte, *rows.Block, *Offsets) []byte { panic(onlyAPlan) }
func (p *parquet) AppendTail([]byte) []byte                        { panic(onlyAPlan) }

const onlyAPlan = "encode: a parquet file is made by the encoder that ForBatch returns"

func (p *parquet) ForBatch(n int) Encoder {
	w := &parquetWriter{parquet: p, rows: n, chunks: make([]chunk, len(p.columns))}
	at := len(parquetMagic)
	for i := range w.chunks {
		limit := at + int(p.columns[i].chunkBytes(int64(n)))
		w.chunks[i] = chunk{start: at, end: at, limit: limit}
		if list := p.columns[i].list; list != nil {
			w.chunks[i].lists = &listChunk{one: rows.Vector{Type: list.of.Type}}
		}
		at = limit
	}
	return w
}

// parquetWriter makes one file.
type parquetWriter struct {
	*parquet
	rows   int // of the file
	given  int // so far
	chunks []chunk
	at     *Offsets // of the buffer
}

// chunk is a column of the unfinished file, by positions in the buffer.
type chunk struct {
	start, end, limit int // of what is written, and where the next column begins
	page              int // the page being written: its position, …
	header            int // … the room for its header, …
	levels, values    int // … where the bits of its NULLs begin, and its values, …
	given             int // … how many values there are …
	rows, left        int // … its rows, and those that are missing; 0 = there is no such page
	lists             *listChunk
}

// AppendRows makes dst as long as all chunks can become. What is not written yet is undefined until AppendTail.
func (w *parquetWriter) AppendRows(dst []byte, b *rows.Block, at *Offsets) []byte {
	w.at = at
	if w.given+b.Rows > w.rows {
		panic(fmt.Sprintf("encode: %d rows for a parquet file of %d", w.given+b.Rows, w.rows))
	}
	if end := w.chunks[len(w.chunks)-1].limit; len(dst) < end {
		dst = slices.Grow(dst, end-len(dst))[:end]
	}
	for i := range w.chunks {
		c, k := &w.columns[i], &w.chunks[i]
		if c.Derived && c.Type.Variable() {
			checkOneLength(c.Column, &b.Columns[i], b.Rows)
		}
		for from := 0; from < b.Rows; {
			if k.left == 0 {
				k.rows = min(c.pageRows, w.rows-w.given-from)
				k.openPage(dst, c)
			}
			n := min(b.Rows-from, k.left)
			switch {
			case c.list != nil:
				k.appendLists(dst, c, &b.Columns[i], from, from+n)
			case c.Nullable || c.Type == rows.Bool:
				k.appendSome(dst, c, &b.Columns[i], from, from+n)
			default:
				k.end = len(c.appendPlain(dst[:k.end:k.limit], &b.Columns[i], from, from+n))
			}
			if k.end > k.limit {
				panic(fmt.Sprintf("encode: a value of column %s is longer than %d bytes", c.Name, c.MaxBytes))
			}
			if k.left -= n; k.left == 0 {
				k.closePage(dst)
			}
			from += n
		}
	}
	w.given += b.Rows
	return dst
}

// openPage begins a page of k.rows rows, and writes what is before the bits of its NULLs if the column has any.
func (k *chunk) openPage(buf []byte, c *parquetColumn) {
	k.left, k.page, k.header = k.rows, k.end, c.headerOf(k.rows)
	k.end += k.header
	switch {
	case c.list != nil:
		k.end = k.lists.open(k.end, c, k.rows)
	case c.Nullable:
		groups := (k.rows + 7) / 8
		binary.LittleEndian.PutUint32(buf[k.end:], uint32(c.levels(k.rows)-4))
		k.end += 4 + binary.PutUvarint(buf[k.end+4:], runOf(groups))
		clear(buf[k.end:][:groups])
		k.levels = k.end
		k.end += groups
	}
	k.values, k.given = k.end, 0
}

// appendSome appends the values from … to−1 that are not NULL, or are bits.
func (k *chunk) appendSome(buf []byte, c *parquetColumn, v *rows.Vector, from, to int) {
	done := k.rows - k.left
	for i := from; i < to; i++ {
		if c.Nullable {
			if v.IsNull(i) {
				continue
			}
			row := done + i - from
			buf[k.levels+row/8] |= 1 << (row % 8)
		}
		if c.Type != rows.Bool {
			k.end = len(c.appendPlain(buf[:k.end:k.limit], v, i, i+1))
			continue
		}
		k.appendBit(buf, v.Ints[i])
	}
}

// appendBit appends a value of a Bool.
func (k *chunk) appendBit(buf []byte, value int64) {
	if k.given%8 == 0 {
		buf[k.end] = 0
		k.end++
	}
	buf[k.values+k.given/8] |= byte(checkBool(value)) << (k.given % 8)
	k.given++
}

// appendPlain appends values from … to−1, none of which is NULL or a bit.
func (c *parquetColumn) appendPlain(dst []byte, v *rows.Vector, from, to int) []byte {
	switch c.Type {
	case rows.Int16, rows.Int32, rows.Uint16, rows.Uint32:
		for _, n := range v.Ints[from:to] {
			checkWidth(c.Type, n)
			dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
		}
	case rows.Float32:
		for _, n := range v.Ints[from:to] {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(checkFloat32(n)))
		}
	case rows.UUID:
		for i := from; i < to; i++ {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(uuidBytes))
			dst = extend(dst, uuidBytes)
			formatUUID(dst[len(dst)-uuidBytes:], v.UUID(i))
		}
	case rows.Date:
		for _, day := range v.Ints[from:to] {
			checkDate(day)
			dst = binary.LittleEndian.AppendUint32(dst, uint32(day))
		}
	case rows.Decimal:
		most := powerOfTen(c.Digits) - 1
		for _, n := range v.Ints[from:to] {
			magnitude(n, most)
			dst = binary.LittleEndian.AppendUint64(dst, uint64(n))
		}
	case rows.Timestamp, rows.TimestampTZ:
		for _, n := range v.Ints[from:to] {
			checkTime(n)
			dst = binary.LittleEndian.AppendUint64(dst, uint64(n))
		}
	case rows.Float64:
		for _, n := range v.Ints[from:to] {
			dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(checkFloat64(n)))
		}
	case rows.Wide: // as it is: a fixed length needs none in front
		for i := from; i < to; i++ {
			checkWide(v.UUID(i), rows.WideDigits-c.Digits)
			dst = append(dst, v.UUID(i)...)
		}
	case rows.Time:
		for _, n := range v.Ints[from:to] {
			checkClock(n)
			dst = binary.LittleEndian.AppendUint64(dst, uint64(n))
		}
	case rows.Int64, rows.Uint64:
		for _, n := range v.Ints[from:to] {
			dst = binary.LittleEndian.AppendUint64(dst, uint64(n))
		}
	default:
		for i := from; i < to; i++ {
			value := v.Value(i)
			dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
			dst = append(dst, value...)
		}
	}
	return dst
}

// closePage writes the header of a page. There is room for the header of the longest values; if this one is shorter, since
// its numbers have fewer digits, the values move up.
func (k *chunk) closePage(buf []byte) {
	entries := k.rows
	if k.lists != nil {
		entries = k.closeLists(buf)
	}
	values := buf[k.page+k.header : k.end]
	header := pageHeader(entries, len(values))
	copy(buf[k.page:], header)
	if len(header) < k.header {
		copy(buf[k.page+len(header):], values)
	}
	k.end = k.page + len(header) + len(values)
}

// AppendTail closes the gaps between chunks and writes the metadata.
func (w *parquetWriter) AppendTail(dst []byte) []byte {
	if w.given != w.rows {
		panic(fmt.Sprintf("encode: a parquet file of %d rows was given %d", w.rows, w.given))
	}
	end := len(parquetMagic)
	for i := range w.chunks {
		k := &w.chunks[i]
		if k.start != end {
			copy(dst[end:], dst[k.start:k.end])
		}
		k.start, k.end = end, end+k.end-k.start
		end = k.end
		if w.columns[i].Derived {
			w.at.Fields = append(w.at.Fields, uint32(k.start))
		}
	}
	w.at.Rows = w.rows
	footer := parquetFooter(w.schema.Columns, w.chunks, int64(w.rows))
	dst = append(dst[:end], footer...)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(footer)))
	return append(dst, parquetMagic...)
}

func (p *parquet) Stamp(buf []byte, at *Offsets, from int, b *rows.Block) {
	end := from + b.Rows
	if end > at.Rows {
		panic(fmt.Sprintf("encode: rows to %d of a parquet file of %d", end, at.Rows))
	}
	chunks := at.Fields
	for i := range p.columns {
		c, v := &p.columns[i], &b.Columns[i]
		if !c.Derived {
			continue
		}
		if c.Type.Variable() {
			checkOneLength(c.Column, v, b.Rows)
		}
		start := int(chunks[0])
		chunks = chunks[1:]
		for row := from; row < end; {
			page := row / c.pageRows
			first := page * c.pageRows
			inPage := min(c.pageRows, at.Rows-first)
			next := min(end, first+inPage)
			place := start + page*c.header + c.headerOf(inPage) + row*c.width
			c.appendPlain(buf[:place:place+(next-row)*c.width], v, row-from, next-from)
			row = next
		}
	}
}
