//go:build unix

package file

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner of another, where it may.
func keepOwner(f *os.File, of fs.FileInfo) {
	if s, ok := of.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(s.Uid), int(s.Gid))
	}
}
