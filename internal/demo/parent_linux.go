package demo

import "syscall"

// endWithParent has the kernel send the signal when the parent ends in any way.
func endWithParent(a *syscall.SysProcAttr, signal syscall.Signal) { a.Pdeathsig = signal }
