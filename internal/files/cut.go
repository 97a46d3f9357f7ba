package files

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"slices"
)

// piece is how much is read, scanned and hashed at a time, so that it is still in the CPU's second-level cache.
const piece = 256 << 10

// castagnoli is the polynomial that CPUs have an instruction for: twice as fast as xxHash.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// cutter cuts one file.
type cutter struct {
	*Source
	file  File
	in    *stream // nil: not opened yet
	next  Range   // empty: where the next range begins
	carry []byte  // read, from there on
	eof   bool    // nothing is to be read any more
}

func (s *Source) newCutter(file int) *cutter {
	return &cutter{Source: s, file: s.c.Spec.Files[file], next: Range{File: file, FirstLine: 1}}
}

// cutFile cuts the rest of a file.
func (c *cutter) cutFile(ctx context.Context) (err error) {
	if err := c.open(ctx, c.next.From); err != nil {
		return err
	}
	defer c.close()
	switch {
	case c.how.format == Parquet:
	case c.next.From == 0:
		err = c.skipHeader()
	default:
		err = c.in.skipTo(c.next.From)
	}
	if err != nil {
		return err
	}

	for !c.eof {
		b, err := c.takeAhead(ctx)
		if err != nil {
			return err
		}
		more, err := c.cutMine(ctx, b)
		if err != nil || !more {
			c.putAhead(b)
			return err
		}
		c.change(func() { c.Source.cut = append(c.Source.cut, b) })
	}
	return nil
}

// cutMine reads the next range of this shard into a buffer, and reports whether there is one.
func (c *cutter) cutMine(ctx context.Context, b *buffer) (bool, error) {
	for {
		more, err := c.cut(b)
		if err != nil || !more || c.c.Share == nil || c.c.Share(b.at.File, b.at.Nth) {
			return more, err
		}
		if c.eof {
			return false, nil
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
}

// open opens the file at an offset, unless it is open. One that was replaced since the run began is refused before a
// batch of it is sent.
func (c *cutter) open(ctx context.Context, from int64) (err error) {
	if c.in != nil {
		return nil
	}
	if err := c.file.Check(); err != nil {
		return err
	}
	c.in, err = c.file.open(ctx, from, &c.read, c.c.Parallel)
	return err
}

// close closes the file, and returns how many of its bytes were read.
func (c *cutter) close() int64 {
	if c.in == nil {
		return 0
	}
	c.in.close()
	return c.in.stored.n.Load()
}

// after returns the empty range that follows.
func after(r Range) Range {
	return Range{
		File: r.File, Nth: r.Nth + 1, From: r.To, To: r.To, FirstRecord: r.FirstRecord + r.Records, FirstLine: r.FirstLine + r.Lines,
	}
}

// skipHeader skips a byte order mark and the header.
func (c *cutter) skipHeader() error {
	head, header, err := readHead(c.in, c.how, c.c.Spec.Header)
	if err != nil {
		return err
	}
	c.next.From = int64(header.to)
	c.next.To = c.next.From
	c.next.FirstLine += header.lines
	c.carry = head[header.to:]
	return nil
}

// cut reads the next range into a buffer, and reports whether there is one.
func (c *cutter) cut(b *buffer) (bool, error) {
	if c.how.format == Parquet {
		return c.cutWhole(b)
	}
	scan := scanner{how: c.how}
	most, want := int(c.c.MaxRecord()), int(c.c.BatchBytes)
	r := c.next
	hash, hashed := uint32(0), 0
	n := 0
	take := func(got int) {
		scan.scan(b.memory[n : n+got])
		n += got
		hash = crc32.Update(hash, castagnoli, b.memory[hashed:scan.end])
		hashed = int(scan.end)
	}

	for !c.eof && (n < want || scan.end == 0) {
		// Shards may have other buffers, and have to cut the same ranges.
		if n == most || c.c.Share != nil && n >= want && n+piece > most {
			return false, c.tooLong(b.memory[:n], scan)
		}
		upTo := n + piece
		if n < want {
			upTo = min(upTo, want)
		}
		got, eof, err := c.fill(b.memory[n:min(upTo, most)])
		if err != nil {
			return false, err
		}
		take(got)
		if c.eof = eof; eof {
			err = c.in.whole()
		}
		if err != nil {
			return false, err
		}
	}
	if n == 0 {
		return false, nil
	}

	r.Records, r.Lines = scan.records, scan.lines-scan.open
	if c.eof && scan.end < int64(n) {
		if scan.inQuote || scan.escaped {
			r.Incomplete = int64(n) - scan.end
		}
		hash = crc32.Update(hash, castagnoli, b.memory[hashed:n])
		scan.end = int64(n)
		r.Records++
		r.Lines = scan.lines
	}
	r.To = r.From + scan.end
	r.Hash = hash
	c.carry = slices.Concat(b.memory[scan.end:n], c.carry)
	r.Last = c.eof
	c.next = after(r)
	b.at, b.raw, b.seen = r, ended(b.memory, int(scan.end)), scan.seen
	return true, nil
}

// fill reads what was carried, and then the file.
func (c *cutter) fill(p []byte) (int, bool, error) {
	carried := copy(p, c.carry)
	c.carry = c.carry[carried:]
	if carried == len(p) {
		return carried, false, nil
	}
	n, eof, err := c.in.fill(p[carried:])
	return carried + n, eof, err
}

// ended returns the first n bytes with a line end at their end, as the first line has one.
func ended(memory []byte, n int) []byte {
	if memory[n-1] == '\n' {
		return memory[:n]
	}
	if first := bytes.IndexByte(memory[:n], '\n'); first > 0 && memory[first-1] == '\r' && memory[n-1] != '\r' {
		memory[n] = '\r'
		n++
	}
	memory[n] = '\n'
	return memory[:n+1]
}

func (c *cutter) tooLong(p []byte, scan scanner) error {
	err := &LongRecordError{Path: c.file.Name(), Line: c.next.FirstLine, Most: int64(len(p))}
	if scan.inQuote {
		err.Quote = c.next.FirstLine + c.how.openQuote(p)
	}
	return err
}

// incomplete returns the record with which the file of a batch ends before the record does, nil if it does not.
func (s *Source) incomplete(b *buffer) *RecordError {
	r := b.at
	if r.Incomplete == 0 {
		return nil
	}
	record := b.raw[r.To-r.From-r.Incomplete : r.To-r.From]
	line := r.FirstLine + r.Lines - int64(bytes.Count(record, newline))
	why := "the file ends with a backslash, and the record is incomplete"
	if s.how.format == CSV {
		why = fmt.Sprintf("the quote that opens in line %d is never closed", line+s.how.openQuote(record))
	}
	return &RecordError{Path: s.c.Spec.Files[r.File].Name(), Line: line, Why: why, Record: bytes.Clone(record)}
}

// openQuote returns how many lines lie before the quoted part that is open at the end of a record's bytes.
func (d dialect) openQuote(p []byte) (opens int64) {
	var lines int64
	inQuote, escaped := false, false
	closed := -1 // where a quote closed the part
	for i, c := range p {
		switch {
		case escaped:
			escaped = false
		case inQuote && c == d.escape && d.escape != d.quote:
			escaped = true
		case c == d.quote && inQuote:
			inQuote, closed = false, i
		case c == d.quote:
			if inQuote = true; closed < 0 || closed != i-1 {
				opens = lines
			}
		}
		if c == '\n' {
			lines++
		}
	}
	return opens
}
