package sink

import (
	"net"
	"time"
)

const (
	commandBuffer = 8 << 10   // enough for commands: ten thousand idle clients cost 80 MB
	loadBuffer    = 256 << 10 // from the first load on; larger ones fall out of the caches
	patience      = 10 * time.Second
)

// Stream is the server's end of a connection. Its buffer belongs to the stream: what Next and Some return is valid
// until the next call.
type Stream struct {
	Options Options

	conn net.Conn
	buf  []byte
	r, w int  // what has been read ahead is buf[r:w]
	lazy bool // nothing is read ahead: what follows will be dropped
	drop func(limit int) (int, error)
}

func newStream(c net.Conn, o Options) *Stream {
	return &Stream{Options: o, conn: c, buf: make([]byte, commandBuffer), drop: dropper(c)}
}

// Hurry ends the connection unless Relax follows within ten seconds: for greetings, where half-open connections hang.
func (s *Stream) Hurry() error { return s.conn.SetDeadline(time.Now().Add(patience)) }

// Relax lets the client take its time again.
func (s *Stream) Relax() error { return s.conn.SetDeadline(time.Time{}) }

// Write sends p to the client.
func (s *Stream) Write(p []byte) (int, error) { return s.conn.Write(p) }

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
	for s.r == s.w {
		if err := s.fill(limit); err != nil {
			return nil, err
		}
	}
	p := s.buf[s.r:min(s.w, s.r+limit)]
	s.r += len(p)
	return p, nil
}

// fill reads what has come in, at least one byte.
func (s *Stream) fill(want int) error {
	if s.r == s.w {
		s.r, s.w = 0, 0
	}
	end := len(s.buf)
	if s.lazy {
		end = min(end, s.w+want)
	}
	n, err := s.conn.Read(s.buf[s.w:end])
	s.w += n
	if n > 0 {
		return nil
	}
	return err
}

// Drop passes over n bytes: those read ahead, then, inside the kernel, those to come.
func (s *Stream) Drop(n int) error {
	ahead := min(n, s.w-s.r)
	s.r += ahead
	for n -= ahead; n > 0; {
		m, err := s.drop(n)
		if err != nil {
			return err
		}
		n -= m
	}
	return nil
}

// RowCounter counts the rows in data that comes in pieces of any size.
type RowCounter interface {
	Write(p []byte)
	Rows() (int64, error) // once all data is there; the error says why it cannot be rows
}

// Load takes in the data of one load.
type Load struct {
	stream *Stream
	count  RowCounter // nil where the data is dropped
	bytes  int64
}

// Load begins a load whose rows count knows.
func (s *Stream) Load(count RowCounter) *Load {
	if s.Options.RowBytes > 0 {
		s.lazy = true
		return &Load{stream: s}
	}
	if len(s.buf) < loadBuffer {
		buf := make([]byte, loadBuffer)
		s.w = copy(buf, s.buf[s.r:s.w])
		s.r, s.buf = 0, buf
	}
	return &Load{stream: s, count: count}
}

// Take takes in the next n bytes of the connection.
func (l *Load) Take(n int) error {
	l.bytes += int64(n)
	if l.count == nil {
		return l.stream.Drop(n)
	}
	for n > 0 {
		p, err := l.stream.Some(n)
		if err != nil {
			return err
		}
		l.count.Write(p)
		n -= len(p)
	}
	return nil
}

// End ends the load and tells what was in it.
func (l *Load) End() (bytes, rows int64, err error) {
	l.stream.lazy = false
	if l.count == nil {
		return l.bytes, l.bytes / l.stream.Options.RowBytes, nil
	}
	rows, err = l.count.Rows()
	return l.bytes, rows, err
}

// discard reads and forgets, where the kernel cannot drop.
func discard(c net.Conn) func(int) (int, error) {
	scratch := make([]byte, commandBuffer)
	return func(limit int) (int, error) {
		n, err := c.Read(scratch[:min(limit, len(scratch))])
		if n > 0 {
			return n, nil
		}
		return 0, err
	}
}
