package files

import (
	"context"
	"fmt"
	"hash/crc32"

	"github.com/terapush/terapush/pkg/batch"
)

// buffer holds a batch: its bytes as they are in the file, and behind them as they are sent, unless that is the same.
type buffer struct {
	memory []byte
	at     Range
	raw    []byte // with a line end at its end
	seen   seen   // in raw
	bad    []*RecordError
}

// takeAhead waits for a buffer that may be filled before somebody asks for its batch.
func (s *Source) takeAhead(ctx context.Context) (*buffer, error) {
	select {
	case <-s.ahead:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b, err := s.take(ctx)
	if err != nil {
		s.ahead <- struct{}{} // has room for every one
	}
	return b, err
}

func (s *Source) putAhead(b *buffer) {
	s.free <- b
	s.ahead <- struct{}{}
}

// take waits for a buffer.
func (s *Source) take(ctx context.Context) (*buffer, error) {
	select {
	case b := <-s.free:
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// again reads the bytes of a known range.
func (s *Source) again(ctx context.Context, number int64) (*batch.Batch, error) {
	r, _ := s.Range(number)
	b, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.reread(ctx, b, r); err != nil {
		s.free <- b
		return nil, err
	}
	return s.hand(b)
}

func (s *Source) reread(ctx context.Context, b *buffer, r Range) error {
	f := s.c.Spec.Files[r.File]
	if f.Path == Stdin {
		return errStdin
	}
	in, err := f.open(ctx, r.From, nil, 0)
	if err != nil {
		return err
	}
	defer in.close()
	return b.read(in, r, s.how)
}

// read reads the bytes of a known range.
func (b *buffer) read(in *stream, r Range, how dialect) error {
	if err := in.skipTo(r.From); err != nil {
		return err
	}
	raw := b.memory[:r.To-r.From]
	n, _, err := in.fill(raw)
	if err != nil {
		return err
	}
	if n < len(raw) {
		return &ChangedError{in.file.Path, fmt.Sprintf("it ends after %d bytes, within batch %d", in.pos, r.Batch)}
	}
	if crc32.Checksum(raw, castagnoli) != r.Hash {
		return &ChangedError{in.file.Path, fmt.Sprintf(
			"bytes %d to %d (from line %d on) are not those of batch %d as it was first read",
			r.From, r.To, r.FirstLine, r.Batch)}
	}
	b.at, b.raw, b.seen = r, raw, seen{}
	if how.format == Parquet {
		return nil
	}
	b.raw = ended(b.memory, n)
	b.seen.look(raw)
	return nil
}

// hand makes the batch of a filled buffer.
func (s *Source) hand(b *buffer) (*batch.Batch, error) {
	encoded, bad := s.dress(b)
	if len(bad) > 0 && !s.c.Skip {
		s.put(b)
		return nil, bad[0]
	}
	first, _ := s.Span(b.at.Batch)
	out := &batch.Batch{
		ID: batch.ID{Run: s.c.Run, Number: b.at.Batch}, Format: s.c.Wire,
		First: first, Rows: b.at.Records - int64(len(bad)), Payload: b.at.To - b.at.From, Encoded: encoded,
		Free: func() { s.put(b) },
	}
	b.bad = bad
	s.mu.Lock()
	s.inUse[b.at.Batch] = b
	s.mu.Unlock()
	out.Hold()
	return out, nil
}

func (s *Source) put(b *buffer) {
	s.mu.Lock()
	if s.inUse[b.at.Batch] == b {
		delete(s.inUse, b.at.Batch)
	}
	s.mu.Unlock()
	b.raw, b.bad = nil, nil
	s.free <- b
}

// Raw returns the records of a batch in use as they are in the file. They are valid until its Release.
func (s *Source) Raw(number int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.inUse[number]; b != nil {
		return b.raw
	}
	return nil
}

// Bad returns the records that a batch in use was made without; see Config.Skip. Its Rows do not count them.
func (s *Source) Bad(number int64) []*RecordError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.inUse[number]; b != nil {
		return b.bad
	}
	return nil
}
