//go:build !linux

package netio

import (
	"net"
	"syscall"
)

// writer writes. Only Linux tells when a write waits for room; here all of it counts as blocked.
type writer struct{ conn *conn }

func (w *writer) write(p []byte) (int, error) {
	w.conn.block()
	defer w.conn.unblock()
	return w.conn.Conn.Write(p)
}

func (w *writer) writeBuffers(b *net.Buffers) (int64, error) {
	w.conn.block()
	defer w.conn.unblock()
	return b.WriteTo(w.conn.Conn)
}

func control(_, _ string, _ syscall.RawConn) error { return nil }

func readInfo(syscall.RawConn) (tcpInfo, bool) { return tcpInfo{}, false }
