//go:build !amd64

package files

// hasMarks says whether the CPU has the instructions of markWords. Without them lines are faster.
var hasMarks = false

func markWords(*uint64, *byte, int, byte) { panic("files: no such instructions") }
