package faultproxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	chunk = 256 << 10
	// quiet is how long the server has been silent when its answer is taken for complete. An answer in several pieces,
	// as to pipelined statements, must not be cut after the first: the commit might be the last of them.
	quiet = 20 * time.Millisecond
)

// link is one client's connection and the one to the server that it is forwarded to.
type link struct {
	client, server *net.TCPConn

	done    chan struct{} // closed by reset
	once    sync.Once
	swallow atomic.Pointer[Fault] // the fault that the server's next answer falls to
	until   atomic.Int64          // the end of a stall, in Unix nanoseconds
}

func newLink(client, server *net.TCPConn) *link {
	return &link{client: client, server: server, done: make(chan struct{})}
}

func (l *link) reset() {
	l.once.Do(func() {
		reset(l.client)
		reset(l.server)
		close(l.done) // last: a stall that it ends must find no socket to write to
	})
}

// reset closes with a TCP reset: the peer gets an error, not an end of file.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// run forwards both directions until both have ended, or the link is reset.
func (l *link) run(p *Proxy) {
	var both sync.WaitGroup
	both.Go(func() { l.upward(p) })
	both.Go(func() { l.downward(p) })
	both.Wait()
	_ = l.client.Close()
	_ = l.server.Close()
}

// upward forwards client to server, and looks at every byte.
func (l *link) upward(p *Proxy) {
	watches, longest := make([]*watch, len(p.faults)), 1
	for i, f := range p.faults {
		watches[i] = &watch{Fault: f}
		longest = max(longest, len(f.Match))
	}
	out := newSender(l, l.server, p.up)
	defer out.close()
	buf := make([]byte, longest-1+chunk)
	old := 0 // how many bytes sent before are kept at the front of buf, where a match may have begun
	for {
		n, err := l.client.Read(buf[old : old+chunk])
		if n > 0 {
			window := buf[:old+n]
			if !l.inject(watches, window, old, out) || !out.send(window[old:]) {
				return
			}
			old = copy(buf, window[max(0, len(window)-(longest-1)):])
		}
		if err != nil {
			l.ended(err)
			return
		}
	}
}

// inject applies the faults that are due, and reports whether the link goes on.
func (l *link) inject(watches []*watch, window []byte, old int, out *sender) bool {
	for _, w := range watches {
		at, hit := w.look(window, old)
		if !hit {
			continue
		}
		switch w.Action {
		case Cut:
			out.send(window[old : old+at])
			out.drain()
			w.injected.Add(1)
			l.reset()
			return false
		case CutAfterAnswer:
			l.swallow.Store(w.Fault) // before the server can answer
		case Stall:
			w.injected.Add(1)
			l.until.Store(time.Now().Add(w.For).UnixNano())
		}
	}
	return true
}

// downward forwards server to client, except for the answer that gets lost.
func (l *link) downward(p *Proxy) {
	out := newSender(l, l.client, p.down)
	defer out.close()
	buf := make([]byte, chunk)
	for {
		n, err := l.server.Read(buf)
		if f := l.swallow.Load(); f != nil && n > 0 {
			for err == nil {
				_ = l.server.SetReadDeadline(time.Now().Add(quiet))
				_, err = l.server.Read(buf)
			}
			f.injected.Add(1)
			l.reset()
			return
		}
		if n > 0 && !out.send(buf[:n]) {
			return
		}
		if err != nil {
			l.ended(err)
			return
		}
	}
}

// ended passes on how a side ended, when it did not end its stream in order.
func (l *link) ended(err error) {
	if !errors.Is(err, io.EOF) {
		l.reset()
	}
}

// stalled waits for the end of a stall.
func (l *link) stalled() {
	if until := l.until.Load(); until != 0 {
		l.sleepUntil(time.Unix(0, until))
	}
}

// sleepUntil waits, but not longer than the link lives.
func (l *link) sleepUntil(t time.Time) {
	wait := time.Until(t)
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-l.done:
	}
}
