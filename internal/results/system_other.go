//go:build !unix

package results

import "runtime"

// system names the operating system; its version takes more than the standard library here.
func system() string { return runtime.GOOS }
