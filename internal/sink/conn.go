package sink

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// Conn is the server's end of a connection. It is read by one goroutine.
type Conn struct {
	net.Conn // TCP, or TLS over it
	Options  *Options

	server *Server
	tcp    net.Conn
	drop   func(limit int) (int, error) // nil where the kernel cannot drop
	void   atomic.Pointer[[voidBytes]byte]
	paced  time.Time // when the bytes read so far are due, by Options.ReadRate
	closed chan struct{}
}

func newConn(c net.Conn, s *Server) *Conn {
	return &Conn{Conn: c, tcp: c, Options: &s.options, server: s, drop: dropper(c), closed: make(chan struct{})}
}

// Close closes the connection. It may be called more than once, from the goroutine that serves the connection.
func (c *Conn) Close() error {
	select {
	case <-c.closed:
		return nil
	default:
		close(c.closed)
		return c.Conn.Close()
	}
}

// Encrypted reports whether the connection uses TLS.
func (c *Conn) Encrypted() bool { return c.Conn != c.tcp }

// voidBytes is what one system call may drop. Its pages are never written, so they take no memory.
const voidBytes = 1 << 20

// Void returns a buffer for data that nobody looks at. What is read into it from a plain connection stays in the
// kernel, and the buffer as it was. Readers in between, of a body's length or its chunks, pass the buffer down to Read;
// those that copy read into their own.
func (c *Conn) Void() []byte {
	v := c.void.Load()
	if v == nil {
		v = new([voidBytes]byte)
		c.void.Store(v) // net/http reads ahead on another goroutine, once a request is complete
	}
	return v[:]
}

// isVoid reports whether p is a part of the void, by the end of its capacity: readers cut lengths, not capacities.
func (c *Conn) isVoid(p []byte) bool {
	v := c.void.Load()
	return v != nil && len(p) > 0 && &p[:cap(p)][cap(p)-1] == &v[voidBytes-1]
}

// Read reads what has come in, no faster than Options.ReadRate.
func (c *Conn) Read(p []byte) (n int, err error) {
	if c.Options.ReadRate > 0 {
		p = p[:c.pace(len(p))]
	}
	if c.drop != nil && !c.Encrypted() && c.isVoid(p) {
		n, err = c.drop(len(p))
	} else {
		n, err = c.Conn.Read(p)
	}
	if c.Options.ReadRate > 0 {
		c.paced = c.paced.Add(time.Duration(float64(n) / float64(c.Options.ReadRate) * float64(time.Second)))
	}
	return n, err
}

// readsPerSecond is the least number of reads that a second's bytes take. A slow sink reads little and often, as a
// server with a slow disk does; the client's window closes and opens, instead of standing still for seconds.
const readsPerSecond = 50

// arrears bounds the time that is made up for. Each sleep ends a little late, which would be half of the rate where
// reads are small, as under TLS.
const arrears = 2 * time.Second / readsPerSecond

// pace waits until more may be read and returns how much, at most n bytes.
func (c *Conn) pace(n int) int {
	if earliest := time.Now().Add(-arrears); c.paced.Before(earliest) {
		c.paced = earliest
	}
	c.sleep(time.Until(c.paced))
	return min(n, int(max(1, c.Options.ReadRate/readsPerSecond)))
}

// sleep ends early when the server closes.
func (c *Conn) sleep(d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-time.After(d):
	case <-c.server.closing:
	}
}

// greetingTime is how long a client may take to log in. Half-open connections would stay for ever otherwise.
const greetingTime = 10 * time.Second

// Greet runs f, which must end within ten seconds.
func (c *Conn) Greet(f func() error) error {
	if err := c.SetDeadline(time.Now().Add(greetingTime)); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// handshake is the first byte of a TLS connection, a record's type. No command of the protocols here begins with it.
const handshake = 0x16

// AcceptTLS starts TLS if the client's first byte begins a handshake: for protocols that do not ask before, such as
// HTTP. protocols are those of ALPN that the server speaks.
func (c *Conn) AcceptTLS(protocols ...string) error {
	first := make([]byte, 1)
	if _, err := c.Conn.Read(first); err != nil {
		return err
	}
	if first[0] == handshake {
		return c.StartTLS(first, protocols...)
	}
	c.Conn = &prefixed{Conn: c.Conn, prefix: first}
	c.tcp = c.Conn
	return nil
}

var errNoTLS = errors.New("sink: a client wants TLS, which this sink was not given")

// StartTLS shakes hands; all that follows is encrypted. prefix is what was read ahead, which belongs to the handshake:
// a client of MySQL begins it without waiting.
func (c *Conn) StartTLS(prefix []byte, protocols ...string) error {
	if c.Options.TLS == nil {
		return errNoTLS
	}
	config := c.Options.TLS.Clone()
	config.NextProtos = protocols
	t := tls.Server(&prefixed{Conn: c.Conn, prefix: bytes.Clone(prefix)}, config)
	if err := t.Handshake(); err != nil {
		return err
	}
	c.Conn = t
	return nil
}

// prefixed is a connection whose first bytes have been read.
type prefixed struct {
	net.Conn
	prefix []byte
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.prefix) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.prefix)
	p.prefix = p.prefix[n:]
	return n, nil
}
