package encode

import (
	"encoding/binary"
	"fmt"

	"github.com/terapush/terapush/pkg/rows"
)

// parquetList is what the values of a column of vectors or arrays are made of. Their pages have two numbers for every
// element before the values, and one of each for a list that is NULL or has none (Encodings.md, Run Length Encoding; the
// numbers are those of Dremel's paper): a repetition level, 0 where a row begins, and a definition level, which says how
// much of the element there is. Both are written as runs of one number: a row of a vector, of whatever length, takes a few
// bytes of them, where bits would take a sixteenth of the values.
//
// The runs are written to the room that they take at most, and move together when the page is complete. Those of a vector
// without NULLs fill it, since its rows are alike.
type parquetList struct {
	of      parquetColumn // the elements
	longest int           // elements of a list, at most
	repeats int           // most bytes of a row's repetition levels
	defines int           // most bytes of a row's definition levels; 0 if those of a page are one run
	empty   byte          // definition level of a list without elements; of an element that is NULL, it is the next
	full    byte          // that of an element with a value
}

func newParquetList(c rows.Column) *parquetList {
	of := elementOf(c)
	l := &parquetList{of: parquetColumn{Column: of, width: parquetWidth(of)}, longest: c.Dims()}
	if c.Type == rows.Arrays {
		l.longest = longest(c)
	}
	if c.Nullable {
		l.empty++
	}
	l.full = l.empty + 1
	if of.Nullable {
		l.full++
	}

	l.repeats = runBytes(1)
	if l.longest > 1 {
		l.repeats += runBytes(l.longest - 1)
	}
	switch {
	case of.Nullable: // runs of one are the worst
		l.defines = max(l.longest, 1) * runBytes(1)
	case c.Nullable || c.Type == rows.Arrays:
		l.defines = runBytes(max(l.longest, 1))
	}
	return l
}

// elementOf describes the elements of a list.
func elementOf(c rows.Column) rows.Column {
	if c.Type == rows.Arrays {
		return *c.Of
	}
	return rows.Column{Type: rows.Float32}
}

// entries is how many values and NULLs n rows have at most, those of their elements if they are lists.
func (c *parquetColumn) entries(n int) int {
	if c.list == nil {
		return n
	}
	return n * max(c.list.longest, 1)
}

// width returns the most bytes of a list with its levels; 0 if the format cannot carry its elements.
func (l *parquetList) width() int {
	if l.of.width == 0 {
		return 0
	}
	return l.longest*l.of.width + l.repeats + l.defines
}

// levels returns the bytes of the levels of n rows that are not in width: their lengths, and the only run of a page.
func (l *parquetList) levels(n int) int {
	if l.defines > 0 {
		return 4 + 4
	}
	return 4 + 4 + runBytes(n*l.longest)
}

// runBytes is the length of a run of n levels.
func runBytes(n int) int { return len(binary.AppendUvarint(nil, uint64(n)<<1)) + 1 }

// listChunk is what a chunk of lists has besides.
type listChunk struct {
	repeats, defines runs        // of the page being written
	entries          int         // levels of the page
	all              int64       // levels of the pages before
	one              rows.Vector // an element
}

// runs are levels in the buffer, behind 4 bytes for their length.
type runs struct {
	start, end int
	level      byte // of the run that is not written yet
	n          int  // its length
}

// add appends n levels.
func (r *runs) add(buf []byte, level byte, n int) {
	if level != r.level {
		r.flush(buf)
		r.level = level
	}
	r.n += n
}

// flush writes the last run.
func (r *runs) flush(buf []byte) {
	if r.n == 0 {
		return
	}
	r.end += binary.PutUvarint(buf[r.end:], uint64(r.n)<<1)
	buf[r.end] = r.level
	r.end++
	r.n = 0
}

// close writes the length, and returns the end of the levels.
func (r *runs) close(buf []byte) int {
	r.flush(buf)
	binary.LittleEndian.PutUint32(buf[r.start:], uint32(r.end-r.start-4))
	return r.end
}

// open begins a page of n rows whose levels are at a place, and returns that of the values.
func (l *listChunk) open(at int, c *parquetColumn, n int) (values int) {
	l.entries = 0
	l.repeats = runs{start: at, end: at + 4}
	at += 4 + n*c.list.repeats
	l.defines = runs{start: at, end: at + 4}
	return at + n*c.list.defines + c.list.levels(n) - 4
}

// appendLists appends the lists from … to−1.
func (k *chunk) appendLists(buf []byte, c *parquetColumn, v *rows.Vector, from, to int) {
	for i := from; i < to; i++ {
		n := 0
		switch {
		case v.IsNull(i):
			k.lists.defines.add(buf, 0, 1)
		case c.Type == rows.Float32s:
			n = c.list.longest
			k.end = len(append(buf[:k.end:k.limit], vectorOf(v, i, n)...))
			k.lists.defines.add(buf, c.list.full, n)
		default:
			n = k.appendElements(buf, c, v.Value(i))
		}

		k.lists.repeats.add(buf, 0, 1)
		if n > 1 {
			k.lists.repeats.add(buf, 1, n-1)
		}
		k.lists.entries += max(n, 1)
	}
}

// appendElements appends the elements of an array, and returns how many they are.
func (k *chunk) appendElements(buf []byte, c *parquetColumn, value []byte) (n int) {
	defines, one, of := &k.lists.defines, &k.lists.one, &c.list.of
	if len(value) == 0 {
		defines.add(buf, c.list.empty, 1)
		return 0
	}

	for ; len(value) > 0; n++ {
		if n == c.list.longest {
			panic(fmt.Sprintf("encode: an array of column %s has more than %d elements", c.Name, n))
		}
		value = one.TakeElement(value)
		switch {
		case one.IsNull(0):
			defines.add(buf, c.list.empty+1, 1)
			continue
		case of.Type == rows.Bool:
			k.appendBit(buf, one.Ints[0])
		default:
			k.end = len(of.appendPlain(buf[:k.end:k.limit], one, 0, 1))
		}
		defines.add(buf, c.list.full, 1)
	}
	return n
}

// closeLists closes the gaps behind the levels of a page, and returns how many levels of a kind there are.
func (k *chunk) closeLists(buf []byte) (entries int) {
	l := k.lists
	end := l.repeats.close(buf)
	defines := buf[l.defines.start:l.defines.close(buf)]
	if end != l.defines.start {
		copy(buf[end:], defines)
	}
	end += len(defines)
	if end != k.values {
		copy(buf[end:], buf[k.values:k.end])
	}
	k.end -= k.values - end

	l.all += int64(l.entries)
	return l.entries
}
