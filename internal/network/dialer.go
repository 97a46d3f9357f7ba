// Package network opens the connections of all back-ends, so that one place sets keep-alives and time limits and
// counts what the sockets really took.
package network

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// unacknowledged is how long the kernel keeps data that the other side does not acknowledge before it gives the
// connection up. Without it a vanished server holds a worker for the kernel's quarter of an hour.
const unacknowledged = 60 * time.Second

// Dialer opens TCP and Unix connections and counts their bytes. The zero value works. Buffer sizes are left to the
// kernel: SO_SNDBUF would switch its autotuning off.
type Dialer struct {
	sent atomic.Int64
}

// DialContext connects; the connection counts into the dialer for as long as it lives.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	plain := net.Dialer{
		Timeout:         10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 6},
		Control:         control,
	}
	c, err := plain.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, dialer: d}, nil
}

// Sent is how many bytes all connections have handed to the kernel, protocol overhead and TLS included.
func (d *Dialer) Sent() int64 { return d.sent.Load() }

type conn struct {
	net.Conn
	dialer *Dialer
}

func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.dialer.sent.Add(int64(n))
	return n, err
}

// WriteBuffers writes all buffers with one system call, where the kernel takes them that way.
func (c *conn) WriteBuffers(b *net.Buffers) (int64, error) {
	n, err := b.WriteTo(c.Conn)
	c.dialer.sent.Add(n)
	return n, err
}

// SyscallConn lets drivers look at the socket, for their check whether an idle connection is still alive.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	return c.Conn.(syscall.Conn).SyscallConn()
}
