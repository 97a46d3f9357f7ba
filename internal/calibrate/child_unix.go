//go:build unix

package calibrate

import "syscall"

// ownGroup keeps the terminal's Ctrl-C from a child, so that the push under way can finish first.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
