package host

import (
	"github.com/safchain/ethtool"
	"golang.org/x/sys/unix"
)

// openFiles returns the soft limit, 0 where it cannot be read.
func openFiles() int64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int64(min(limit.Cur, 1<<40))
}

// system names the operating system with the kernel's version.
func system() string {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return "linux"
	}
	return unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
}

// statistics returns the counters of a network driver, as ethtool -S prints them; nil where a sandbox forbids the call.
func statistics(nic string) map[string]uint64 {
	counters, err := ethtool.Stats(nic)
	if err != nil {
		return nil
	}
	return counters
}
