package files

import "golang.org/x/sys/cpu"

// hasMarks says whether the CPU has the instructions of markWords.
var hasMarks = cpu.X86.HasAVX2

// markWords sets so many words, ≥ 1, for 64 bytes each.
//
//go:noescape
func markWords(to *uint64, p *byte, words int, c byte)

// lookWords returns bits where so many words, 1 to 127, have the special byte, a carriage return and a backslash, and
// how many line ends they have.
//
//go:noescape
func lookWords(p *byte, words int, special byte) (specials, returns, backslashes uint32, lines uint64)
