package httpload

import (
	"bytes"
	"io"
	"net/http"

	"github.com/terapush/terapush/pkg/batch"
)

// Attach sets the request's body and its length: head, the batch's bytes, tail. The transport closes the body; a
// caller that does not send the request must close it.
func Attach(r *http.Request, head []byte, b *batch.Batch, tail []byte) {
	body := b.Open()
	r.ContentLength = int64(len(head)) + body.Size() + int64(len(tail))
	r.Body = &framed{body: body, parts: [...]part{bytes.NewReader(head), body, bytes.NewReader(tail)}, left: r.ContentLength}
	r.GetBody = nil // so the transport never sends a body twice: a retry is an attempt of its own
	if r.ContentLength == 0 {
		body.Close()
		r.Body = http.NoBody // any other body of length 0 is chunked
	}
}

// framed is a batch between head and tail, such as those of a multipart form.
type framed struct {
	body  io.Closer
	parts [3]part
	left  int64 // bytes not yet read
}

type part interface {
	io.Reader
	io.WriterTo
}

func (f *framed) Read(p []byte) (n int, err error) {
	for _, part := range f.parts {
		for err = nil; n < len(p) && err == nil; { // the only error of a part is io.EOF
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

// WriteTo writes without copying, in large pieces: see patientConn.ReadFrom.
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
