//go:build !amd64

package files

// hasMarks says whether the CPU has the instructions of markWords. Without them lines are faster.
var hasMarks = false

func markWords(*uint64, *byte, int, byte) { panic("files: no such instructions") }

func lookWords(*byte, int, byte) (specials, returns, backslashes uint32, lines uint64) {
	panic("files: no such instructions")
}
