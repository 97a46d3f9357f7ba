//go:build !unix

package host

import "runtime"

func openFiles() int64 { return 0 }

// system names the operating system; its version takes more than the standard library here.
func system() string { return runtime.GOOS }
