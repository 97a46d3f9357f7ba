package web

import (
	"encoding/binary"
	"errors"
)

// magic begins and ends a Parquet file.
const magic = "PAR1"

// longestFooter is how much of a Parquet file's end is kept, in bytes: that of a file with a thousand columns and a dozen
// row groups. The number of rows stands behind the schema, so all of the footer in front of it has to be there.
const longestFooter = 256 << 10

// Parquet reads the number of rows in a Parquet file's footer. It does not look at the pages.
//
// The footer is read by hand, since a library builds all of it before it returns the number: a hundred bytes that
// announce a list of a billion entries would be memory.
type Parquet struct {
	tail []byte
}

// Write takes in p.
func (c *Parquet) Write(p []byte) {
	const kept = longestFooter + 8
	if len(p) >= kept {
		c.tail = append(c.tail[:0], p[len(p)-kept:]...)
		return
	}
	if len(c.tail)+len(p) > 2*kept {
		c.tail = c.tail[:copy(c.tail, c.tail[len(c.tail)-kept:])]
	}
	c.tail = append(c.tail, p...)
}

var errFooter = errors.New("it does not end with a Parquet footer of at most 256 KiB")

// Rows returns the number of rows in the footer.
func (c *Parquet) Rows() (int64, error) {
	end := len(c.tail) - 8
	if end < 0 || string(c.tail[end+4:]) != magic {
		return 0, errFooter
	}
	length := int(binary.LittleEndian.Uint32(c.tail[end:]))
	if length > end || length > longestFooter {
		return 0, errFooter
	}
	t := thrift(c.tail[end-length : end])
	n, found := t.rows()
	if !found || n < 0 {
		return 0, errFooter
	}
	return n, nil
}

// thrift is what is left to read of a text in Thrift's compact protocol. Every step takes at least a byte, so garbage
// ends it soon.
type thrift []byte

// Types of the compact protocol (thrift/doc/specs/thrift-compact-protocol.md).
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

// rowsField is num_rows of FileMetaData (parquet.thrift).
const rowsField = 3

func (t *thrift) rows() (n int64, found bool) {
	for field := int64(0); ; {
		kind, ok := t.field(&field)
		switch {
		case !ok || kind == 0:
			return 0, false
		case field == rowsField && kind == thriftI64:
			return t.zigzag()
		case !t.skip(kind, 0):
			return 0, false
		}
	}
}

// field reads a field's head and counts its number on. Kind 0 is the end of the struct.
func (t *thrift) field(number *int64) (kind byte, ok bool) {
	c, ok := t.byte()
	if !ok || c == 0 {
		return 0, ok
	}
	if step := c >> 4; step > 0 {
		*number += int64(step)
	} else if *number, ok = t.zigzag(); !ok {
		return 0, false
	}
	return c & 0x0f, true
}

// deepest bounds structs within structs; those of a footer are five deep.
const deepest = 16

func (t *thrift) skip(kind byte, depth int) bool {
	if depth > deepest {
		return false
	}
	switch kind {
	case thriftTrue, thriftFalse:
		return true // the value is in the kind
	case thriftByte:
		return t.pass(1)
	case thriftI16, thriftI32, thriftI64:
		_, ok := t.varint()
		return ok
	case thriftDouble:
		return t.pass(8)
	case thriftBinary:
		n, ok := t.varint()
		return ok && t.pass(n)
	case thriftList, thriftSet:
		return t.skipList(depth)
	case thriftMap:
		return t.skipMap(depth)
	case thriftStruct:
		return t.skipStruct(depth)
	}
	return false
}

func (t *thrift) skipList(depth int) bool {
	c, ok := t.byte()
	n := uint64(c >> 4)
	if n == 15 {
		n, ok = t.varint()
	}
	for ; ok && n > 0; n-- {
		ok = t.element(c&0x0f, depth)
	}
	return ok
}

func (t *thrift) skipMap(depth int) bool {
	n, ok := t.varint()
	if !ok || n == 0 {
		return ok
	}
	kinds, ok := t.byte()
	for ; ok && n > 0; n-- {
		ok = t.element(kinds>>4, depth) && t.element(kinds&0x0f, depth)
	}
	return ok
}

// element skips a member of a list or map, where a truth value is a byte.
func (t *thrift) element(kind byte, depth int) bool {
	if kind == thriftTrue || kind == thriftFalse {
		return t.pass(1)
	}
	return t.skip(kind, depth+1)
}

func (t *thrift) skipStruct(depth int) bool {
	for number := int64(0); ; {
		kind, ok := t.field(&number)
		if !ok || kind == 0 {
			return ok
		}
		if !t.skip(kind, depth+1) {
			return false
		}
	}
}

func (t *thrift) byte() (byte, bool) {
	if len(*t) == 0 {
		return 0, false
	}
	c := (*t)[0]
	*t = (*t)[1:]
	return c, true
}

func (t *thrift) pass(n uint64) bool {
	if n > uint64(len(*t)) {
		return false
	}
	*t = (*t)[n:]
	return true
}

func (t *thrift) varint() (uint64, bool) {
	v, n := binary.Uvarint(*t)
	if n <= 0 {
		return 0, false
	}
	*t = (*t)[n:]
	return v, true
}

// zigzag reads a number with a sign.
func (t *thrift) zigzag() (int64, bool) {
	v, ok := t.varint()
	return int64(v>>1) ^ -int64(v&1), ok
}
