//go:build !unix

package calibrate

import "syscall"

func ownGroup() *syscall.SysProcAttr { return nil }
