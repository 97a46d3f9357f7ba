package sink

import (
	"net"
	"time"
)

const (
	commandBuffer = 8 << 10   // enough for commands: ten thousand idle clients cost 80 MB
	loadBuffer    = 256 << 10 // while a load lasts; larger ones fall out of the caches
	greeting      = 10 * time.Second
)

// Stream is the server's end of a connection. Its buffer belongs to the stream: what Next and Some return is valid
// until the next call.
type Stream struct {
	Options Options

	server  *Server
	conn    net.Conn
	buf     []byte
	small   []byte // buf between loads
	r, w    int    // what has been read ahead is buf[r:w]
	lazy    bool   // nothing is read ahead: what follows will be dropped
	hurried bool   // between Hurry and Relax
	pace    pace
	drop    func(limit int) (int, error)
}

func newStream(c net.Conn, s *Server) *Stream {
	small := make([]byte, commandBuffer)
	return &Stream{Options: s.options, server: s, conn: c, buf: small, small: small, pace: pace{rate: s.options.ReadRate}, drop: dropper(c)}
}

// Hurry closes the connection unless Relax is called within ten seconds: for greetings, where half-open connections hang.
// Until then ReadRate does not apply.
func (s *Stream) Hurry() error {
	s.hurried = true
	return s.conn.SetDeadline(time.Now().Add(greeting))
}

// Relax removes the deadline of Hurry.
func (s *Stream) Relax() error {
	s.hurried = false
	return s.conn.SetDeadline(time.Time{})
}

// Client returns the client's address.
func (s *Stream) Client() string { return s.conn.RemoteAddr().String() }

// Write sends p to the client.
func (s *Stream) Write(p []byte) (int, error) { return s.conn.Write(p) }

// close closes the connection, after TLS's alert where it is encrypted.
func (s *Stream) close() { _ = s.conn.Close() }

// Next reads exactly n bytes, at most 4 KiB.
func (s *Stream) Next(n int) ([]byte, error) {
	if s.w-s.r < n && len(s.buf)-s.r < n {
		s.w = copy(s.buf, s.buf[s.r:s.w])
		s.r = 0
	}
	for s.w-s.r < n {
		if err := s.fill(n - (s.w - s.r)); err != nil {
			return nil, err
		}
	}
	s.r += n
	return s.buf[s.r-n : s.r], nil
}

// Some reads at least one byte and at most limit: what has come in.
func (s *Stream) Some(limit int) ([]byte, error) {
	p, err := s.Peek(limit)
	s.r += len(p)
	return p, err
}

// Peek is Some without consuming the bytes. Skip consumes n of them.
func (s *Stream) Peek(limit int) ([]byte, error) {
	for s.r == s.w {
		if err := s.fill(limit); err != nil {
			return nil, err
		}
	}
	return s.buf[s.r:min(s.w, s.r+limit)], nil
}

// Skip takes n bytes that Peek has shown.
func (s *Stream) Skip(n int) { s.r += n }

// fill reads what has come in, at least one byte.
func (s *Stream) fill(want int) error {
	if s.r == s.w {
		s.r, s.w = 0, 0
	}
	end := len(s.buf)
	if s.lazy {
		end = min(end, s.w+want)
	}
	s.wait()
	n, err := s.conn.Read(s.buf[s.w : s.w+s.pace.atOnce(end-s.w)])
	s.w += n
	s.pace.took(n, time.Now())
	if n > 0 {
		return nil
	}
	return err
}

// Drop discards n bytes: those read ahead, then, inside the kernel, those to come.
func (s *Stream) Drop(n int) error {
	ahead := min(n, s.w-s.r)
	s.r += ahead
	for n -= ahead; n > 0; {
		s.wait()
		m, err := s.drop(s.pace.atOnce(n))
		if err != nil {
			return err
		}
		s.pace.took(m, time.Now())
		n -= m
	}
	return nil
}

// grow takes a big buffer from the server's pool.
func (s *Stream) grow() {
	if len(s.buf) == loadBuffer {
		return
	}
	buf, ok := s.server.buffers.Get().(*[loadBuffer]byte)
	if !ok {
		buf = new([loadBuffer]byte)
	}
	s.w = copy(buf[:], s.buf[s.r:s.w])
	s.r, s.buf = 0, buf[:]
}

// shrink returns the big buffer to the pool, unless more than the small one holds was read ahead: then it is kept
// until the end of the next load.
func (s *Stream) shrink() {
	if len(s.buf) != loadBuffer || s.w-s.r > len(s.small) {
		return
	}
	big := s.buf
	s.w = copy(s.small, big[s.r:s.w])
	s.r, s.buf = 0, s.small
	s.server.buffers.Put((*[loadBuffer]byte)(big))
}

// discard reads and forgets, where the kernel cannot drop.
func discard(c net.Conn) func(int) (int, error) {
	var scratch []byte
	return func(limit int) (int, error) {
		if scratch == nil {
			scratch = make([]byte, 2*commandBuffer) // a TLS record
		}
		n, err := c.Read(scratch[:min(limit, len(scratch))])
		if n > 0 {
			return n, nil
		}
		return 0, err
	}
}
