package source

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

// ErrClosed is returned by calls on a closed source.
var ErrClosed = errors.New("source: closed")

// Ring makes the batches of one run of a dataset. It is safe for concurrent use.
type Ring struct {
	layout layout

	// free has one token for each buffer in stock; who receives one may take a buffer. Go serves receivers in their
	// order.
	free    chan struct{}
	scratch sync.Pool // of *scratch
	refills atomic.Int64

	mu     sync.Mutex // guards what follows; who holds a buffer may read memory
	memory []byte     // of all buffers, and then of all their offsets; nil before the first batch, and once it is closed
	stock  stock
	closed bool
}

// content identifies what a buffer holds. The run's last batch may have fewer rows than others of its template.
type content struct {
	template int64
	rows     int
}

// buffer is one of the ring. It belongs to the stock, to the caller who took it, or to a batch in use. It is kept
// small: of small batches there are hundreds of thousands.
type buffer struct {
	at      int64   // its number in the ring, which says where its memory is
	length  uint32  // bytes of the encoded batch
	own     []byte  // the memory of a batch that its place in the ring has no room for; nil
	payload int64   // bytes
	number  int64   // the batch that is encoded, −1 = none
	content content // of that batch

	before, after *buffer // in a list of stock
	chained       *buffer // the next one in its chain of stock
}

// New checks the config. The ring has no memory before its first batch is made, and needs none if no batch is asked
// for.
func New(c Config) (*Ring, error) {
	l, err := newLayout(c)
	if err != nil {
		return nil, err
	}

	r := &Ring{layout: l, free: make(chan struct{}, c.Buffers)}
	r.scratch.New = func() any { return newScratch(l) }
	for range c.Buffers {
		r.free <- struct{}{}
	}
	return r, nil
}

// reserve maps the memory of the ring if it has none, and puts its buffers in stock. The caller holds the mutex.
func (r *Ring) reserve() (err error) {
	if r.memory != nil {
		return nil
	}
	n, bytes := r.Buffers(), Memory(r.layout.Config)
	if r.memory, err = MapMemory(bytes); err != nil {
		return fmt.Errorf("source: map %d buffers of %d bytes: %w", n, bytes/int64(n), err)
	}

	r.stock.init(n)
	all := make([]buffer, n)
	for i := range all {
		all[i].at, all[i].number = int64(i), -1
		r.stock.add(&all[i])
	}
	return nil
}

// memoryOf returns the memory that holds the buffer's batch.
func (r *Ring) memoryOf(b *buffer) []byte {
	if b.own != nil {
		return b.own
	}
	return r.place(b)
}

// place returns the buffer's memory in the ring.
func (r *Ring) place(b *buffer) []byte {
	from, to := b.at*r.layout.bufferBytes, (b.at+1)*r.layout.bufferBytes
	return r.memory[from:to:to]
}

// offsetsOf returns the offsets of a buffer with that many rows. They lie behind the last buffer: of short rows they
// are a tenth of the ring, and on the heap the garbage collector would let as much again be garbage.
func (r *Ring) offsetsOf(b *buffer, rows int) encode.Offsets {
	each := r.layout.offsets
	memory := r.memory[r.layout.bufferBytes*int64(r.Buffers())+4*each*b.at:]
	fields := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(memory))), each)
	return encode.Offsets{Fields: fields, Rows: rows}
}

// Fill encodes the first batches that are not done, one for each buffer, `parallel` at a time, so that templates exist
// and all memory is touched before the clock starts. After each it calls progress, unless nil, with the encoded bytes,
// from several goroutines. When ctx ends, Fill returns its error.
func (r *Ring) Fill(ctx context.Context, parallel int, progress func(bytes int64)) error {
	wanted := r.layout.first(r.Buffers())
	filled := make([]*buffer, len(wanted))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, parallel))
	for i, number := range wanted {
		g.Go(func() error {
			b, _, err := r.make(ctx, number)
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
			r.put(b)
		}
	}
	return err
}

