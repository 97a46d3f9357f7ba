package demo

import "syscall"

// endWithParent has the kernel send the signal when the process's parent ends, however it ends.
func endWithParent(a *syscall.SysProcAttr, signal syscall.Signal) { a.Pdeathsig = signal }
