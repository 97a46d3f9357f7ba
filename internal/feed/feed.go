// Package feed makes batches ready to send, in a fixed ring of buffers whose size is the program's memory.
//
// Row i of a run has the drawn columns of dataset row i mod D. With B rows a batch, and D a multiple of B, batch k equals
// batch k mod (D/B), its template, except for the derived columns. Templates are encoded before the clock starts. A batch
// is made by stamping the derived fields of a buffer that holds its template, one memory access a row. If no free buffer
// holds it, because it is still being sent or there are fewer buffers than templates, a free buffer is encoded again: a
// refill. So a straggler, a retry or a small machine costs CPU, but no caller waits for a particular buffer.
//
// A format that cannot be stamped (compressed ones) is encoded for every batch. These are not refills: more memory would not avoid
// them.
//
// The engine chooses: it asks for a batch by number and holds it for all attempts.
package feed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
)

// ErrClosed is returned by calls on a closed feed.
var ErrClosed = errors.New("feed: closed")

// Feed makes the batches of one run. It is safe for concurrent use.
type Feed struct {
	plan   plan
	memory []byte // of all buffers, and then of all their offsets

	offsets int64 // of a buffer

	// free has one token for each buffer in stock; who receives one may take a buffer. Go serves receivers in their order.
	free    chan struct{}
	scratch sync.Pool // of *scratch
	refills atomic.Int64

	mu     sync.Mutex
	stock  stock
	closed bool
}

// content identifies what a buffer holds. The run's last batch may have fewer rows than others of its template.
type content struct {
	template int64
	rows     int
}

// buffer is one of the ring. It belongs to the stock, to the caller who took it, or to a batch in use. It is kept small:
// of small batches there are hundreds of thousands.
type buffer struct {
	at      int64   // its number in the ring, which says where its memory is
	length  uint32  // bytes of the encoded batch
	payload int64   // bytes
	number  int64   // the batch that is encoded, −1 = none
	content content // of that batch

	before, after *buffer // in a list of stock
	chained       *buffer // the next one in its chain of stock
}

// New reserves the memory of the ring; Fill touches it.
func New(c Config) (*Feed, error) {
	p, err := newPlan(c)
	if err != nil {
		return nil, err
	}
	f := &Feed{plan: p, free: make(chan struct{}, c.Buffers)}
	f.stock.init(c.Buffers)
	f.scratch.New = func() any { return newScratch(p) }
	if f.memory, err = mapMemory(Memory(c)); err != nil {
		return nil, fmt.Errorf("feed: map %d buffers of %d bytes: %w", c.Buffers, Memory(c)/int64(c.Buffers), err)
	}
	f.offsets = offsets(c)
	all := make([]buffer, c.Buffers)
	for i := range all {
		all[i].at, all[i].number = int64(i), -1
		f.put(&all[i])
	}
	return f, nil
}

// memoryOf returns the buffer's memory.
func (f *Feed) memoryOf(b *buffer) []byte {
	from, to := b.at*f.plan.bufferBytes, (b.at+1)*f.plan.bufferBytes
	return f.memory[from:to:to]
}

// offsetsOf returns the offsets of a buffer with that many rows. They lie behind the last buffer: of short rows they are a
// tenth of the ring, and on the heap the garbage collector would let as much again be garbage.
func (f *Feed) offsetsOf(b *buffer, rows int) encode.Offsets {
	memory := f.memory[f.plan.bufferBytes*int64(f.Buffers())+4*f.offsets*b.at:]
	fields := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(memory))), f.offsets)
	return encode.Offsets{Fields: fields, Rows: rows}
}

