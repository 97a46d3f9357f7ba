package faultproxy

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// FreePort returns a port of 127.0.0.1 that refuses connections until a program listens on it. It is the test's own to
// its end: a socket that is bound and does not listen keeps other tests away, and the kernel gives the ports of this
// range to no outgoing connection.
func FreePort(t testing.TB) string {
	t.Helper()
	const first = 10_000
	end := FirstEphemeral(t)
	if end < first+1000 {
		end = 32_768 // nearly all are given away here: then one that is free has to do
	}
	for {
		port := first + rand.IntN(end-first)
		syscall.ForkLock.RLock() // SOCK_CLOEXEC would do without, and is Linux's
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err == nil {
			syscall.CloseOnExec(fd)
		}
		syscall.ForkLock.RUnlock()
		require.NoError(t, err)
		if syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}) != nil {
			_ = syscall.Close(fd)
			continue
		}
		t.Cleanup(func() { _ = syscall.Close(fd) })
		// Only now: so that the bind above fails beside another of these, and a server's, which sets this too, does not.
		require.NoError(t, syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
		return strconv.Itoa(port)
	}
}

// FirstEphemeral returns the lowest of the ports that the kernel gives to outgoing connections.
func FirstEphemeral(t testing.TB) (first int) {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	require.NoError(t, err)
	_, err = fmt.Sscan(string(text), &first)
	require.NoError(t, err)
	return first
}
