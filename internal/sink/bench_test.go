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
			text := "INSERT INTO t VALUES " + strings.Repeat(row, (1<<20)/len(row))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				Split(text, Backslash)
			}
		})
	}
}

// What a byte of text costs, of rows that have nothing special and of such that have.
func BenchmarkDelimited(b *testing.B) {
	plain := strings.Repeat("0000000001\t"+strings.Repeat("x", 500)+"\n", 512)
	quoted := strings.Repeat("1,\""+strings.Repeat("x", 100)+"\"\"\n\",2\n", 2048)
	for name, c := range map[string]struct {
		text Text
		data string
	}{
		"lines": {Text{}, plain}, "filled": {Text{Filled: true}, plain}, "escapes": {Text{Escape: '\\', Bare: true, Marker: `\.`}, plain},
		"quotes": {Text{Quote: '"', Separator: ",", Escape: '\\', Bare: true}, quoted},
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(c.data)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			d := NewDelimited(c.text)
			for b.Loop() {
				d.Write(data)
			}
		})
	}
}