// Fill encodes the first batches that are not done, one for each buffer, `parallel` at a time, so that templates exist and
// memory is mapped before the clock starts. After each it calls progress, unless nil, with the encoded bytes, from several
// goroutines. When ctx ends, Fill returns its error.
func (f *Feed) Fill(ctx context.Context, parallel int, progress func(bytes int64)) error {
	wanted := f.plan.first(f.Buffers())
	filled := make([]*buffer, len(wanted))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, parallel))
	for i, number := range wanted {
		g.Go(func() error {
			b, _, err := f.make(ctx, number)
			if err != nil {
				return err
			}
			filled[i] = b
			if progress != nil {
				progress(int64(b.length))
			}
			return nil
		})
	}
	err := g.Wait()
	// Each needs its own buffer, so they are held until now, and released in the order in which they are needed.
	for _, b := range filled {
		if b != nil {
			f.put(b)
		}
	}
	return err
}

// Batch returns the batch with that number, 0 ≤ number. It waits for a free buffer, or until ctx ends, and then returns its
// error. The caller must Release the batch. Its buffer returns to the ring once every body opened on it is closed as well.
func (f *Feed) Batch(ctx context.Context, number int64) (*batch.Batch, error) {
	buf, refill, err := f.make(ctx, number)
	if err != nil {
		return nil, err
	}
	if refill {
		f.refills.Add(1)
	}
	b := &batch.Batch{
		ID:      batch.ID{Run: f.plan.Run, Number: number},
		Format:  f.plan.Encoder.Format(),
		First:   f.plan.FirstKey + number*f.plan.BatchRows,
		Rows:    int64(buf.content.rows),
		Payload: buf.payload,
		Encoded: f.memoryOf(buf)[:buf.length],
		Free:    func() { f.put(buf) },
	}
	b.Hold()
	return b, nil
}

// make waits for a free buffer and makes the batch in it; refill reports whether a template that repeats had to be
// encoded.
func (f *Feed) make(ctx context.Context, number int64) (buf *buffer, refill bool, err error) {
	if number < 0 || number >= f.plan.batches {
		return nil, false, fmt.Errorf("feed: batch %d does not exist: the run has %d", number, f.plan.batches)
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	select {
	case <-f.free:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	buf, hit, err := f.take(number)
	if err != nil {
		return nil, false, err
	}
	switch {
	case hit && buf.number == number:
	case hit && f.plan.stamper != nil:
		f.stamp(buf, number)
	default:
		refill = f.plan.Distinct > 0 && f.plan.stamper != nil
		if err := f.encode(buf, number); err != nil {
			f.put(buf)
			return nil, false, err
		}
	}
	return buf, refill, nil
}

// take removes a buffer from the stock. The caller must have a token.
func (f *Feed) take(number int64) (buf *buffer, hit bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		f.free <- struct{}{}
		return nil, false, ErrClosed
	}
	buf, hit = f.stock.take(f.plan.content(number))
	return buf, hit, nil
}

func (f *Feed) put(buf *buffer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stock.add(buf)
	f.free <- struct{}{} // has room for every buffer
}

// Buffers returns the size of the ring.
func (f *Feed) Buffers() int { return cap(f.free) }

// Free returns how many buffers are not in use.
func (f *Feed) Free() int { return len(f.free) }

// Refills returns how many batches were encoded after Fill although their template repeats. It is 0 if all rows are
// distinct.
func (f *Feed) Refills() int64 { return f.refills.Load() }

// lateClose is how long Close waits for bodies: an http.Transport may close one after it has returned the answer.
const lateClose = 2 * time.Second

// Close unmaps the ring once no batch is in use. If one still is after two seconds, it only returns an error: reading unmapped
// memory would end the program.
func (f *Feed) Close() error {
	late := time.NewTimer(lateClose)
	defer late.Stop()
	back := 0
	defer func() {
		for range back { // a later Batch must not wait
			f.free <- struct{}{}
		}
	}()
	for ; back < cap(f.free); back++ {
		select {
		case <-f.free:
		case <-late.C:
			return fmt.Errorf("feed: closed with %d batches in use", cap(f.free)-back)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	memory := f.memory
	f.memory = nil
	return unmapMemory(memory)
}
