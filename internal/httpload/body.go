package httpload

import (
	"io"
	"net/http"

	"github.com/terapush/terapush/pkg/batch"
)

// Attach makes the batch's bytes, between head and tail, the request's body, with its length. The body is opened on the
// batch here and closed by the transport; a request that is never sent closes it itself: r.Body.Close.
func Attach(r *http.Request, head []byte, b *batch.Batch, tail []byte) {
	body := b.Open()
	r.ContentLength = int64(len(head)) + body.Size() + int64(len(tail))
	r.Body = &framed{head: head, body: body, tail: tail, left: r.ContentLength}
	r.GetBody = nil // the transport never sends a body twice by itself: a retry is an attempt of its own
	if r.ContentLength == 0 {
		body.Close()
		r.Body = http.NoBody // any other body of length 0 is one of unknown length, and chunked
	}
}

// framed is a batch with something around it, such as the part of a multipart form that it is.
type framed struct {
	head []byte
	body *batch.Body
	tail []byte
	left int64 // of all three
}

func (f *framed) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	n = copy(p, f.head)
	f.head = f.head[n:]
	for n < len(p) {
		m, err := f.body.Read(p[n:])
		n += m
		if err != nil { // the end; a body knows no other error
			break
		}
	}
	m := copy(p[n:], f.tail)
	f.tail = f.tail[m:]
	n += m
	f.left -= int64(n)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteTo hands the bytes over where they lie, in large pieces: see patient.ReadFrom.
func (f *framed) WriteTo(w io.Writer) (sent int64, err error) {
	defer func() { f.left -= sent }()
	if sent, err = writePart(w, &f.head); err != nil {
		return sent, err
	}
	n, err := f.body.WriteTo(w)
	if sent += n; err != nil {
		return sent, err
	}
	n, err = writePart(w, &f.tail)
	return sent + n, err
}

func writePart(w io.Writer, part *[]byte) (int64, error) {
	if len(*part) == 0 {
		return 0, nil
	}
	n, err := w.Write(*part)
	*part = (*part)[n:]
	return int64(n), err
}

func (f *framed) Close() error { return f.body.Close() }
