package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// piece is how much is read and scanned at a time, so that it is still in the CPU's second-level cache.
const piece = 256 << 10

// cutFiles cuts one file after the other.
func (s *Source) cutFiles(ctx context.Context, next <-chan int) {
	defer s.change(func() { s.cutting-- })
	for file := range next {
		err := s.cutFile(ctx, file)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.fail(err)
			return
		}
	}
}

// cutter cuts one file.
type cutter struct {
	*Source
	in    *stream
	next  Range  // where the next range begins
	carry []byte // read, behind the last range
	eof   bool
}

func (s *Source) cutFile(ctx context.Context, file int) error {
	f := s.c.Spec.Files[file]
	begin, err := s.c.Spec.start(file)
	if err != nil {
		return err
	}
	c := &cutter{Source: s, next: begin}
	for _, k := range s.c.Known {
		if k.File == file && k.To > c.next.From {
			c.next = after(k)
		}
	}
	in, err := f.open(c.next.From)
	if err != nil {
		return err
	}
	defer in.Close()
	c.in = in

	for stored := int64(0); ; {
		b, err := c.buffer(ctx)
		if err != nil {
			return err
		}
		more, err := c.fill(b)
		if err != nil || !more {
			s.free <- b
			s.ahead <- struct{}{}
			return err
		}
		s.read.Add(in.stored.n - stored)
		stored = in.stored.n
		s.change(func() { s.cut = append(s.cut, b) })
	}
}

// buffer waits for one.
func (c *cutter) buffer(ctx context.Context) (*buffer, error) {
	select {
	case <-c.ahead:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case b := <-c.free:
		return b, nil
	case <-ctx.Done():
		c.ahead <- struct{}{}
		return nil, ctx.Err()
	}
}

// after returns the empty range that follows.
func after(r Range) Range {
	return Range{
		File: r.File, From: r.To, To: r.To, FirstRecord: r.FirstRecord + r.Records, FirstLine: r.FirstLine + r.Lines,
	}
}

// fill reads the next range into a buffer, and reports whether there is one.
func (c *cutter) fill(b *buffer) (bool, error) {
	scan := scanner{how: c.how}
	n := copy(b.memory, c.carry)
	scan.scan(b.memory[:n])
	most, want := int(c.c.MaxRecord()), int(c.c.BatchBytes)

	for !c.eof && (n < want || scan.end == 0) {
		if n == most {
			return false, c.tooLong(b.memory[:n])
		}
		upTo := n + piece
		if n < want {
			upTo = min(upTo, want)
		}
		got, eof, err := c.in.fill(b.memory[n:min(upTo, most)])
		if err != nil {
			return false, err
		}
		scan.scan(b.memory[n : n+got])
		n += got
		c.eof = eof
	}
	if n == 0 {
		return false, nil
	}

	r := c.next
	size := int(scan.end)
	r.Records, r.Lines = scan.records, scan.lines-scan.open
	if c.eof && size < n {
		if scan.inQuote || scan.escaped {
			return false, c.unclosed(b.memory[:n], scan)
		}
		size = n
		r.Records++
		r.Lines = scan.lines
	}
	r.To = r.From + int64(size)
	r.Hash = xxhash.Sum64(b.memory[:size])
	c.carry = append(c.carry[:0], b.memory[size:n]...)
	c.next = after(r)
	b.at, b.raw = r, ended(b.memory, size)
	return true, nil
}

// ended returns the first n bytes with a line end at their end.
func ended(memory []byte, n int) []byte {
	if memory[n-1] != '\n' {
		memory[n] = '\n'
		n++
	}
	return memory[:n]
}

func (c *cutter) tooLong(p []byte) error {
	return &LongRecordError{Path: c.in.file.Path, Line: c.next.FirstLine, Most: int64(len(p))}
}

func (c *cutter) unclosed(p []byte, scan scanner) error {
	if scan.escaped {
		return fmt.Errorf("%s ends with a backslash: its last record is incomplete", c.in.file.Path)
	}
	return errors.New("a quote never closes")
}
