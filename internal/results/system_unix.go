//go:build unix

package results

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// system names the operating system with the kernel's version.
func system() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return runtime.GOOS
	}
	return unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
}
