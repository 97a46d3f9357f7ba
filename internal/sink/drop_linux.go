package sink

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropper returns a function that takes up to limit bytes off a TCP connection without copying them out of the kernel:
// a receive with MSG_TRUNC only moves the reading position (tcp(7)). nil means that the connection is another.
func dropper(c net.Conn) func(limit int) (int, error) {
	tcp, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
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
				return 0, io.EOF
			default:
				return int(n), nil
			}
		}
	}
}
