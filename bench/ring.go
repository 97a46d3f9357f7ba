//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/batch"
)

const (
	keyDigits    = 12 // where nobody minds how long a row is
	payloadBytes = 512
)

// ring is what is pushed: bodies of as many rows each, all rows of one length. It lies in huge pages, outside of Go's
// heap, as terapush's own ring does.
type ring struct {
	bodies [][]byte
	rows   int64
	format batch.Format
	free   func()
}

// newRing makes rows of so many bytes of text that every contender can send: a zero-padded key, TAB, random letters, LF.
func newRing(size, body, row int) (*ring, error) {
	body -= body % row
	if body == 0 || size < body {
		return nil, errors.New("the ring has to hold a body, and a body a row")
	}
	digits := row - 1 - payloadBytes - 1
	if longest := len(fmt.Sprint(size / row)); digits < longest {
		return nil, fmt.Errorf("rows of %d bytes leave %d for a key, which needs %d", row, digits, longest)
	}
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("mapping the ring: %w", err)
	}
	// Where there are no huge pages, the loop and the contenders are equally slower.
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE)

	r := &ring{format: batch.TSV, free: func() { _ = unix.Munmap(memory) }}
	random := rand.NewChaCha8([32]byte{})
	for at := 0; at+body <= size; at += body {
		b := memory[at : at+body : at+body]
		_, _ = random.Read(b) // never fails
		for i := 0; i < body; i += row {
			fill(b[i:i+row], digits, r.rows)
			r.rows++
		}
		r.bodies = append(r.bodies, b)
	}
	return r, nil
}

// fill makes a row out of random bytes: 64 letters without a special one among them.
func fill(row []byte, digits int, key int64) {
	for i := range row {
		row[i] = '0' + row[i]%64
		if row[i] == '\\' {
			row[i] = 'p'
		}
	}
	copy(row, fmt.Sprintf("%0*d\t", digits, key))
	row[len(row)-1] = '\n'
}

func (r *ring) bytes() int { return len(r.bodies) * len(r.bodies[0]) }

// bodyRows is how many rows each body has, rowBytes how long each row is.
func (r *ring) bodyRows() int64 { return r.rows / int64(len(r.bodies)) }
func (r *ring) rowBytes() int   { return r.bytes() / int(r.rows) }

// documents are the rows that terapush pushes where the bench has it push text, which every back-end takes.
func documents() (dataset.Dataset, error) {
	return dataset.New("documents", dataset.Options{Seed: 1, PayloadKind: dataset.Text})
}

// newEncodedRing makes the rows that terapush pushes, as it encodes them itself for a run of at least runRows rows.
func newEncodedRing(ctx context.Context, f batch.Format, size, body int, runRows int64) (*ring, error) {
	d, err := documents()
	if err != nil {
		return nil, err
	}
	count := size / max(body, 1)
	runRows = max(runRows, int64(size)/d.Schema().MaxRowBytes())
	e, err := source.NewEncoder(f, d, 0, runRows)
	if err != nil {
		return nil, err
	}
	bodyRows := int64(body / e.MaxRow())
	if bodyRows == 0 || count == 0 {
		return nil, errors.New("the ring has to hold a body, and a body a row")
	}
	if whole := int64(count) * bodyRows; whole > runRows { // or the last body is short
		return newEncodedRing(ctx, f, size, body, whole)
	}
	spans := source.Spans{Rows: runRows, BatchRows: bodyRows}
	all, err := source.New(source.Config{Spans: spans, Dataset: d, Encoder: e, Run: "bench", Buffers: count})
	if err != nil {
		return nil, err
	}
	var held []*batch.Batch
	r := &ring{format: f, free: func() {
		for _, b := range held {
			b.Release()
		}
		_ = all.Close()
	}}
	for i := range int64(count) {
		b, err := all.Batch(ctx, i)
		if err != nil {
			r.free()
			return nil, err
		}
		held = append(held, b)
		r.bodies = append(r.bodies, b.Encoded)
		r.rows += b.Rows
	}
	for _, b := range r.bodies {
		if len(b) != len(r.bodies[0]) || int64(len(b))%bodyRows != 0 {
			r.free()
			return nil, fmt.Errorf("rows in %s are not all of one length", f)
		}
	}
	return r, nil
}

// body reads one body the way a batch does: every Read fills p, as long as there is enough.
type body []byte

func (b *body) Read(p []byte) (int, error) {
	if len(*b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, *b)
	*b = (*b)[n:]
	return n, nil
}

// cpuTime is what a process, 0 for this one, has spent so far: getrusage's user and system time, finer and of others.
func cpuTime(pid int) time.Duration {
	clock := int32(unix.CLOCK_PROCESS_CPUTIME_ID)
	if pid != 0 {
		clock = int32(^pid<<3 | 2) // clock_getcpuclockid(3)
	}
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
