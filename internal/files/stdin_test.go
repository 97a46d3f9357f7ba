package files

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
)

// isStdin has the test read something as standard input.
func isStdin(t *testing.T, from io.Reader) {
	before, in := stdin, newInput(from)
	stdin = func() *input { return in }
	t.Cleanup(func() { stdin = before })
}

// Standard input is read once: its compression and header are seen before, and nothing of it is lost by that.
func TestStandardInput(t *testing.T) {
	text := "a,b\n" + strings.Repeat("1,2\n", 1000)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())

	for _, input := range []string{text, zipped.String()} {
		isStdin(t, strings.NewReader(input))
		spec := NewSpec(CSV)
		spec.Header = true
		spec.Files, err = Find([]string{Stdin})
		require.NoError(t, err)
		require.NoError(t, spec.ReadHeaders(t.Context()))
		require.Equal(t, []string{"a", "b"}, spec.Files[0].Header)

		c := Config{
			Spec: spec, Wire: batch.CSV, Fields: 2, BatchBytes: 64, Buffers: 2, Workers: 1, BufferBytes: 4096, Parallel: 1,
		}
		s, err := New(c)
		require.NoError(t, err)
		var got strings.Builder
		for n := range int64(63) {
			b, err := s.Batch(t.Context(), n)
			require.NoError(t, err)
			got.Write(b.Encoded)
			b.Release()
		}
		require.Equal(t, text[len("a,b\n"):], got.String())
		_, err = s.Batch(t.Context(), 3)
		require.ErrorIs(t, err, errStdin)
		c.Known = []Range{{To: 4}}
		require.NoError(t, s.Close())
		_, err = New(c)
		require.ErrorIs(t, err, errStdin)
	}

	isStdin(t, strings.NewReader(""))
	empty := Spec{Files: []File{{Path: Stdin, Size: -1}}, Format: CSV, Delimiter: ",", Quote: `"`, Escape: `"`, Header: true}
	require.NoError(t, empty.ReadHeaders(t.Context()))
	require.Empty(t, empty.Files[0].Header)
}

// Whoever waits for a pipe that is silent can be stopped: before the load, and in it.
func TestSilentStandardInput(t *testing.T) {
	for _, written := range []string{"", strings.Repeat("1,2\n", 2000)} {
		from, to := io.Pipe()
		isStdin(t, from)
		go func() { _, _ = io.WriteString(to, written) }()
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		if written == "" {
			stop()
		}
		found, err := new(Buckets).Find(ctx, []string{Stdin})
		if written == "" {
			require.ErrorIs(t, err, context.Canceled)
			continue
		}
		require.NoError(t, err)
		stop()
		spec := NewSpec(CSV)
		spec.Files = found
		s, err := New(Config{
			Spec: spec, Wire: batch.CSV, Fields: 2, BatchBytes: 4, Buffers: 3, Workers: 1, BufferBytes: 4096, Parallel: 1,
		})
		require.NoError(t, err)
		b, err := s.Batch(t.Context(), 0)
		require.NoError(t, err)
		b.Release()
		require.NoError(t, s.Close())
	}
}
