package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/batch"
)

// Config configures a Source.
type Config struct {
	Spec Spec
	Run  string // the run's id

	// Wire is what the batches are sent as. batch.CSV and batch.PGText are what the COPY of every PostgreSQL from 12 on
	// reads as Spec says, with its DELIMITER, QUOTE, ESCAPE and NULL: the file's bytes, but for carriage returns before a
	// line's end and lines that would end the COPY. CSV files go as batch.CSV, the others as batch.PGText. batch.TSV is
	// what LOAD DATA reads by default: tabs, \N, backslashes, a line a record; every format goes as that.
	//
	// Rewrite, with batch.CSV, is for servers that read csv in a way of their own: every format goes as csv that all read
	// the same way, as this program's encoders write it, with commas, doubled quotes and an unquoted \N for NULL.
	Wire    batch.Format
	Rewrite bool
	// Fields is how many fields a record has, ≥ 1. Records with more or fewer are a *RecordError where they are taken
	// apart, to be rewritten. Elsewhere the database counts.
	Fields int

	BatchBytes  int64 // of the file in a batch: it ends with the last record that ends within them, or else the first
	Buffers     int   // > Workers; the others are filled ahead
	Workers     int   // ≥ 1; how many batches are in use at a time
	BufferBytes int64 // of one; see Source.MaxRecord
	Parallel    int   // files that are read and decompressed at a time, ≥ 1

	// Only says which files are read, and Share which ranges of them, by Range.Nth; nil = all. The others belong to other
	// shards. Every shard cuts the same ranges from a file, if BatchBytes, BufferBytes and Wire are the same, and reads the
	// whole file for its share.
	Only  func(file int) bool
	Share func(file int, nth int64) bool
	// Known are the ranges that Ahead has kept in earlier processes of this run, in any order, and Done says which of them
	// are delivered; nil = none. The others are read first, and must be asked for in the order of their numbers.
	Known []Range
	Done  func(batch int64) bool
	// Ahead keeps ranges on disk. Their numbers follow those that it was given before. When it has returned nil they may be
	// handed out. It is called by one goroutine at a time. nil: nothing is kept, as for a run that cannot be resumed.
	Ahead func([]Range) error
	// Skip leaves bad records out of their batch, and keeps them for Source.Bad; a batch may be without rows then. Otherwise
	// the first is Batch's error.
	Skip bool
}

// slack is room in a buffer for a line end that the file lacks, and for bytes copied eight at a time.
const slack = 64

// MaxRecord returns the longest record that fits a buffer, in bytes of the file. The rest of the buffer is for the
// record as it is sent: an empty field of LOAD DATA's has three bytes, a line \. of COPY's five.
func (c Config) MaxRecord() int64 {
	if c.Wire == batch.CSV && !c.Rewrite {
		return (c.BufferBytes - slack) / 8 * 3
	}
	return (c.BufferBytes - slack) / 4
}

// WireSpec says how the records of a batch are written: for Spec.Records on its Encoded.
func (c Config) WireSpec() Spec {
	switch {
	case c.Wire == batch.TSV:
		return NewSpec(TSV)
	case c.Rewrite:
		s := NewSpec(CSV)
		s.Null = `\N`
		return s
	}
	s := c.Spec
	if s.Format == TSV {
		s.Format = Text
	}
	return s
}

func (c Config) check() error {
	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("files: "+format, args...))
		}
	}
	wire := batch.PGText
	if c.Spec.Format == CSV {
		wire = batch.CSV
	}
	check(c.Wire == batch.TSV || c.Wire == wire && !c.Rewrite || c.Wire == batch.CSV && c.Rewrite,
		"%s cannot be sent as %s", c.Spec.Format, c.Wire)
	check(c.Fields >= 1, "%d fields: a record has at least 1", c.Fields)
	check(c.Workers >= 1 && c.Buffers > c.Workers, "%d buffers for %d workers: one more than workers is needed", c.Buffers, c.Workers)
	check(c.BatchBytes >= 1 && c.BatchBytes <= c.MaxRecord(), "a batch of %d bytes does not fit a buffer, which takes %d",
		c.BatchBytes, c.MaxRecord())
	check(c.Parallel >= 1, "%d files at a time: at least 1 is read", c.Parallel)
	return errors.Join(append(problems, c.Spec.Check())...)
}

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

// buffer holds a batch: its bytes as they are in the file, and behind them as they are sent, unless that is the same.
type buffer struct {
	memory []byte
	at     Range
	raw    []byte // with a line end at its end
	seen   seen   // in raw
	bad    []*RecordError
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
	in, err := f.open(ctx, r.From, nil)
	if err != nil {
		return err
	}
	defer in.close()
	return b.read(in, r)
}

// read reads the bytes of a known range.
func (b *buffer) read(in *stream, r Range) error {
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
		return &ChangedError{in.file.Path, fmt.Sprintf("bytes %d to %d (from line %d on) are not those of batch %d as it was first read",
			r.From, r.To, r.FirstLine, r.Batch)}
	}
	b.at, b.raw, b.seen = r, ended(b.memory, n), seen{}
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

// Range returns a batch's range, if it is cut and kept.
func (s *Source) Range(number int64) (Range, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < 0 || number >= int64(len(s.kept)) {
		return Range{}, false
	}
	return s.kept[number].Range, true
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
