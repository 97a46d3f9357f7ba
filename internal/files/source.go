package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/batch"
)

// Source makes batches of the files' records, in a fixed pool of buffers. It is a source.Source, whose end is known only
// when it is there. It is safe for concurrent use.
type Source struct {
	c    Config
	how  dialect
	stop context.CancelFunc
	done sync.WaitGroup // of cutters and announcer

	read atomic.Int64 // bytes of files, as stored
	all  int64        // −1 if not known

	memory []byte
	free   chan *buffer  // that nobody has
	ahead  chan struct{} // one for each buffer that may hold a batch nobody has asked for

	mu      sync.Mutex
	changed chan struct{}  // closed, and made anew, when anything below changes
	cut     []*buffer      // whose ranges Ahead has not kept yet
	kept    []kept         // by number
	unread  map[int64]bool // known, and to be read first
	ready   map[int64]*buffer
	inUse   map[int64]*buffer
	cutting bool
	err     error // that ended the cutting
	closed  bool
}

// kept is a range and the records of the batches before it.
type kept struct {
	Range
	before int64
}

var _ source.Source = (*Source)(nil)

// New checks the config and that no file has changed, and begins to read ahead. The caller must Close the source.
func New(c Config) (*Source, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	for _, f := range c.Spec.Files {
		if err := f.Check(); err != nil {
			return nil, err
		}
	}

	s := &Source{
		c: c, how: c.Spec.dialect(), free: make(chan *buffer, c.Buffers), ahead: make(chan struct{}, c.Buffers-c.Workers),
		changed: make(chan struct{}), unread: map[int64]bool{}, ready: map[int64]*buffer{}, inUse: map[int64]*buffer{},
		cutting: true,
	}
	if err := s.know(c.Known); err != nil {
		return nil, err
	}
	for i, f := range c.Spec.Files {
		if !s.reads(i) {
			continue
		}
		if s.all += f.Size; f.Size < 0 {
			s.all = -1 // standard input, which stands alone
		}
	}

	memory, err := source.MapMemory(int64(c.Buffers) * c.BufferBytes)
	if err != nil {
		return nil, fmt.Errorf("files: map %d buffers of %d bytes: %w", c.Buffers, c.BufferBytes, err)
	}
	s.memory = memory
	for i := range int64(c.Buffers) {
		from, to := i*c.BufferBytes, (i+1)*c.BufferBytes
		s.free <- &buffer{memory: memory[from:to:to]}
	}
	for range cap(s.ahead) {
		s.ahead <- struct{}{}
	}

	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.done.Go(func() {
		if err := s.readAll(ctx); err != nil {
			s.fail(err)
		}
		s.change(func() { s.cutting = false })
	})
	s.done.Go(func() { s.announce(ctx) })
	return s, nil
}

func (s *Source) reads(file int) bool { return s.c.Only == nil || s.c.Only(file) }

// know takes the ranges of earlier processes. Those of a run are numbered without gaps, and so do those of a file follow
// each other.
func (s *Source) know(ranges []Range) error {
	ranges = slices.SortedFunc(slices.Values(ranges), func(a, b Range) int { return cmp.Compare(a.Batch, b.Batch) })
	ends := make([]int64, len(s.c.Spec.Files))
	for i, r := range ranges {
		if r.Batch != int64(i) || r.File < 0 || r.File >= len(ends) || r.From >= r.To || r.From < ends[r.File] ||
			s.c.Share == nil && ends[r.File] > 0 && r.From > ends[r.File] {
			return fmt.Errorf("files: the ranges that were kept are not whole: batch %d is not where it should be", i)
		}
		if s.c.Spec.Files[r.File].Path == Stdin {
			return errStdin
		}
		ends[r.File] = r.To
		s.keep(r)
		if s.c.Done == nil || !s.c.Done(r.Batch) {
			s.unread[r.Batch] = true
		}
	}
	return nil
}

var errStdin = errors.New("standard input cannot be read again: a run that is to be resumed reads files")

