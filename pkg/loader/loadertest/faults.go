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

// Action is what a ConnFault does to a connection.
type Action int

const (
	// Cut closes the connection at both ends, before the bytes that triggered it.
	Cut Action = iota
	// CutAnswer lets the write that triggered it pass and the server answer it, and cuts instead of delivering the
	// answer: what was asked for happened, and the client cannot know.
	CutAnswer
	// Stall keeps back, for ever, what is written from then on and what is sent. When the client closes the connection
	// the server is told.
	Stall
	// Vanish is Stall where the server is told nothing: it waits for a client that is long gone, as behind a firewall
	// that drops packets, until Faults is closed.
	Vanish
)

// ConnFault is one thing that goes wrong with connections, again and again. It counts over all connections, so it
// belongs to one Faults, and its fields must not change afterwards.
type ConnFault struct {
	Action Action
	// Match triggers, for CutAnswer, at the write that contains or completes it. Payloads are searched as well: for
	// short words that random data could hold, add the protocol's bytes before it.
	Match []byte
	// Bytes triggers, without Match, at the write that takes a connection past so many bytes, past twice as many and so
	// on. With 0 every write triggers.
	Bytes int64
	// Every lets only each n-th trigger through; 0 is 1.
	Every int64
	// Times is how often it goes wrong at most; 0 is without end.
	Times int64

	seen     int64 // under Faults.mu
	injected atomic.Int64
	hit      chan struct{} // closed when it goes wrong, which it does once; or nil
}

// Injected returns how often it went wrong. A test that is about a fault asserts that there was one.
func (a *ConnFault) Injected() int64 { return a.injected.Load() }

// due counts a trigger and reports whether it is one that goes wrong.
func (a *ConnFault) due() bool {
	a.seen++
	every := max(a.Every, 1)
	return a.seen%every == 0 && (a.Times == 0 || a.seen/every <= a.Times)
}

func (a *ConnFault) struck() {
	a.injected.Add(1)
	if a.hit != nil {
		close(a.hit)
	}
}

// Faults stands between a client and its server and breaks connections. It knows no protocol, only what the client
// writes, so it works with every one that is not encrypted.
type Faults struct {
	dial dial

	mu     sync.Mutex
	faults []*ConnFault
	held   []net.Conn // kept open although their client has closed them
}

// NewFaults puts faults in front of dial.
func NewFaults(dial dial, faults ...*ConnFault) *Faults { return &Faults{dial: dial, faults: faults} }

// Dial opens a connection that faults can hit.
func (f *Faults) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := f.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	nowhere, peer := net.Pipe()
	return &faultyConn{Conn: c, faults: f, nowhere: nowhere, peer: peer, watches: make(map[*ConnFault]*watch)}, nil
}

// CutAfter cuts the connection that first writes more than n bytes from now on. This and the three below take the place
// of all other faults and happen once, which closes the channel.
func (f *Faults) CutAfter(n int64) <-chan struct{} {
	return f.arm(&ConnFault{Action: Cut, Bytes: n})
}

// CutAnswer loses the answer to the write that contains the marker.
func (f *Faults) CutAnswer(marker string) <-chan struct{} {
	return f.arm(&ConnFault{Action: CutAnswer, Match: []byte(marker)})
}

// StallAfter stalls the connection that first writes more than n bytes from now on.
func (f *Faults) StallAfter(n int64) <-chan struct{} {
	return f.arm(&ConnFault{Action: Stall, Bytes: n})
}

// VanishAfter makes the client of the connection vanish that first writes more than n bytes from now on.
func (f *Faults) VanishAfter(n int64) <-chan struct{} {
	return f.arm(&ConnFault{Action: Vanish, Bytes: n})
}

