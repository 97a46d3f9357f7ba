package files

import "golang.org/x/sys/cpu"

// hasMarks says whether the CPU has the instructions of markWords.
var hasMarks = cpu.X86.HasAVX2

// markWords sets so many words, ≥ 1, for 64 bytes each.
//
//go:noescape
func markWords(to *uint64, p *byte, words int, c byte)
