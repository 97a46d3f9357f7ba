package sink

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropper returns a function that takes up to limit bytes off the connection without copying them out of the kernel:
// a TCP receive with MSG_TRUNC only moves the reading position.
func dropper(c net.Conn) func(limit int) (int, error) {
	tcp, ok := c.(syscall.Conn)
	if !ok {
		return discard(c)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return discard(c)
	}
	var limit, n uintptr
	var errno syscall.Errno
	receive := func(fd uintptr) (done bool) { // made once: a closure for every packet would be an allocation each
		n, _, errno = unix.Syscall6(unix.SYS_RECVFROM, fd, 0, limit, unix.MSG_TRUNC, 0, 0)
		return errno != syscall.EAGAIN
	}
	return func(most int) (int, error) {
		limit = uintptr(most)
		for {
			if err := raw.Read(receive); err != nil {
				return 0, err
			}
			switch {
			case errno == syscall.EINTR:
			case errno != 0:
				return 0, errno
			case n == 0:
				return 0, io.ErrUnexpectedEOF
			default:
				return int(n), nil
			}
		}
	}
}
