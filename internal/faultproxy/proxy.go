// Package faultproxy is a TCP proxy for tests, between terapush and a real server: it loses answers, cuts connections
// and slows the network down. It knows no protocol, only bytes that a client sends, so it works for every one that is not
// encrypted.
//
//	lost := &faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Match: []byte("COMMIT"), Every: 5}
//	p, err := faultproxy.New("127.0.0.1:5432", lost)
//	…
//	assert.Positive(t, lost.Injected())
package faultproxy

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Proxy forwards connections to its target.
type Proxy struct {
	target   string
	listener net.Listener
	faults   []*Fault
	up, down Way
	tasks    sync.WaitGroup
	accepted atomic.Int64

	mu     sync.Mutex
	links  map[*link]struct{}
	isDown bool
	closed bool
}

// Way is how slow one direction is; the zero value adds nothing.
type Way struct {
	// Latency delays every byte. Up to 4 MiB are under way at once, which bounds the rate to 4 MiB / Latency.
	Latency time.Duration
	// Rate is the bandwidth of one connection in bytes a second; 0 is without limit.
	Rate int64
}

// New opens a proxy on a free port of the loopback interface.
func New(target string, faults ...*Fault) (*Proxy, error) {
	return NewSlow(target, Way{}, Way{}, faults...)
}

// NewSlow is New with a way to the server and a way back.
func NewSlow(target string, up, down Way, faults ...*Fault) (*Proxy, error) {
	for _, f := range faults {
		if len(f.Match) == 0 && f.Bytes <= 0 {
			return nil, errors.New("faultproxy: a fault without Match and Bytes never happens")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: l, faults: faults, up: up, down: down, links: map[*link]struct{}{}}
	p.tasks.Go(p.accept)
	return p, nil
}

// Addr returns where clients connect, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Connections returns how many were accepted, those reset at once included.
func (p *Proxy) Connections() int64 { return p.accepted.Load() }

// Down resets all connections, and every new one, until Up: the server is not there.
func (p *Proxy) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isDown = true
	p.resetAll()
}

// Up ends Down.
func (p *Proxy) Up() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isDown = false
}

// Reset resets the connections of this moment; new ones are welcome.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resetAll()
}

// Close resets all connections and returns when nothing of the proxy runs any more.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	err := p.listener.Close()
	p.resetAll()
	p.mu.Unlock()
	p.tasks.Wait()
	return err
}

func (p *Proxy) resetAll() {
	for l := range p.links {
		l.reset()
	}
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
		p.accepted.Add(1)
		p.tasks.Go(func() { p.connect(c.(*net.TCPConn)) })
	}
}

func (p *Proxy) connect(client *net.TCPConn) {
	c, err := net.DialTimeout("tcp", p.target, 10*time.Second)
	if err != nil {
		reset(client)
		return
	}
	l := newLink(client, c.(*net.TCPConn))
	if !p.keep(l) {
		l.reset()
		return
	}
	l.run(p)
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// keep notes a link, unless the proxy is down or closing: then it would never be reset.
func (p *Proxy) keep(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isDown || p.closed {
		return false
	}
	p.links[l] = struct{}{}
	return true
}
