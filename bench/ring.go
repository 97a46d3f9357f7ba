//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

const (
	keyDigits    = 12
	payloadBytes = 512
)

// ring is what is pushed: rows of text that every contender can send, a zero-padded key, TAB, random letters, LF. It
// lies in huge pages, outside of Go's heap, as terapush's own ring does.
type ring struct {
	memory []byte
	bodies [][]byte
	rows   int64
}

func newRing(size, body int) (*ring, error) {
	const row = keyDigits + 1 + payloadBytes + 1
	body -= body % row
	if body == 0 || size < body {
		return nil, errors.New("the ring has to hold a body, and a body a row")
	}
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("mapping the ring: %w", err)
	}
	// Where there are no huge pages, the loop and the contenders are equally slower.
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE)

	r := &ring{memory: memory}
	random := rand.NewChaCha8([32]byte{})
	for at := 0; at+body <= size; at += body {
		b := memory[at : at+body : at+body]
		_, _ = random.Read(b) // never fails
		for i := 0; i < body; i += row {
			fill(b[i:i+row], r.rows)
			r.rows++
		}
		r.bodies = append(r.bodies, b)
	}
	return r, nil
}

// fill makes a row out of random bytes: 64 letters without a special one among them.
func fill(row []byte, key int64) {
	for i := range row {
		row[i] = '0' + row[i]%64
		if row[i] == '\\' {
			row[i] = 'p'
		}
	}
	copy(row, fmt.Sprintf("%0*d\t", keyDigits, key))
	row[len(row)-1] = '\n'
}

func (r *ring) bytes() int { return len(r.bodies) * len(r.bodies[0]) }

func (r *ring) free() { _ = unix.Munmap(r.memory) }

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
