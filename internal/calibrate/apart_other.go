//go:build !unix

package calibrate

import "syscall"

// apart does nothing: there are no process groups.
func apart() *syscall.SysProcAttr { return nil }
