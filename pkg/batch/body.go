package batch

import (
	"errors"
	"io"
)

// Body reads a batch's bytes; a retry opens another. It is used by one goroutine.
//
// A body never fails or blocks, since all its bytes are in memory. If a reader failed in MySQL's LOAD DATA LOCAL, the
// server would commit the rows before.
type Body struct {
	batch *Batch
	rest  []byte // what is still to come
	size  int64
	ended bool // the last byte was handed out
}

// Open returns a body of the whole batch. The caller must close it once nothing can read from it any more.
func (b *Batch) Open() *Body {
	b.Hold()
	b.sent.Store(0)
	body := &Body{batch: b}
	body.rewind()
	return body
}

func (r *Body) rewind() {
	r.rest = r.batch.Encoded
	r.size = int64(len(r.rest))
	r.ended = false
}

// Size returns the length of the whole body in bytes.
func (r *Body) Size() int64 { return r.size }

// Read fills p if enough bytes are left, since drivers send one packet a Read.
func (r *Body) Read(p []byte) (int, error) {
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	r.note()

	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// piece is how much WriteTo writes at once, so that Sent advances.
const piece = 1 << 20

// WriteTo writes the bytes to w without a copy.
func (r *Body) WriteTo(w io.Writer) (sent int64, err error) {
	for len(r.rest) > 0 && err == nil {
		var n int
		n, err = w.Write(r.rest[:min(piece, len(r.rest))])
		r.rest = r.rest[n:]
		sent += int64(n)
		r.note()
	}
	return sent, err
}

// Seek only goes back to the start, for HTTP clients that send a body again.
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

// Close releases the batch; a second Close does nothing.
func (r *Body) Close() error {
	if r.batch != nil {
		r.rest = nil
		r.batch.Release()
		r.batch = nil
	}
	return nil
}

// note updates Sent, and calls AllRead at the end.
func (r *Body) note() {
	if r.batch == nil || r.ended {
		return
	}

	left := int64(len(r.rest))
	r.batch.sent.Store(r.size - left)
	if left == 0 {
		r.ended = true
		if r.batch.AllRead != nil {
			r.batch.AllRead()
		}
	}
}
