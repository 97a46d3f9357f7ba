package sink

import (
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
// means that nothing was loaded; any other error is the reader's. What is acknowledged is the caller's to count, by Loaded.
func (c *Conn) Take(data io.Reader, count RowCounter) (bytes, rows int64, err error) {
	c.server.begin()
	crc := uint32(0)
	var buf []byte
	if c.Options.NoCount {
		buf = c.Void()
	} else {
		b := buffers.Get().(*[loadBuffer]byte)
		defer buffers.Put(b)
		buf = b[:]
	}
	for err == nil {
		var n int
		n, err = data.Read(buf)
		bytes += int64(n)
		if c.Options.NoCount {
			continue
		}
		count.Write(buf[:n])
		if c.Options.CRC {
			crc = Checksum(crc, buf[:n])
		}
	}
	if !errors.Is(err, io.EOF) {
		return bytes, 0, err
	}
	switch {
	case !c.Options.NoCount:
		if rows, err = count.Rows(); err != nil {
			return bytes, 0, &DataError{err}
		}
	case c.Options.RowBytes > 0:
		rows = bytes / c.Options.RowBytes
	}
	return bytes, rows, c.Settle(crc)
}

// Settle ends a load, also one that came as a statement: it waits for Options.AckDelay, and returns ErrTold where the load
// has to fail. crc is the checksum of the load's data, 0 where none was asked for.
func (c *Conn) Settle(crc uint32) error {
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

// Statement counts a statement.
func (c *Conn) Statement() { c.server.statements.Add(1) }

// Loaded counts what an acknowledged load brought.
func (c *Conn) Loaded(bytes, rows int64) { c.server.loaded(bytes, rows) }

// Checksum returns the CRC-32C of what crc is the checksum of, with p behind it. It begins with 0.
func Checksum(crc uint32, p []byte) uint32 { return crc32.Update(crc, castagnoli, p) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum returns that of a load that came as a statement, 0 where none was asked for.
func (c *Conn) Checksum(sql string) uint32 {
	if !c.Options.CRC {
		return 0
	}
	return Checksum(0, []byte(sql))
}

// Unexpected keeps the end of a connection apart from the end of a load's data.
func Unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
