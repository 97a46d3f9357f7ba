package netio

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// writer writes as net.Conn does, and notes when the kernel has no room, which net.Conn hides.
type writer struct {
	mu   sync.Mutex // net.Conn allows several goroutines to write, one after the other
	conn *conn

	// Of the current write. try is made once: a closure for every write would be an allocation each.
	one  []byte
	many [][]byte
	try  func(fd uintptr) (done bool)
	n    int
	err  error
}

// maxWrite is below what the kernel takes with one call; maxBuffers is its IOV_MAX.
const (
	maxWrite   = 1 << 30
	maxBuffers = 1024
)

func (w *writer) write(p []byte) (int, error) {
	if w.conn.raw == nil {
		return w.conn.Conn.Write(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := 0
	for sent < len(p) {
		w.one = p[sent:min(sent+maxWrite, len(p))]
		n, err := w.once()
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

func (w *writer) writeBuffers(b *net.Buffers) (int64, error) {
	if w.conn.raw == nil {
		return b.WriteTo(w.conn.Conn)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var sent int64
	for drop(b, 0); len(*b) > 0; {
		w.many = (*b)[:min(len(*b), maxBuffers)]
		n, err := w.once()
		sent += int64(n)
		drop(b, n)
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// drop removes n bytes and empty buffers from the front.
func drop(b *net.Buffers, n int) {
	for len(*b) > 0 && n >= len((*b)[0]) {
		n -= len((*b)[0])
		*b = (*b)[1:]
	}
	if n > 0 {
		(*b)[0] = (*b)[0][n:]
	}
}

// once writes some of one or many, and clears both.
func (w *writer) once() (int, error) {
	if w.try == nil {
		w.try = w.call
	}
	err := w.conn.raw.Write(w.try)
	w.conn.unblock()
	w.one, w.many = nil, nil
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			op.Op = "write" // not "raw-write": as package net has it
		}
		return 0, err
	}
	if w.err != nil {
		local, remote := w.conn.LocalAddr(), w.conn.RemoteAddr()
		return 0, &net.OpError{Op: "write", Net: remote.Network(), Source: local, Addr: remote, Err: w.err}
	}
	return w.n, nil
}

// call is one system call. It returns false where the kernel has no room; the runtime calls again when it has.
func (w *writer) call(fd uintptr) (done bool) {
	for {
		name := "write"
		if w.many != nil {
			name = "writev"
			w.n, w.err = unix.Writev(int(fd), w.many)
		} else {
			// Not unix.Write: the race detector orders a Read after its Write in package syscall alone.
			w.n, w.err = syscall.Write(int(fd), w.one)
		}
		switch {
		case errors.Is(w.err, unix.EINTR):
			continue
		case errors.Is(w.err, unix.EAGAIN):
			w.conn.block()
			return false
		case w.err != nil:
			w.n, w.err = 0, os.NewSyscallError(name, w.err)
		case w.n == 0: // as package net has it
			w.err = io.ErrUnexpectedEOF
		}
		w.conn.unblock()
		return true
	}
}
