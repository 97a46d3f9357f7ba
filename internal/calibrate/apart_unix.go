//go:build unix

package calibrate

import "syscall"

// apart puts a child out of reach of the terminal's Ctrl-C: a push that is under way when it comes is finished first.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
