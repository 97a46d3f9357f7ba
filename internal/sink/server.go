package sink

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Server accepts connections and serves each by a protocol.
type Server struct {
	Counters

	listener net.Listener
	options  Options
	protocol Protocol
	handlers sync.WaitGroup
	closing  chan struct{} // closed by Close

	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

// Protocol serves one connection until the client leaves or violates the protocol. id is different for every connection
// of the server.
type Protocol func(id uint32, c *Conn) error

// Listen opens a server on addr, where port 0 takes a free one.
func Listen(addr string, o Options, p Protocol) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &Server{listener: l, options: o, protocol: p, open: map[net.Conn]struct{}{}, closing: make(chan struct{})}
	s.withCRC = o.CRC
	s.handlers.Go(s.accept)
	return s, nil
}

// Addr returns where the server listens, as host:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close closes all connections and returns when the last one has ended.
func (s *Server) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	err := s.listener.Close()
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	s.handlers.Wait()
	return err
}

func (s *Server) accept() {
	for id := uint32(1); ; id++ {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors: connections that end will free some
			time.Sleep(10 * time.Millisecond)
			continue
		}
		s.handlers.Go(func() { s.serve(id, c) })
	}
}

func (s *Server) serve(id uint32, tcp net.Conn) {
	defer tcp.Close()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.open[tcp] = struct{}{}
	s.mu.Unlock()
	s.connections.Add(1)
	c := newConn(tcp, s)
	_ = s.protocol(id, c) // what counts was acknowledged before
	_ = c.Close()
	s.mu.Lock()
	delete(s.open, tcp)
	s.mu.Unlock()
}
