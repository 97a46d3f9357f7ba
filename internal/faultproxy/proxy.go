// Package faultproxy is a TCP proxy for tests, between terapush and a real server: connections that are forwarded break
// as loadertest's do, or are slow.
//
//	lost := &faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Match: []byte("COMMIT"), Every: 5}
//	p, err := faultproxy.New("127.0.0.1:5432", lost)
//	…
//	assert.Positive(t, lost.Injected())
package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// Fault is one thing that goes wrong, again and again, with the connections of one proxy.
type Fault = loadertest.ConnFault

// What faults do. A client whose connection is cut gets a TCP reset. A stall lasts as long as the connection.
const (
	Cut            = loadertest.Cut
	CutAfterAnswer = loadertest.CutAnswer
	Stall          = loadertest.Stall
)

// Way is how slow one direction is; the zero value adds nothing.
type Way struct {
	// Latency delays every byte. Up to 4 MiB are under way at once, which bounds the rate to 4 MiB / Latency.
	Latency time.Duration
}

// Proxy forwards connections to its target.
type Proxy struct {
	target   string
	listener net.Listener
	faults   *loadertest.Faults
	up, down Way
	tasks    sync.WaitGroup

	mu     sync.Mutex
	links  map[*link]struct{}
	closed bool
}

// New opens a proxy on a free port of the loopback interface.
func New(target string, faults ...*Fault) (*Proxy, error) {
	return NewSlow(target, Way{}, Way{}, faults...)
}

// NewAt is New at an address of its own.
func NewAt(address, target string, faults ...*Fault) (*Proxy, error) {
	return listen(address, target, Way{}, Way{}, faults...)
}

// NewSlow is New with a way to the server and a way back.
func NewSlow(target string, up, down Way, faults ...*Fault) (*Proxy, error) {
	return listen("127.0.0.1:0", target, up, down, faults...)
}

func listen(address, target string, up, down Way, faults ...*Fault) (*Proxy, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	p := &Proxy{
		target: target, listener: l, faults: loadertest.NewFaults(dialer.DialContext, faults...), up: up, down: down,
		links: map[*link]struct{}{},
	}
	p.tasks.Go(p.accept)
	return p, nil
}

// Addr returns where clients connect, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Reset resets the connections of this moment; new ones are welcome.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Close resets all connections and returns when nothing of the proxy runs any more.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Reset()
	p.tasks.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors: links that end will free some
			time.Sleep(10 * time.Millisecond)
			continue
		}
		p.tasks.Go(func() { p.connect(c.(*net.TCPConn)) })
	}
}

func (p *Proxy) connect(client *net.TCPConn) {
	server, err := p.faults.Dial(context.Background(), "tcp", p.target)
	if err != nil {
		reset(client)
		return
	}
	l := &link{client: client, server: server.(halfCloser), done: make(chan struct{})}
	if !p.keep(l) {
		l.reset()
		return
	}
	l.tasks.Go(func() { l.forward(l.server, l.client, p.up) })
	l.tasks.Go(func() { l.forward(l.client, l.server, p.down) })
	l.tasks.Wait()
	_, _ = l.client.Close(), l.server.Close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// keep notes a link, unless the proxy is closing: then it would never be reset.
func (p *Proxy) keep(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.links[l] = struct{}{}
	}
	return !p.closed
}

// link is one client's connection and the one to the server that it is forwarded to.
type link struct {
	client *net.TCPConn
	server halfCloser
	done   chan struct{} // closed by reset
	once   sync.Once
	tasks  sync.WaitGroup
}

type halfCloser interface {
	net.Conn
	CloseWrite() error
}

func (l *link) reset() {
	l.once.Do(func() {
		close(l.done)
		reset(l.client)
		_ = l.server.Close()
	})
}

// reset closes with a TCP reset: the peer gets an error, not an end of file.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// forward copies one direction until it ends. The end of a stream is passed on, and the other direction may go on: a
// client may end its own and read the answer. An error ends both.
func (l *link) forward(to, from halfCloser, w Way) {
	var in io.Reader = from
	if w.Latency > 0 {
		late := &lateReader{queue: make(chan parcel, underWay), done: l.done}
		l.tasks.Go(func() { late.fill(from, w.Latency) })
		in = late
	}
	if _, err := io.Copy(to, in); err != nil {
		l.reset()
		return
	}
	_ = to.CloseWrite()
}

const (
	chunk    = 256 << 10
	underWay = 16 // chunks: 4 MiB
)

// lateReader hands out what was read some time ago: bytes are late, but not fewer.
type lateReader struct {
	queue chan parcel
	done  chan struct{}
	next  parcel
}

// parcel is what one read returned, and when it arrives.
type parcel struct {
	data []byte
	err  error
	due  time.Time
}

func (r *lateReader) fill(from io.Reader, late time.Duration) {
	buf := make([]byte, chunk)
	for {
		n, err := from.Read(buf)
		select {
		case r.queue <- parcel{bytes.Clone(buf[:n]), err, time.Now().Add(late)}:
		case <-r.done:
			return
		}
		if err != nil {
			return
		}
	}
}

func (r *lateReader) Read(p []byte) (int, error) {
	for len(r.next.data) == 0 {
		if r.next.err != nil {
			return 0, r.next.err
		}
		select {
		case r.next = <-r.queue:
		case <-r.done:
			return 0, net.ErrClosed
		}
		select {
		case <-time.After(time.Until(r.next.due)):
		case <-r.done:
			return 0, net.ErrClosed
		}
	}
	n := copy(p, r.next.data)
	r.next.data = r.next.data[n:]
	return n, nil
}
