//go:build unix && !linux

package demo

import "syscall"

// endWithParent does nothing here. The server of a demo that was killed ends a minute after the next demo has removed
// its data.
func endWithParent(*syscall.SysProcAttr, syscall.Signal) {}
