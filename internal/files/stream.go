package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
)

// stream is the decompressed bytes of a file from an offset on.
type stream struct {
	io.Reader
	file    File
	stored  counter
	pos     int64 // of the next byte, decompressed
	closers []func() error
}

// counter counts the bytes that are read of a file as it is stored; zstd reads them in a goroutine of its own.
type counter struct {
	in  io.Reader
	n   atomic.Int64
	all *atomic.Int64 // of all files, may be nil
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.add(int64(n))
	return n, err
}

func (c *counter) add(n int64) {
	c.n.Add(n)
	if c.all != nil {
		c.all.Add(n)
	}
}

// open opens the file at an offset of its decompressed bytes. A compressed one is decompressed from its beginning. The
// bytes read are counted, unless count is nil. parallel is how many files are read at a time, 0 if this one is only to
// be decompressed in one go.
func (f File) open(ctx context.Context, from int64, count *atomic.Int64, parallel int) (*stream, error) {
	switch {
	case f.Path == Stdin:
		return f.decompress(stdin(), stdin().until(ctx), from, count, parallel)
	case f.object != nil:
		in := f.object.open(ctx, f)
		return f.decompress(in, in.Close, from, count, parallel)
	case InBucket(f.Path):
		return nil, fmt.Errorf("%s: no object store is connected", f.Path)
	}
	in, err := os.Open(f.Path)
	if err != nil {
		return nil, f.gone(err)
	}
	return f.decompress(in, in.Close, from, count, parallel)
}

// decompress returns the stream of a file's stored bytes, which it closes, unless nil.
func (f File) decompress(in io.Reader, closeIn func() error, from int64, count *atomic.Int64, parallel int) (_ *stream, err error) {
	s := &stream{file: f}
	s.stored.in, s.stored.all = in, count
	if closeIn != nil {
		s.closers = append(s.closers, closeIn)
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()

	s.Reader = &s.stored
	if f.Compression != Plain {
		var plain io.ReadCloser
		if plain, err = decompressed(&s.stored, f.Compression, parallel); err == nil {
			s.Reader = plain
			s.closers = append(s.closers, plain.Close)
		}
	}
	if err != nil {
		return nil, s.broken(err)
	}
	return s, s.skipTo(from)
}

// fill reads until p is full or the file ends, which is not an error.
func (s *stream) fill(p []byte) (n int, ended bool, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = s.Read(p[n:])
		n += more
		s.pos += int64(more)
	}
	if s.file.Size >= 0 && s.stored.n.Load() > s.file.Size {
		return n, false, &ChangedError{s.file.Path, fmt.Sprintf("it goes on behind the %d bytes that it had when the run began", s.file.Size)}
	}
	switch {
	case err == nil, n == len(p):
		return n, false, nil // an error comes again
	case errors.Is(err, io.EOF):
		return n, true, nil
	}
	return n, false, s.broken(err)
}

// skipTo goes forward to an offset.
func (s *stream) skipTo(at int64) error {
	n := at - s.pos
	if seeker, ok := s.stored.in.(io.Seeker); ok && s.file.Compression == Plain {
		_, err := seeker.Seek(at, io.SeekStart)
		s.pos = at
		s.stored.add(n)
		return err
	}
	done, err := io.CopyN(io.Discard, s.Reader, n)
	s.pos += done
	if errors.Is(err, io.EOF) {
		return &ChangedError{s.file.Path, fmt.Sprintf("it ends after %d bytes, and batches lie behind", s.pos)}
	}
	if err != nil {
		return s.broken(err)
	}
	return nil
}

// whole returns a *ChangedError unless the file ends where it did when the run began.
func (s *stream) whole() error {
	if n := s.stored.n.Load(); s.file.Size >= 0 && n != s.file.Size {
		return &ChangedError{s.file.Path, fmt.Sprintf("it ends after %d bytes, and had %d when the run began", n, s.file.Size)}
	}
	return s.file.Check()
}

func (s *stream) broken(err error) error {
	if errors.As(err, new(*ChangedError)) {
		return err
	}
	if s.file.Compression != Plain && errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: the %s data break off after %d bytes (%d decompressed): the file is incomplete",
			s.file.Name(), s.file.Compression, s.stored.n.Load(), s.pos)
	}
	if errors.Is(err, gzip.ErrHeader) {
		return fmt.Errorf("%s: behind %d bytes of gzip data (decompressed) there are others: decompress it, or pipe it: "+
			"gzip -dc … | terapush load … -", s.file.Name(), s.pos)
	}
	return fmt.Errorf("reading %s after %d bytes: %w", s.file.Name(), s.stored.n.Load(), err)
}

// close closes the file. It was only read, so nothing is lost by an error.
func (s *stream) close() {
	for _, c := range slices.Backward(s.closers) {
		_ = c()
	}
	s.closers = nil
}
