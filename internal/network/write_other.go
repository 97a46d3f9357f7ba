//go:build !linux

package network

import (
	"net"
	"syscall"
)

// writer writes. Elsewhere than on Linux it is not known when a write waits for room: all of it counts as waiting.
type writer struct{ conn *conn }

func newWriter(c *conn) writer { return writer{conn: c} }

func (w *writer) write(p []byte) (int, error) {
	w.conn.account.waits()
	defer w.conn.account.goesOn()
	return w.conn.Conn.Write(p)
}

func (w *writer) writeBuffers(b *net.Buffers) (int64, error) {
	w.conn.account.waits()
	defer w.conn.account.goesOn()
	return b.WriteTo(w.conn.Conn)
}

// ask is never ok here.
func ask(syscall.RawConn) (kernel, bool) { return kernel{}, false }
