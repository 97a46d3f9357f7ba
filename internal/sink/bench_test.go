package sink

import (
	"strings"
	"testing"
)

// What a byte of a multi-row INSERT costs, of short values and of long ones.
func BenchmarkStatement(b *testing.B) {
	for name, row := range map[string]string{
		"numbers": "(1234567890,98765,'ab',3.14159),", "documents": "(0000000001,'" + strings.Repeat("x", 500) + "'),",
	} {
		b.Run(name, func(b *testing.B) {
			text := []byte("INSERT INTO t VALUES " + strings.Repeat(row, (1<<20)/len(row)))
			b.SetBytes(int64(len(text)))
			s := Statement{Backslash: true}
			for b.Loop() {
				s.Reset()
				s.Write(text)
			}
		})
	}
}