func (f *Faults) arm(a *ConnFault) <-chan struct{} {
	a.Times, a.hit = 1, make(chan struct{})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = []*ConnFault{a}
	return a.hit
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

// pick returns the fault that strikes at this write of the connection, or nil, and how many bytes lie before it.
func (f *Faults) pick(c *faultyConn, p []byte) (*ConnFault, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.faults {
		w := c.watches[a]
		if w == nil {
			w = new(watch)
			c.watches[a] = w
		}
		if pass, hit := w.look(a, p); hit {
			return a, pass
		}
	}
	return nil, 0
}

// watch is what one connection has written since a fault was armed.
type watch struct {
	written int64
	tail    []byte // the end of it, where a match may have begun
}

// look reports whether the fault strikes at this write, and how many of its bytes lie before what triggered it.
func (w *watch) look(a *ConnFault, p []byte) (pass int, hit bool) {
	switch {
	case len(a.Match) > 0:
		return 0, w.completes(a.Match, p) && a.due()
	case a.Bytes == 0:
		return 0, a.due()
	}
	before := w.written
	w.written += int64(len(p))
	for mark := max(1, (before+a.Bytes-1)/a.Bytes) * a.Bytes; mark < w.written; mark += a.Bytes {
		if a.due() {
			return int(mark - before), true
		}
	}
	return 0, false
}

// completes reports whether a match ends in this write, wherever it began.
func (w *watch) completes(match, p []byte) bool {
	keep := len(match) - 1
	across := append(w.tail, p[:min(len(p), keep)]...)
	found := bytes.Contains(across, match) || bytes.Contains(p, match)
	if len(p) > keep {
		across = p
	}
	w.tail = bytes.Clone(across[max(0, len(across)-keep):])
	return found
}

type faultyConn struct {
	net.Conn
	faults  *Faults
	watches map[*ConnFault]*watch // under Faults.mu

	deaf     atomic.Bool // the next answer is lost, and the connection with it …
	passing  sync.Mutex  // … once the write that is answered has passed, which holds this
	stalled  atomic.Bool // reads and writes go to nowhere …
	vanished atomic.Bool // … and so does Close
	// nowhere is a pipe without another end in use: reads and writes wait, until a deadline or Close, like on a socket.
	nowhere, peer net.Conn
}

func (c *faultyConn) Write(p []byte) (int, error) {
	switch {
	case c.stalled.Load():
		return c.nowhere.Write(p)
	case c.deaf.Load(): // it has its fault
		return c.Conn.Write(p)
	}
	a, pass := c.faults.pick(c, p)
	if a == nil {
		return c.Conn.Write(p)
	}
	if a.Action == CutAnswer {
		return c.writeUnanswered(a, p)
	}
	n, err := c.Conn.Write(p[:pass])
	if err != nil {
		return n, err
	}
	if a.Action == Cut {
		a.struck() // before anybody can see the cut, and look how many there were
		c.cut()
		return n, syscall.ECONNRESET
	}
	c.vanished.Store(a.Action == Vanish)
	c.stalled.Store(true)
	a.struck()
	m, err := c.nowhere.Write(p[n:])
	return n + m, err
}

// writeUnanswered turns deaf before it writes: a fast server has answered, and a waiting Read has the answer, before
// the write returns here.
func (c *faultyConn) writeUnanswered(a *ConnFault, p []byte) (int, error) {
	c.passing.Lock()
	defer c.passing.Unlock()
	c.deaf.Store(true)
	n, err := c.Conn.Write(p)
	if err == nil {
		a.struck()
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
		for err == nil {
			_ = c.Conn.SetReadDeadline(time.Now().Add(quiet))
			_, err = c.Conn.Read(p)
		}
		c.cut()
		return 0, syscall.ECONNRESET
	}
	return n, err
}

// quiet is how long the server has been silent when its answer is taken for complete. An answer in several pieces, as
// to pipelined statements, must not be cut after the first: the commit might be the last of them.
const quiet = 20 * time.Millisecond

// asksForTheBody is no answer: HTTP's word to a client that has sent the head of its request and holds back the rest.
var asksForTheBody = []byte("HTTP/1.1 100 Continue\r\n\r\n")

func (c *faultyConn) cut() { _ = c.Conn.Close() }

// CloseWrite tells the server that nothing more will be written, if it is still told anything.
func (c *faultyConn) CloseWrite() error {
	if half, is := c.Conn.(interface{ CloseWrite() error }); is && !c.stalled.Load() {
		return half.CloseWrite()
	}
	return nil
}

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
