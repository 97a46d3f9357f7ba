package loadertest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Faults stands between a back-end and its server and breaks connections on command. One fault is armed at a time; it
// hits the first connection that fits, once, and no other.
type Faults struct {
	dial dial

	mu    sync.Mutex
	armed *fault
	held  []net.Conn // kept open although their client has closed them
}

type fault struct {
	after  int64  // hits the write that takes a connection's bytes past this …
	marker []byte // … or, if set, the write that contains this
	answer bool   // what is lost is the answer to that write: it strikes before the write, and strike is not called
	strike func(c *faultyConn)
	hit    chan struct{}
}

// NewFaults puts faults in front of dial.
func NewFaults(dial dial) *Faults { return &Faults{dial: dial} }

// Dial opens a connection that faults can hit.
func (f *Faults) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := f.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	nowhere, peer := net.Pipe()
	return &faultyConn{Conn: c, faults: f, nowhere: nowhere, peer: peer}, nil
}

// CutAfter closes, at both ends, the connection that first writes n bytes from now on. The channel is closed when it
// has happened.
func (f *Faults) CutAfter(n int64) <-chan struct{} {
	return f.arm(&fault{after: n, strike: (*faultyConn).cut})
}

// CutAnswer lets the write that contains the marker pass and the server answer it, and cuts the connection instead of
// delivering the answer.
func (f *Faults) CutAnswer(marker string) <-chan struct{} {
	return f.arm(&fault{marker: []byte(marker), answer: true})
}

// StallAfter keeps back, for ever, what the connection that first writes n bytes from now on writes or is sent. When
// the client closes the connection the server is told.
func (f *Faults) StallAfter(n int64) <-chan struct{} {
	return f.arm(&fault{after: n, strike: func(c *faultyConn) { c.stalled.Store(true) }})
}

// VanishAfter is StallAfter where the server is told nothing: it waits for a client that is long gone, as behind a
// firewall that drops packets, until Close.
func (f *Faults) VanishAfter(n int64) <-chan struct{} {
	return f.arm(&fault{after: n, strike: func(c *faultyConn) {
		c.vanished.Store(true)
		c.stalled.Store(true)
	}})
}

// Close releases the vanished connections.
func (f *Faults) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.held {
		_ = c.Close()
	}
	f.held = nil
}

func (f *Faults) arm(a *fault) <-chan struct{} {
	a.hit = make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = a
	return a.hit
}

// pick gives the armed fault to the connection if this write is where it strikes, with the number of bytes that still
// pass.
func (f *Faults) pick(c *faultyConn, p []byte) (a *fault, pass int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a = f.armed
	if a == nil {
		return nil, len(p)
	}
	if c.counted != a {
		c.counted, c.written = a, 0
	}
	before := c.written
	c.written += int64(len(p))
	switch {
	case a.marker != nil && bytes.Contains(p, a.marker):
		pass = len(p)
	case a.marker == nil && c.written > a.after:
		pass = int(a.after - before)
	default:
		return nil, len(p)
	}
	f.armed = nil
	return a, pass
}

type faultyConn struct {
	net.Conn
	faults *Faults

	counted *fault // written counts from when this was armed; both under Faults.mu
	written int64

	deaf     atomic.Bool // the next answer is lost, and the connection with it …
	passing  sync.Mutex  // … once the write that is answered has passed, which holds this
	stalled  atomic.Bool // reads and writes go to nowhere …
	vanished atomic.Bool // … and so does Close
	// nowhere is a pipe without another end in use: reads and writes wait, until a deadline or Close, like on a socket.
	nowhere, peer net.Conn
}

func (c *faultyConn) Write(p []byte) (int, error) {
	if c.stalled.Load() {
		return c.nowhere.Write(p)
	}
	a, pass := c.faults.pick(c, p)
	if a != nil && a.answer {
		return c.writeUnanswered(a, p)
	}
	n, err := c.Conn.Write(p[:pass])
	if a == nil || err != nil {
		return n, err
	}
	a.strike(c)
	close(a.hit)
	if n == len(p) {
		return n, nil
	}
	if c.stalled.Load() {
		m, err := c.nowhere.Write(p[n:])
		return n + m, err
	}
	return n, syscall.ECONNRESET
}

// writeUnanswered turns deaf before it writes: a fast server has answered, and a waiting Read has the answer, before the
// write returns here.
func (c *faultyConn) writeUnanswered(a *fault, p []byte) (int, error) {
	c.passing.Lock()
	defer c.passing.Unlock()
	c.deaf.Store(true)
	n, err := c.Conn.Write(p)
	if err == nil {
		close(a.hit)
	}
	return n, err
}

func (c *faultyConn) Read(p []byte) (int, error) {
	n, err := 0, error(nil)
	if !c.stalled.Load() {
		n, err = c.Conn.Read(p)
	}
	switch {
	case c.stalled.Load(): // perhaps only since the read began
		return c.nowhere.Read(p)
	case c.deaf.Load() && n > 0 && !bytes.Equal(p[:n], asksForTheBody):
		c.passing.Lock() // the server is to have all of the write
		defer c.passing.Unlock()
		c.cut()
		return 0, syscall.ECONNRESET
	}
	return n, err
}

// asksForTheBody is no answer: HTTP's word to a client that has sent the head of its request and holds back the rest.
var asksForTheBody = []byte("HTTP/1.1 100 Continue\r\n\r\n")

func (c *faultyConn) cut() { _ = c.Conn.Close() }

func (c *faultyConn) Close() error {
	_, _ = c.nowhere.Close(), c.peer.Close()
	if !c.vanished.Load() {
		return c.Conn.Close()
	}
	c.faults.mu.Lock()
	defer c.faults.mu.Unlock()
	c.faults.held = append(c.faults.held, c.Conn)
	// A read that began before the fault has to end without telling the server.
	return c.Conn.SetDeadline(time.Unix(1, 0))
}

func (c *faultyConn) SetDeadline(t time.Time) error {
	_ = c.nowhere.SetDeadline(t)
	return c.Conn.SetDeadline(t)
}

func (c *faultyConn) SetReadDeadline(t time.Time) error {
	_ = c.nowhere.SetReadDeadline(t)
	return c.Conn.SetReadDeadline(t)
}

func (c *faultyConn) SetWriteDeadline(t time.Time) error {
	_ = c.nowhere.SetWriteDeadline(t)
	return c.Conn.SetWriteDeadline(t)
}
