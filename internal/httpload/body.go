package httpload

import (
	"bytes"
	"io"
	"net/http"

	"github.com/terapush/terapush/pkg/batch"
)

// Attach makes the batch's bytes, between head and tail, the request's body, with its length. The body is opened on the
// batch here and closed by the transport; a request that is never sent closes it itself: r.Body.Close.
func Attach(r *http.Request, head []byte, b *batch.Batch, tail []byte) {
	body := b.Open()
	r.ContentLength = int64(len(head)) + body.Size() + int64(len(tail))
	r.Body = &framed{body: body, parts: [...]part{bytes.NewReader(head), body, bytes.NewReader(tail)}, left: r.ContentLength}
	r.GetBody = nil // the transport never sends a body twice by itself: a retry is an attempt of its own
	if r.ContentLength == 0 {
		body.Close()
		r.Body = http.NoBody // any other body of length 0 is one of unknown length, and chunked
	}
}

// framed is a batch with something around it, such as the part of a multipart form that it is.
type framed struct {
	body  io.Closer
	parts [3]part // with what is still to come of each
	left  int64   // of all of them
}

type part interface {
	io.Reader
	io.WriterTo
}

func (f *framed) Read(p []byte) (n int, err error) {
	for _, part := range f.parts {
		for err = nil; n < len(p) && err == nil; { // the end is the only error of a part
			var m int
			m, err = part.Read(p[n:])
			n += m
		}
	}
	f.left -= int64(n)
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteTo hands the bytes over where they lie, in large pieces: see patient.ReadFrom.
func (f *framed) WriteTo(w io.Writer) (sent int64, err error) {
	defer func() { f.left -= sent }()
	for _, part := range f.parts {
		n, err := part.WriteTo(w)
		if sent += n; err != nil {
			return sent, err
		}
	}
	return sent, nil
}

func (f *framed) Close() error { return f.body.Close() }
