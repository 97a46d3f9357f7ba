package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/pkg/batch"
)

// write writes a file into a folder of the test's.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// config is one for a small source of the files.
func config(t *testing.T, format files.Format, paths ...string) files.Config {
	t.Helper()
	spec := files.NewSpec(format)
	var err error
	spec.Files, err = files.Find(paths)
	require.NoError(t, err)
	return files.Config{
		Spec: spec, Run: "r", Wire: batch.TSV, Fields: 1,
		BatchBytes: 64, Buffers: 3, Workers: 1, BufferBytes: 4096, Parallel: 1,
	}
}

// open opens a source that the test closes.
func open(t *testing.T, c files.Config) *files.Source {
	t.Helper()
	s, err := files.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// drain returns all that the batches from a number on hold, and the ranges.
func drain(t *testing.T, s *files.Source, from int64) (all string, ranges []files.Range) {
	t.Helper()
	var text strings.Builder
	for n := from; ; n++ {
		b, err := s.Batch(context.Background(), n)
		if end := (*files.EndError)(nil); err != nil {
			require.ErrorAs(t, err, &end)
			require.Equal(t, n, end.Batches)
			return text.String(), ranges
		}
		text.Write(b.Encoded)
		r, ok := s.Range(n)
		require.True(t, ok)
		require.Equal(t, r.Records, b.Rows)
		ranges = append(ranges, r)
		b.Release()
	}
}

func TestBatchesAreTheFile(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, "%d\tx%s\n", i, strings.Repeat("y", i%50))
	}
	c := config(t, files.TSV, write(t, "a.tsv", text.String()))
	var ahead []files.Range
	c.Ahead = func(r []files.Range) error { ahead = append(ahead, r...); return nil }
	s := open(t, c)
	got, ranges := drain(t, s, 0)
	require.Equal(t, text.String(), got)
	require.Equal(t, ahead, ranges)
	_, records, known := s.End()
	require.True(t, known)
	require.EqualValues(t, 1000, records)

	c.Known, c.Ahead = ahead[:7], nil
	again := open(t, c)
	got, resumed := drain(t, again, 0)
	require.Equal(t, text.String(), got)
	require.Equal(t, ranges, resumed)
}
