package batch_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/terapush/terapush/pkg/batch"
)

// newBatch has the head "<", the rows "a", "bb", "ccc" and the tail ">".
func newBatch() (b *batch.Batch, freed *int) {
	freed = new(int)
	b = &batch.Batch{
		ID: batch.ID{Run: "r", Number: 4}, First: 12, Rows: 3,
		Encoded: []byte("<abbccc>"), Head: 1, Starts: []uint32{1, 2, 4}, Free: func() { *freed++ },
	}
	b.Hold()
	return b, freed
}

func read(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestBodyLeavesOutWhatIsThere(t *testing.T) {
	for skip, want := range []string{"<abbccc>", "<bbccc>", "<ccc>"} {
		b, _ := newBatch()
		b.Skip = int64(skip)
		if wanted := 3 - int64(skip); b.Wanted() != wanted {
			t.Errorf("skip %d: %d rows are wanted, want %d", skip, b.Wanted(), wanted)
		}
		for name, how := range map[string]func(*batch.Body) string{
			"Read":     func(r *batch.Body) string { return read(t, struct{ io.Reader }{r}) },
			"one byte": func(r *batch.Body) string { return read(t, iotest.OneByteReader(r)) },
			"WriteTo": func(r *batch.Body) string {
				var out strings.Builder
				n, err := io.Copy(&out, r)
				if err != nil || n != int64(out.Len()) {
					t.Errorf("copied %d of %d bytes, %v", n, out.Len(), err)
				}
				return out.String()
			},
			"after a rewind": func(r *batch.Body) string {
				_, _ = r.Read(make([]byte, 3))
				if _, err := r.Seek(0, io.SeekStart); err != nil {
					t.Error(err)
				}
				return read(t, r)
			},
		} {
			r := b.Open()
			if r.Size() != int64(len(want)) {
				t.Errorf("size %d, want %d", r.Size(), len(want))
			}
			if got := how(r); got != want {
				t.Errorf("skip %d, %s: %q, want %q", skip, name, got, want)
			}
			if b.Sent() != int64(len(want)) {
				t.Errorf("skip %d, %s: %d bytes sent, want %d", skip, name, b.Sent(), len(want))
			}
			_ = r.Close()
		}
	}
}

func TestReadFillsThePacket(t *testing.T) {
	b, _ := newBatch()
	r := b.Open()
	packet := make([]byte, 5)
	for _, want := range []string{"<abbc", "cc>"} {
		n, err := r.Read(packet)
		if err != nil || string(packet[:n]) != want {
			t.Errorf("%q, %v, want %q", packet[:n], err, want)
		}
	}
	if n, err := r.Read(packet); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %d, %v", n, err)
	}
	if n, err := r.Read(nil); n != 0 || err != nil {
		t.Errorf("asked for nothing: %d, %v", n, err)
	}
}

// A read is short only at the end, whatever the packet's size: across the head's end and past the rows left out.
func TestReadsAreWhole(t *testing.T) {
	for skip, want := range []string{"<abbccc>", "<bbccc>", "<ccc>"} {
		for size := 1; size <= len(want)+1; size++ {
			b, _ := newBatch()
			b.Skip = int64(skip)
			r, rest := b.Open(), want
			for packet := make([]byte, size); rest != ""; {
				n, err := r.Read(packet)
				if next := rest[:min(size, len(rest))]; string(packet[:n]) != next || err != nil {
					t.Fatalf("skip %d, packets of %d: %q, %v, want %q", skip, size, packet[:n], err, next)
				}
				rest = rest[n:]
			}
			if n, err := r.Read(make([]byte, size)); n != 0 || !errors.Is(err, io.EOF) {
				t.Errorf("skip %d, packets of %d: %d, %v at the end", skip, size, n, err)
			}
		}
	}
}

func TestSeekOnlyToTheStart(t *testing.T) {
	b, _ := newBatch()
	r := b.Open()
	for _, to := range []struct {
		offset int64
		whence int
	}{{1, io.SeekStart}, {0, io.SeekCurrent}, {0, io.SeekEnd}} {
		if _, err := r.Seek(to.offset, to.whence); err == nil {
			t.Errorf("went to %v", to)
		}
	}
	_ = r.Close()
	if _, err := r.Seek(0, io.SeekStart); err == nil {
		t.Error("a closed body was rewound")
	}
	if got := read(t, r); got != "" {
		t.Errorf("a closed body holds %q", got)
	}
}

// The buffer goes back once, by the last holder: the worker, or the last of the bodies it has left behind.
func TestBufferReturnsWithTheLastHolder(t *testing.T) {
	b, freed := newBatch()
	first, second := b.Open(), b.Open()
	b.Release()
	_ = first.Close()
	_ = first.Close()
	if *freed != 0 {
		t.Fatal("freed under a body")
	}
	if got := read(t, second); got != "<abbccc>" {
		t.Errorf("after the release: %q", got)
	}
	_ = second.Close()
	_ = second.Close()
	if *freed != 1 {
		t.Errorf("freed %d times", *freed)
	}
}

func TestBodiesOfManyGoroutines(t *testing.T) {
	b, freed := newBatch()
	var readers sync.WaitGroup
	for range 8 {
		r := b.Open()
		readers.Go(func() {
			_, _ = io.Copy(io.Discard, r)
			_ = b.Sent()
			_ = r.Close()
		})
	}
	b.Release()
	readers.Wait()
	if *freed != 1 {
		t.Errorf("freed %d times", *freed)
	}
}

func TestAllReadOncePerReading(t *testing.T) {
	b, _ := newBatch()
	said := 0
	b.AllRead = func() {
		if said++; b.Sent() != 8 {
			t.Errorf("said after %d of 8 bytes", b.Sent())
		}
	}
	r := b.Open()
	buf := make([]byte, 7)
	_, _ = r.Read(buf)
	if said != 0 {
		t.Error("said before the end")
	}
	_, _ = r.Read(buf)
	_, _ = r.Read(buf)
	_, _ = r.Seek(0, io.SeekStart)
	_, _ = io.Copy(io.Discard, r)
	_ = r.Close()
	if said != 2 {
		t.Errorf("two readings ended %d times", said)
	}
}

type broken struct{ after int }

func (w *broken) Write(p []byte) (int, error) {
	n := min(len(p), w.after)
	w.after -= n
	if n < len(p) {
		return n, io.ErrClosedPipe
	}
	return n, nil
}

func TestWriteToABrokenConnection(t *testing.T) {
	for after := range 8 {
		b, _ := newBatch()
		r := b.Open()
		n, err := r.WriteTo(&broken{after})
		if n != int64(after) || !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%d, %v, want %d and the connection's error", n, err, after)
		}
		if rest := read(t, r); !bytes.HasSuffix(b.Encoded, []byte(rest)) || len(rest) != 8-after {
			t.Errorf("%q is left after %d bytes", rest, after)
		}
	}
}

func TestNames(t *testing.T) {
	b, _ := newBatch()
	if b.ID.String() != "r/4" || b.Last() != 14 {
		t.Errorf("%s to row %d", b.ID, b.Last())
	}
}
