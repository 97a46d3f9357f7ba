package batch

import (
	"errors"
	"io"
)

// Body is one reading of a batch's bytes; a retry opens another. It is used by one goroutine.
//
// A body never fails and never blocks, since all its bytes are there before the load starts. That matters: a reader
// that fails inside MySQL's LOAD DATA LOCAL makes the server commit the half it has seen.
type Body struct {
	batch *Batch
	head  []byte // what is still to come of the head …
	rest  []byte // … and of the rows and the tail
	size  int64
	ended bool // the last byte was handed out
}

// Open starts a reading of the batch, without the rows that Skip leaves out. The caller must close the body once
// nothing can read from it any more.
func (b *Batch) Open() *Body {
	b.Hold()
	b.sent.Store(0)
	body := &Body{batch: b}
	body.rewind()
	return body
}

func (r *Body) rewind() {
	b := r.batch
	r.head, r.rest = b.Encoded[:b.Head], b.Encoded[b.Head:]
	if b.Skip > 0 {
		r.rest = b.Encoded[b.Starts[b.Skip]:]
	}
	r.size = int64(len(r.head) + len(r.rest))
	r.ended = false
}

// Size returns the length of the whole body in bytes.
func (r *Body) Size() int64 { return r.size }

// Read fills p whenever that many bytes are left: drivers send one packet a Read, and short reads make short packets.
func (r *Body) Read(p []byte) (int, error) {
	n := copy(p, r.head)
	r.head = r.head[n:]
	m := copy(p[n:], r.rest)
	r.rest = r.rest[m:]
	r.note()
	if n+m == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n + m, nil
}

// piece is how much WriteTo hands over at once: enough to cost nothing, little enough for Sent to move.
const piece = 1 << 20

// WriteTo hands the bytes to w without a copy in between.
func (r *Body) WriteTo(w io.Writer) (sent int64, err error) {
	for _, part := range []*[]byte{&r.head, &r.rest} {
		for len(*part) > 0 && err == nil {
			var n int
			n, err = w.Write((*part)[:min(piece, len(*part))])
			*part = (*part)[n:]
			sent += int64(n)
			r.note()
		}
	}
	return sent, err
}

// Seek moves only back to the start, which is what an HTTP client needs to send a body again.
func (r *Body) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekStart {
		return 0, errors.New("batch: a body can only be rewound to its start")
	}
	if r.batch == nil {
		return 0, errors.New("batch: the body is closed")
	}
	r.rewind()
	return 0, nil
}

// Close ends the reading; a second Close does nothing.
func (r *Body) Close() error {
	if r.batch != nil {
		r.head, r.rest = nil, nil
		r.batch.Release()
		r.batch = nil
	}
	return nil
}

// note updates the batch's Sent, before it calls AllRead at the end.
func (r *Body) note() {
	left := int64(len(r.head) + len(r.rest))
	if r.batch == nil || r.ended {
		return
	}
	r.batch.sent.Store(r.size - left)
	if left == 0 {
		r.ended = true
		if r.batch.AllRead != nil {
			r.batch.AllRead()
		}
	}
}