// change calls f under the mutex, and wakes up who waits.
func (s *Source) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// announce has the cut ranges kept, all at once that were cut meanwhile, and hands them out.
func (s *Source) announce(ctx context.Context) {
	for {
		s.mu.Lock()
		cut, changed, end := s.cut, s.changed, !s.cutting
		first := int64(len(s.kept))
		s.mu.Unlock()

		if len(cut) == 0 {
			if end {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
			continue
		}

		ranges := make([]Range, len(cut))
		for i, b := range cut {
			b.at.Batch = first + int64(i)
			ranges[i] = b.at
		}
		if s.c.Ahead != nil {
			if err := s.c.Ahead(ranges); err != nil {
				s.fail(fmt.Errorf("keeping the offsets of %d batches: %w", len(ranges), err))
				return
			}
		}
		s.change(func() {
			s.cut = slices.Clone(s.cut[len(cut):]) // until now they were cut, and not kept: the end is not known
			for _, b := range cut {
				s.keep(b.at)
				s.ready[b.at.Batch] = b
			}
		})
	}
}

// keep adds a range. The caller holds the mutex.
func (s *Source) keep(r Range) {
	var before int64
	if n := len(s.kept); n > 0 {
		before = s.kept[n-1].before + s.kept[n-1].Records
	}
	s.kept = append(s.kept, kept{r, before})
}

// fail ends the cutting with an error.
func (s *Source) fail(err error) {
	s.change(func() {
		if s.err == nil {
			s.err = err
		}
	})
	s.stop()
}

// Batch returns the batch with that number, 0 ≤ number, which the caller must Release. It waits until the batch is cut,
// Ahead has kept its range, and a buffer is free; or until ctx ends, and then returns its error. Beyond the last batch
// it returns an *EndError.
//
// New numbers are asked for in their order, by as many callers as there are workers. Those that were handed out may be
// asked for again, and are read again, but for stdin's.
//
// First of a batch is how many records the batches before it have, so it counts from 0 in the order of numbers.
func (s *Source) Batch(ctx context.Context, number int64) (*batch.Batch, error) {
	for {
		s.mu.Lock()
		changed := s.changed
		b, known, err := s.find(number)
		s.mu.Unlock()

		switch {
		case err != nil:
			return nil, err
		case b != nil:
			s.ahead <- struct{}{} // has room for every one
			return s.hand(b)
		case known:
			return s.again(ctx, number)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// find takes the batch if it is ready. The caller holds the mutex.
func (s *Source) find(number int64) (b *buffer, known bool, err error) {
	b = s.ready[number]
	switch {
	case s.closed:
		return nil, false, source.ErrClosed
	case b != nil:
		delete(s.ready, number)
		return b, true, nil
	case number < int64(len(s.kept)) && !s.unread[number]:
		return nil, true, nil
	case s.err != nil:
		return nil, false, s.err
	case !s.cutting && len(s.cut) == 0 && number >= int64(len(s.kept)):
		return nil, false, &EndError{Batches: int64(len(s.kept))}
	}
	return nil, false, nil
}

// Range returns a batch's range, if it is cut and kept.
func (s *Source) Range(number int64) (Range, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < 0 || number >= int64(len(s.kept)) {
		return Range{}, false
	}
	return s.kept[number].Range, true
}

// End returns how many batches and records there are, once all files are read to their ends.
func (s *Source) End() (batches, records int64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.cutting || len(s.cut) > 0 {
		return 0, 0, false
	}
	if n := len(s.kept); n > 0 {
		batches, records = int64(n), s.kept[n-1].before+s.kept[n-1].Records
	}
	return batches, records, true
}

// Free returns how many buffers hold no batch.
func (s *Source) Free() int { return len(s.free) }

// Progress returns the bytes of the files, as stored, that were read to make the batches so far, and of all files; −1 if
// that is not known.
func (s *Source) Progress() (read, all int64) { return s.read.Load(), s.all }

// Span returns how many records the batches before this one have, and how many it has; none of a batch that is not cut.
func (s *Source) Span(number int64) (first, rows int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < 0 || number >= int64(len(s.kept)) {
		return 0, 0
	}
	return s.kept[number].before, s.kept[number].Records
}

// Proof returns nothing: rows of files are only counted.
func (s *Source) Proof() source.Proof { return source.Proof{} }

// lateClose is how long Close waits for bodies: an http.Transport may close one after it has returned the answer.
const lateClose = 2 * time.Second

// Close ends the reading, and gives back the memory once no batch is in use and no file is being read. If one still is
// after two seconds, it only returns an error.
func (s *Source) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.change(func() {})
	s.stop()

	late := time.NewTimer(lateClose)
	defer late.Stop()
	done := make(chan struct{})
	go func() {
		s.done.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-late.C:
		return errors.New("files: closed while a file is still being read")
	}
	for have := len(s.ready) + len(s.cut); have < s.c.Buffers; have++ {
		select {
		case <-s.free:
		case <-late.C:
			return fmt.Errorf("files: closed with %d batches in use", s.c.Buffers-have)
		}
	}
	return source.UnmapMemory(s.memory)
}
