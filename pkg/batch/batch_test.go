package batch_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
)

// newBatch has the head "<", the rows "a", "bb", "ccc" and the tail ">".
func newBatch() (b *batch.Batch, freed *int) {
	freed = new(int)
	b = &batch.Batch{
		ID: batch.ID{Run: "r", Number: 4}, First: 12, Rows: 3,
		Encoded: []byte("<abbccc>"), Free: func() { *freed++ },
	}
	b.Hold()
	return b, freed
}

const whole = "<abbccc>"

func read(t *testing.T, r io.Reader) string {
	t.Helper()
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(text)
}

func TestBody(t *testing.T) {
	for name, how := range map[string]func(*testing.T, *batch.Body) string{
		"Read":     func(t *testing.T, r *batch.Body) string { return read(t, struct{ io.Reader }{r}) },
		"one byte": func(t *testing.T, r *batch.Body) string { return read(t, iotest.OneByteReader(r)) },
		"WriteTo": func(t *testing.T, r *batch.Body) string {
			var out strings.Builder
			n, err := r.WriteTo(&out)
			require.NoError(t, err)
			require.EqualValues(t, out.Len(), n)
			return out.String()
		},
		"after a rewind": func(t *testing.T, r *batch.Body) string {
			_, _ = r.Read(make([]byte, 3))
			_, err := r.Seek(0, io.SeekStart)
			require.NoError(t, err)
			return read(t, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, _ := newBatch()
			require.EqualValues(t, 14, b.Last())
			for range 2 {
				r := b.Open()
				require.Zero(t, b.Sent(), "of the new body")
				require.EqualValues(t, len(whole), r.Size())
				require.Equal(t, whole, how(t, r))
				require.EqualValues(t, len(whole), b.Sent())
				require.NoError(t, r.Close())
			}
		})
	}
}

// A read is short only at the end, whatever the packet's size.
func TestReadsAreWhole(t *testing.T) {
	for size := 1; size <= len(whole)+1; size++ {
		b, _ := newBatch()
		r, packet := b.Open(), make([]byte, size)
		for rest := whole; rest != ""; rest = rest[min(size, len(rest)):] {
			n, err := r.Read(packet)
			require.NoError(t, err)
			require.Equal(t, rest[:min(size, len(rest))], string(packet[:n]), "packets of %d", size)
		}
		n, err := r.Read(packet)
		require.Zero(t, n)
		require.ErrorIs(t, err, io.EOF)
		n, err = r.Read(nil)
		require.Zero(t, n)
		require.NoError(t, err)
	}
}

func TestSeekOnlyToTheStart(t *testing.T) {
	b, _ := newBatch()
	r := b.Open()
	for _, to := range []struct {
		offset int64
		whence int
	}{{1, io.SeekStart}, {0, io.SeekCurrent}, {0, io.SeekEnd}} {
		_, err := r.Seek(to.offset, to.whence)
		require.Error(t, err, "%v", to)
	}
	require.NoError(t, r.Close())
	_, err := r.Seek(0, io.SeekStart)
	require.Error(t, err, "the body is closed")
	require.Empty(t, read(t, r))
}

// The buffer returns once, from the last holder: the worker, or the last reader that it has left open.
func TestBufferReturnsWithTheLastHolder(t *testing.T) {
	for name, c := range map[string]struct {
		make func() (*batch.Batch, *int)
		open func(*batch.Batch) (io.Closer, error)
	}{
		"body":    {newBatch, func(b *batch.Batch) (io.Closer, error) { return b.Open(), nil }},
		"columns": {newColumns, func(b *batch.Batch) (io.Closer, error) { return b.Columns(columnsSchema()) }},
	} {
		t.Run(name, func(t *testing.T) {
			b, freed := c.make()
			first, err := c.open(b)
			require.NoError(t, err)
			second, err := c.open(b)
			require.NoError(t, err)
			b.Release()
			require.NoError(t, first.Close())
			require.NoError(t, first.Close())
			require.Zero(t, *freed, "the second is open")
			require.NoError(t, second.Close())
			require.NoError(t, second.Close())
			require.Equal(t, 1, *freed)
		})
	}
}

func TestAllReadOncePerReading(t *testing.T) {
	b, _ := newBatch()
	calls := 0
	b.AllRead = func() {
		calls++
		require.EqualValues(t, 8, b.Sent())
	}
	r, packet := b.Open(), make([]byte, 7)
	_, _ = r.Read(packet)
	require.Zero(t, calls, "a byte is left")
	_, _ = r.Read(packet)
	_, _ = r.Read(packet)
	_, _ = r.Seek(0, io.SeekStart)
	_, _ = io.Copy(io.Discard, r)
	_ = r.Close()
	require.Equal(t, 2, calls)
}

// broken is a connection that closes after some bytes.
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
		require.EqualValues(t, after, n)
		require.ErrorIs(t, err, io.ErrClosedPipe)
		require.Equal(t, string(b.Encoded[after:]), read(t, r))
	}
}