// Batch returns the batch with that number, 0 ≤ number. It waits for a free buffer, or until ctx ends, and then returns
// its error. The caller must Release the batch. Its buffer returns to the ring once every body opened on it is closed
// as well.
func (r *Ring) Batch(ctx context.Context, number int64) (*batch.Batch, error) {
	buf, refill, err := r.make(ctx, number)
	if err != nil {
		return nil, err
	}
	if refill {
		r.refills.Add(1)
	}

	first, _ := r.layout.Span(number)
	b := &batch.Batch{
		ID:      batch.ID{Run: r.layout.Run, Number: number},
		Format:  r.layout.Encoder.Format(),
		First:   first,
		Rows:    int64(buf.content.rows),
		Payload: buf.payload,
		Encoded: r.memoryOf(buf)[:buf.length],
		Free:    func() { r.put(buf) },
	}
	b.Hold()
	return b, nil
}

// make waits for a free buffer and makes the batch in it; refill reports whether a template that repeats had to be
// encoded.
func (r *Ring) make(ctx context.Context, number int64) (buf *buffer, refill bool, err error) {
	if number < 0 || number >= r.layout.Batches() {
		return nil, false, fmt.Errorf("source: batch %d does not exist: the run has %d", number, r.layout.Batches())
	}
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	select {
	case <-r.free:
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}

	buf, hit, err := r.take(number)
	if err != nil {
		r.free <- struct{}{}
		return nil, false, err
	}

	switch {
	case hit && buf.number == number:
	case hit && r.layout.stamper != nil:
		r.stamp(buf, number)
	default:
		refill = r.layout.Distinct > 0 && r.layout.stamper != nil
		if err := r.encode(buf, number); err != nil {
			r.put(buf)
			return nil, false, err
		}
	}
	return buf, refill, nil
}

// take removes a buffer from the stock. The caller must have a token.
func (r *Ring) take(number int64) (buf *buffer, hit bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, false, ErrClosed
	}
	if err := r.reserve(); err != nil {
		return nil, false, err
	}
	buf, hit = r.stock.take(r.layout.content(number))
	return buf, hit, nil
}

func (r *Ring) put(buf *buffer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stock.add(buf)
	r.free <- struct{}{} // has room for every buffer
}

// Span returns the key of a batch's first row, and the number of its rows.
func (r *Ring) Span(batch int64) (first, rows int64) { return r.layout.Span(batch) }

// Proof returns the dataset, from which each row can be made again.
func (r *Ring) Proof() Proof { return Proof{Dataset: r.layout.Dataset, Distinct: r.layout.Distinct} }

// Buffers returns the size of the ring.
func (r *Ring) Buffers() int { return cap(r.free) }

// Free returns how many buffers are not in use.
func (r *Ring) Free() int { return len(r.free) }

// Refills returns how many batches were encoded after Fill although their template repeats. It is 0 if all rows are
// distinct.
func (r *Ring) Refills() int64 { return r.refills.Load() }

// lateClose is how long Close waits for bodies: an http.Transport may close one after it has returned the answer.
const lateClose = 2 * time.Second

// Close unmaps the ring's memory, if it has any, once no batch is in use. If one still is after two seconds, it only
// returns an error: reading unmapped memory would end the program.
func (r *Ring) Close() error {
	late := time.NewTimer(lateClose)
	defer late.Stop()

	back := 0
	defer func() {
		for range back { // a later Batch must not wait
			r.free <- struct{}{}
		}
	}()
	for ; back < cap(r.free); back++ {
		select {
		case <-r.free:
		case <-late.C:
			return fmt.Errorf("source: closed with %d batches in use", cap(r.free)-back)
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true

	memory := r.memory
	r.memory = nil
	if memory == nil {
		return nil
	}
	return UnmapMemory(memory)
}
