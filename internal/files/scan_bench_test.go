package files

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/terapush/terapush/pkg/batch"
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

func BenchmarkRewrite(b *testing.B) {
	for _, quoted := range []bool{false, true} {
		for _, fields := range []int{2, 14} {
			text := sample(CSV, quoted, fields)
			w := rewriter{how: NewSpec(CSV).dialect(), wire: batch.TSV, fields: fields, from: text}
			out := make([]byte, 0, 3*len(text)+slack)
			b.Run(fmt.Sprintf("quoted=%v/fields=%d", quoted, fields), func(b *testing.B) {
				perCore(b, len(text), func() { w.csvToTSV(out) })
			})
		}
	}
	text := bytes.ReplaceAll(sample(CSV, true, 14), newline, []byte("\r\n"))
	w := rewriter{how: NewSpec(CSV).dialect(), wire: batch.CSV, from: text}
	out := make([]byte, 0, 3*len(text)+slack)
	b.Run("crlf", func(b *testing.B) { perCore(b, len(text), func() { w.csv(out) }) })
	for _, quoted := range []bool{false, true} {
		text := sample(CSV, quoted, 14)
		w := rewriter{how: NewSpec(CSV).dialect(), wire: batch.CSV, fields: 14, from: text}
		b.Run(fmt.Sprintf("rewrite/quoted=%v", quoted), func(b *testing.B) { perCore(b, len(text), func() { w.rewrite(out) }) })
	}
	text = sample(TSV, false, 14)
	w = rewriter{how: NewSpec(TSV).dialect(), wire: batch.PGText, fields: 14, from: text}
	b.Run("rewrite/tsv", func(b *testing.B) { perCore(b, len(text), func() { w.rewrite(out) }) })
	b.Run("tsv/same", func(b *testing.B) { perCore(b, len(text), func() { w.escapesDiffer(seen{backslash: true}) }) })
}

// A source and a loop that reads the file and writes it to the same place.
func BenchmarkSource(b *testing.B) {
	for _, quoted := range []bool{false, true} {
		path := filepath.Join(b.TempDir(), "file.csv")
		text := bytes.Repeat(sample(CSV, quoted, 14), 1024)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			b.Fatal(err)
		}
		spec := NewSpec(CSV)
		var err error
		if spec.Files, err = Find([]string{path}); err != nil {
			b.Fatal(err)
		}
		null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		if err != nil {
			b.Fatal(err)
		}
		cpu := func(b *testing.B, f func()) {
			before := processCPU()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(len(text))*float64(b.N)/float64(processCPU()-before), "GB/cpu-s")
		}
		for _, wire := range []batch.Format{batch.CSV, batch.TSV} {
			b.Run(fmt.Sprintf("quoted=%v/%s", quoted, wire), func(b *testing.B) {
				cpu(b, func() {
					s, err := New(Config{
						Spec: spec, Wire: wire, Fields: 14, BatchBytes: 4 << 20, Buffers: 4, Workers: 1, BufferBytes: 17 << 20,
						Parallel: 1,
					})
					if err != nil {
						b.Fatal(err)
					}
					for n := int64(0); ; n++ {
						one, err := s.Batch(context.Background(), n)
						if err != nil {
							break
						}
						_, _ = null.Write(one.Encoded)
						one.Release()
					}
					if err := s.Close(); err != nil {
						b.Fatal(err)
					}
				})
			})
		}
		b.Run(fmt.Sprintf("quoted=%v/read", quoted), func(b *testing.B) {
			p := make([]byte, piece)
			cpu(b, func() {
				in, _ := os.Open(path)
				for {
					n, err := in.Read(p)
					if err != nil {
						break
					}
					_, _ = null.Write(p[:n])
				}
				_ = in.Close()
			})
		})
	}
}

func processCPU() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
