package sink

import (
	"bufio"
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"sync"
)

// RowCounter counts the rows in data that comes in pieces of any size.
type RowCounter interface {
	Write(p []byte)
	Rows() (int64, error) // once all data is there; the error says why it cannot be rows
}

// DataError is a load whose data cannot be rows.
type DataError struct{ Err error }

func (e *DataError) Error() string { return e.Err.Error() }
func (e *DataError) Unwrap() error { return e.Err }

// loadBuffer is what a load is read by, in bytes. Larger pieces fall out of the caches.
const loadBuffer = 256 << 10

var buffers = sync.Pool{New: func() any { return new([loadBuffer]byte) }}

// Take reads the data of one load to its end and returns its bytes and rows, once it may be answered: after
// Options.AckDelay. With NoCount the data is dropped unread, and the rows are bytes / RowBytes. A *DataError or ErrTold
// means that nothing was loaded; any other error is the reader's. What is acknowledged is the caller's to count, by
// Loaded.
func (c *Conn) Take(data io.Reader, count RowCounter) (size, rows int64, err error) {
	c.server.begin()
	crc := uint32(0)
	var next func() ([]byte, error)
	switch packets, is := data.(*Packets); {
	case is && !c.Options.NoCount:
		next = packets.piece
	case c.Options.NoCount:
		next = reader(data, c.Void())
	default:
		b := buffers.Get().(*[loadBuffer]byte)
		defer buffers.Put(b)
		next = reader(data, b[:])
	}
	for err == nil {
		var p []byte
		p, err = next()
		size += int64(len(p))
		if c.Options.NoCount {
			continue
		}
		count.Write(p)
		if c.Options.CRC {
			crc = crc32.Update(crc, castagnoli, p)
		}
	}
	if !errors.Is(err, io.EOF) {
		return size, 0, err
	}
	switch {
	case !c.Options.NoCount:
		if rows, err = count.Rows(); err != nil {
			return size, 0, &DataError{err}
		}
	case c.Options.RowBytes > 0:
		rows = size / c.Options.RowBytes
	}
	return size, rows, c.settle(crc)
}

func reader(r io.Reader, buf []byte) func() ([]byte, error) {
	return func() ([]byte, error) {
		n, err := r.Read(buf)
		return buf[:n], err
	}
}

// settle ends a load, also one that came as a statement: it waits for Options.AckDelay, and returns ErrTold where the
// load has to fail. crc is the checksum of the load's data, 0 where none was asked for.
func (c *Conn) settle(crc uint32) error {
	s := c.server
	s.begin()
	c.sleep(c.Options.AckDelay)
	if n := s.loads.Add(1); c.Options.Fail > 0 && n%c.Options.Fail == 0 {
		s.failed.Add(1)
		return ErrTold
	}
	if c.Options.CRC {
		s.sum(crc)
	}
	return nil
}

var wideReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, loadBuffer) }}

// Wide runs f with a big buffer in place of the small one that a connection has while nothing is loaded: where data
// comes in packets of a few KiB, each would take a read of its own. Data that is dropped stays with the small one.
func (c *Conn) Wide(in *bufio.Reader, f func(wide *bufio.Reader) error) error {
	if c.Options.NoCount {
		return f(in)
	}
	wide := wideReaders.Get().(*bufio.Reader)
	defer wideReaders.Put(wide)
	move := func(from, to *bufio.Reader) {
		ahead, _ := from.Peek(from.Buffered())
		to.Reset(&prefixed{Conn: c, prefix: bytes.Clone(ahead)})
	}
	move(in, wide)
	err := f(wide)
	move(wide, in)
	wide.Reset(nil)
	return err
}

// Packets reads the data of packets: a header, which next reads, and the bytes that it announces. The end is next's
// io.EOF.
type Packets struct {
	In   *bufio.Reader
	Next func() (length int, err error)
	left int
}

// Read reads from one packet.
func (p *Packets) Read(to []byte) (int, error) {
	if err := p.begin(); err != nil {
		return 0, err
	}
	n, err := p.In.Read(to[:min(len(to), p.left)])
	p.left -= n
	return n, unexpected(err)
}

// piece returns what lies in the buffer of the packet, for a load that is counted in place.
func (p *Packets) piece() ([]byte, error) {
	if err := p.begin(); err != nil {
		return nil, err
	}
	if p.In.Buffered() == 0 {
		if _, err := p.In.Peek(1); err != nil {
			return nil, unexpected(err)
		}
	}
	b, err := p.In.Peek(min(p.left, p.In.Buffered()))
	p.left -= len(b)
	_, _ = p.In.Discard(len(b)) // it stays where it is until the next read
	return b, err
}

func (p *Packets) begin() (err error) {
	for p.left == 0 && err == nil {
		p.left, err = p.Next()
	}
	return err
}

// Statement counts a statement.
func (c *Conn) Statement() { c.server.statements.Add(1) }

// Loaded counts what an acknowledged load brought.
func (c *Conn) Loaded(bytes, rows int64) { c.server.loaded(bytes, rows) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Insert counts the rows that a statement brings in its text. ErrTold means that it has to fail.
func (c *Conn) Insert(s Statement) error {
	crc := uint32(0)
	if c.Options.CRC {
		crc = crc32.Checksum([]byte(s.Text), castagnoli)
	}
	if err := c.settle(crc); err != nil {
		return err
	}
	c.Loaded(int64(len(s.Text)), s.Rows)
	return nil
}

// unexpected keeps the end of a connection apart from the end of a load's data.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
