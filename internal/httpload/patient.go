package httpload

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
)

// patient is a connection that prefers an answer to a write error, and takes a batch without copying it.
//
// A server that refuses a body (a label that is taken, a statement that does not parse) answers early and closes, and
// the write that is under way fails. net/http would report that failure and drop the answer, which says what happened.
// So the rest of the body goes to nowhere, and who reads finds the answer, or the end of the connection.
type patient struct {
	net.Conn
	failed atomic.Bool
}

func (c *patient) Write(p []byte) (int, error) {
	if c.failed.Load() {
		return len(p), nil
	}
	n, err := c.Conn.Write(p)
	// A timeout is the kernel's verdict that nobody is there, and net.ErrClosed is our own doing: neither is answered.
	if err == nil || isTimeout(err) || errors.Is(err, net.ErrClosed) {
		return n, err
	}
	c.failed.Store(true)
	return len(p), nil
}

// ReadFrom writes a batch from where it lies. net/http asks for it once the headers are out; without it the bytes would
// go through a buffer of 32 KiB, which costs a fifth more CPU than the writes themselves. TLS connections write records
// of 16 KiB and never come here.
func (c *patient) ReadFrom(r io.Reader) (int64, error) {
	if limited, is := r.(*io.LimitedReader); is {
		// What net/http limits a body to is its Content-Length, so the limit never cuts anything off.
		if body, is := limited.R.(*framed); is && body.left == limited.N {
			n, err := body.WriteTo(c)
			limited.N -= n
			return n, err
		}
	}
	return io.Copy(writeOnly{c}, r)
}

// writeOnly hides ReadFrom from io.Copy.
type writeOnly struct{ io.Writer }

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
