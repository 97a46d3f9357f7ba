package files

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sample returns some 256 KiB of records, as many as are scanned right after they are read, like those of users: of some 20 or 120 bytes, with no field quoted, or every one.
func sample(format Format, quoted bool, fields int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	d := NewSpec(format).dialect()
	var out bytes.Buffer
	for out.Len() < piece {
		for i := range fields {
			if i > 0 {
				out.WriteByte(d.delim)
			}
			text := strings.Repeat("abcdefghij", 2)[:r.IntN(16)]
			if format != CSV && text == "" {
				text = `\N`
			}
			if quoted {
				text = `"` + text + `"`
			}
			out.WriteString(text)
		}
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// perCore calls f again and again, and reports the bytes for each second of CPU, which other processes change little.
func perCore(b *testing.B, bytes int, f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpu := func() time.Duration {
		var u unix.Rusage
		_ = unix.Getrusage(unix.RUSAGE_THREAD, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	b.ReportAllocs()
	b.SetBytes(int64(bytes))
	before := cpu()
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(bytes)*float64(b.N)/float64(cpu()-before), "GB/cpu-s")
}

func BenchmarkScan(b *testing.B) {
	for _, c := range []struct {
		format Format
		quoted bool
	}{{CSV, false}, {CSV, true}, {TSV, false}} {
		for _, fields := range []int{2, 14} {
			text := sample(c.format, c.quoted, fields)
			b.Run(fmt.Sprintf("%s/quoted=%v/fields=%d", c.format, c.quoted, fields), func(b *testing.B) {
				perCore(b, len(text), func() {
					s := scanner{how: NewSpec(c.format).dialect()}
					for p := text; len(p) > 0; p = p[min(piece, len(p)):] {
						s.scan(p[:min(piece, len(p))])
					}
				})
			})
		}
	}
	text := sample(CSV, false, 14)
	b.Run("hash", func(b *testing.B) {
		perCore(b, len(text), func() { crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) })
	})
}
