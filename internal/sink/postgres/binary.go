package postgres

import (
	"errors"
	"fmt"
)

// Of COPY's binary format: the header up to the length of its extension, and what may stand in the way of a number.
const (
	signature = 11 + 4 // "PGCOPY\n\xff\r\n\0" and flags
	lengthLen = 4
	countLen  = 2
)

// binaryRows counts the rows of COPY's binary format. There is nothing to search for: it walks from length to length,
// and everything may be split between two messages.
type binaryRows struct {
	begun  bool   // the header is behind us
	ended  bool   // the trailer has been seen
	skip   int64  // bytes of no interest to come
	fields int    // fields to come in this row
	number []byte // the part seen of a number that is split
	rows   int64
	err    error

	spare [lengthLen]byte
}

// Write walks over p.
func (b *binaryRows) Write(p []byte) {
	if !b.begun {
		b.begun = true
		b.skip, b.fields = signature, 1 // the extension of the header looks like a row of one field, and is not counted
		b.rows = -1
		b.number = b.spare[:0]
	}
	for len(p) > 0 && b.err == nil {
		if n := min(b.skip, int64(len(p))); n > 0 {
			p = p[n:]
			b.skip -= n
			continue
		}
		size := lengthLen
		if b.fields == 0 {
			size = countLen
		}
		if len(b.number) == 0 && len(p) >= size {
			b.take(p[:size])
			p = p[size:]
			continue
		}
		n := min(size-len(b.number), len(p))
		b.number = append(b.number, p[:n]...)
		p = p[n:]
		if len(b.number) == size {
			b.take(b.number)
			b.number = b.spare[:0]
		}
	}
}

// take understands the number of a row's fields, or the length of a field.
func (b *binaryRows) take(number []byte) {
	if b.ended {
		b.err = errors.New("received copy data after EOF marker")
		return
	}
	if b.fields == 0 {
		switch n := int16(uint16(number[0])<<8 | uint16(number[1])); {
		case n == -1:
			b.ended = true
		case n <= 0:
			b.err = fmt.Errorf("row field count is %d", n)
		default:
			b.fields = int(n)
		}
		return
	}
	length := int32(uint32(number[0])<<24 | uint32(number[1])<<16 | uint32(number[2])<<8 | uint32(number[3]))
	switch {
	case length >= 0:
		b.skip = int64(length)
	case length != -1: // −1 is NULL and has no bytes
		b.err = fmt.Errorf("invalid field size %d", length)
		return
	}
	if b.fields--; b.fields == 0 {
		b.rows++
	}
}

// Rows returns the number of complete rows. The trailer may be missing: clients leave it out and servers accept that.
func (b *binaryRows) Rows() (int64, error) {
	switch {
	case b.err != nil:
		return 0, b.err
	case !b.begun || b.rows < 0:
		return 0, errors.New("COPY file signature not recognized")
	case b.skip > 0 || b.fields > 0 || len(b.number) > 0:
		return 0, errors.New("unexpected EOF in COPY data")
	}
	return b.rows, nil
}
