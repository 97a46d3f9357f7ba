package sink

import (
	"hash/crc32"
	"time"
)

// RowCounter counts the rows in data that comes in pieces of any size.
type RowCounter interface {
	Write(p []byte)
	Rows() (int64, error) // once all data is there; the error says why it cannot be rows
}

// Load takes in the data of one load. It ends with End or GiveUp.
type Load struct {
	stream *Stream
	count  RowCounter // nil where the data is dropped
	bytes  int64
	crc    uint32
}

// Load begins a load whose rows count knows.
func (s *Stream) Load(count RowCounter) *Load {
	s.server.begun()
	if s.Options.NoCount {
		s.lazy = true
		return &Load{stream: s}
	}
	s.grow()
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
		if l.stream.Options.CRC {
			l.crc = Checksum(l.crc, p)
		}
		n -= len(p)
	}
	return nil
}

// End ends a load whose data is all there and returns what was in it. It waits for Options.AckDelay before it returns.
// The error is the counter's, or ErrTold; nothing was loaded then.
func (l *Load) End() (bytes, rows int64, err error) {
	l.GiveUp()
	switch {
	case l.count != nil:
		rows, err = l.count.Rows()
	case l.stream.Options.RowBytes > 0:
		rows = l.bytes / l.stream.Options.RowBytes
	}
	if err == nil {
		err = l.stream.Settle(l.crc)
	}
	return l.bytes, rows, err
}

// GiveUp ends a load that its client has aborted.
func (l *Load) GiveUp() {
	l.stream.lazy = false
	l.stream.shrink()
}

// Settle is the end of every load, also of one that came as a statement: it waits for Options.AckDelay, and is
// ErrTold where the load has to fail. crc is the checksum of its data, 0 where none was asked for.
func (s *Stream) Settle(crc uint32) error {
	s.server.begun()
	if s.Options.AckDelay > 0 {
		s.sleep(s.Options.AckDelay)
	}
	if n := s.server.loads.Add(1); s.Options.Fail > 0 && n%s.Options.Fail == 0 {
		s.server.failed.Add(1)
		return ErrTold
	}
	if s.Options.CRC {
		s.server.sum(crc)
	}
	return nil
}

// sleep ends early when the server closes.
func (s *Stream) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.server.closing:
	}
}

// Checksum returns the CRC-32C of what crc is the checksum of, with p behind it. It begins with 0.
func Checksum(crc uint32, p []byte) uint32 { return crc32.Update(crc, castagnoli, p) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
