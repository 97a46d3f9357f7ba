package source

import (
	"fmt"
	"math"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/rows"
)

// Rows are generated and then encoded in pieces that fit the CPU's second-level cache.
const (
	pieceBytes = 128 << 10 // column data of a piece, when encoding
	pieceRows  = 4096      // rows of a piece, at most
)

// scratch is one goroutine's memory for a piece.
type scratch struct {
	block *rows.Block
	rows  int // to encode at a time
}

func newScratch(l layout) *scratch {
	return &scratch{
		block: rows.NewBlock(l.schema),
		rows:  int(min(pieceRows, max(1, pieceBytes/l.schema.MaxRowBytes()))),
	}
}

// encode writes a whole batch into a buffer of the caller.
func (r *Ring) encode(buf *buffer, number int64) error {
	s := r.scratch.Get().(*scratch)
	defer r.scratch.Put(s)
	e, d, c := r.layout.Encoder, r.layout.Dataset, r.layout.content(number)
	drawn := r.layout.Before(c.template)
	key, _ := r.layout.Span(number)

	buf.number, buf.payload, buf.own = -1, 0, nil
	memory, offsets := r.memoryOf(buf), r.offsetsOf(buf, c.rows)
	offsets.Reset()
	if p, ok := e.(encode.PerBatch); ok {
		e = p.ForBatch(c.rows)
	}
	out := e.AppendHead(memory[:0])
	for from := 0; from < c.rows; from += s.rows {
		d.Fill(s.block, drawn+int64(from), min(s.rows, c.rows-from))
		d.Derive(s.block, key+int64(from))
		out = e.AppendRows(out, s.block, &offsets)
		buf.payload += s.block.PayloadBytes()
	}
	out = e.AppendTail(out)
	if int64(len(out)) > maxBytes(r.layout.Encoder, int64(c.rows)) {
		return fmt.Errorf("source: batch %d took %d bytes of %s, more than MaxRow allows", number, len(out), e.Format())
	}
	if len(out) > math.MaxUint32 {
		return fmt.Errorf("source: batch %d takes %d bytes of %s, more than the 4 GiB that a batch can have: make it smaller",
			number, len(out), e.Format())
	}
	if cap(out) != cap(memory) { // it has grown beyond the place in the ring
		buf.own = out
	}
	buf.length, buf.number, buf.content = uint32(len(out)), number, c
	return nil
}

// stamp turns the buffer's batch into another one of the same template.
func (r *Ring) stamp(buf *buffer, number int64) {
	s := r.scratch.Get().(*scratch)
	defer r.scratch.Put(s)

	key, _ := r.layout.Span(number)
	encoded, offsets := r.memoryOf(buf)[:buf.length], r.offsetsOf(buf, buf.content.rows)
	for from := 0; from < buf.content.rows; from += pieceRows {
		s.block.Reset(min(pieceRows, buf.content.rows-from))
		r.layout.Dataset.Derive(s.block, key+int64(from))
		r.layout.stamper.Stamp(encoded, &offsets, from, s.block)
	}
	buf.number = number
}
