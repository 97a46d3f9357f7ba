package httpload

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
)

// patientConn is a connection that prefers an answer to a write error, and writes a batch without copying it.
//
// A server that refuses a body (a taken label, a statement that does not parse) answers early and closes, and the current
// write fails. net/http would report that failure and drop the answer, which has the reason. So the rest of the body is
// discarded, and a Read returns the answer, or the end of the connection.
type patientConn struct {
	net.Conn
	failed atomic.Bool
}

func patient(open dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := open(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &patientConn{Conn: c}, nil
	}
}

func (c *patientConn) Write(p []byte) (int, error) {
	if c.failed.Load() {
		return len(p), nil
	}
	n, err := c.Conn.Write(p)
	// After a timeout the server is gone, and net.ErrClosed is this side's: neither has an answer.
	if err == nil || isTimeout(err) || errors.Is(err, net.ErrClosed) {
		return n, err
	}
	c.failed.Store(true)
	return len(p), nil
}

// ReadFrom writes a batch without copying it. net/http calls it after the headers; without it the bytes would go through
// a buffer of 32 KiB, which costs a fifth more CPU than the writes.
func (c *patientConn) ReadFrom(r io.Reader) (int64, error) {
	if limited, is := r.(*io.LimitedReader); is {
		// net/http limits a body to its Content-Length, so the limit cuts nothing off.
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
