//go:build unix

package host

import (
	"math"
	"runtime"

	"golang.org/x/sys/unix"
)

// openFiles returns the limit in force, 0 where it cannot be read; no limit is a large number.
func openFiles() int64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int64(min(uint64(limit.Cur), math.MaxInt64)) //nolint:unconvert // it is signed on some systems
}

// system names the operating system with the kernel's version.
func system() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return runtime.GOOS
	}
	return unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
}
