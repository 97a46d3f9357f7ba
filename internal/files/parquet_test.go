package files_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/pkg/batch"
)

type parquetRow struct {
	ID   int64   `parquet:"id"`
	Name *string `parquet:"name"`
}

// parquetFile returns a file of row groups of three rows.
func parquetFile[T any](t *testing.T, rows int) string {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, parquet.Write(&file, make([]T, rows), parquet.MaxRowsPerRowGroup(3)))
	return file.String()
}

func parquetConfig(t *testing.T, paths ...string) (files.Config, error) {
	t.Helper()
	c := config(t, files.Parquet, paths...)
	c.Wire, c.Fields, c.BatchBytes, c.BufferBytes = batch.Parquet, 2, 64<<10, 1<<20
	return c, c.Spec.ReadHeaders(t.Context())
}

// A file is a batch as it is, with the rows of its footer, and so is it when it is sent again.
func TestParquet(t *testing.T) {
	texts := []string{parquetFile[parquetRow](t, 10), parquetFile[parquetRow](t, 0), parquetFile[parquetRow](t, 3)}
	var paths []string
	for i, text := range texts {
		paths = append(paths, write(t, string(rune('a'+i))+".parquet", text))
	}
	c, err := parquetConfig(t, paths...)
	require.NoError(t, err)
	require.Equal(t, []string{"id", "name"}, c.Spec.Files[0].Header)
	var kept []files.Range
	c.Ahead = func(more []files.Range) error {
		kept = append(kept, more...)
		return nil
	}
	rows := func(c files.Config) (all int64) {
		require.NoError(t, drain(open(t, c), 0, func(b *batch.Batch) {
			all += b.Rows
			require.Contains(t, texts, string(b.Encoded))
		}))
		return all
	}
	require.EqualValues(t, 13, rows(c))
	require.Len(t, kept, 2)

	c.Known, c.Ahead = kept, nil
	require.EqualValues(t, 13, rows(c))
	c.Known, c.Done = kept, func(number int64) bool { return number == 0 }
	b, err := open(t, c).Batch(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, kept[1].Records, b.Rows)
	b.Release()
}

// What is no whole file of columns that are not nested is refused by name, before anything is sent.
func TestParquetThatIsRefused(t *testing.T) {
	whole := parquetFile[parquetRow](t, 10)
	type nested struct {
		Tags []string `parquet:"tags"`
	}
	var lists bytes.Buffer
	require.NoError(t, parquet.Write(&lists, []nested{{Tags: []string{"a", "b"}}}))
	for text, problem := range map[string]string{
		whole[:len(whole)-9]:      "file.parquet is no Parquet file, or is not whole",
		whole[:20]:                "file.parquet is no Parquet file, or is not whole",
		"id,name\n":               "file.parquet is no Parquet file, or is not whole",
		parquetFile[nested](t, 2): "column tags is nested",
		lists.String():            "column tags is nested",
	} {
		_, err := parquetConfig(t, write(t, "file.parquet", text))
		require.ErrorContains(t, err, problem)
	}

	path := write(t, "file.csv", whole)
	require.ErrorContains(t, drain(open(t, config(t, files.CSV, path)), 0, func(*batch.Batch) {}), "is a Parquet file: give --format parquet")

	c, err := parquetConfig(t, write(t, "file.parquet", whole))
	require.NoError(t, err)
	from := open(t, c)
	b, err := from.Batch(t.Context(), 0)
	require.NoError(t, err)
	b.Release()
	middle := []byte(whole)
	middle[6]++
	require.NoError(t, os.WriteFile(filepath.Clean(c.Spec.Files[0].Path), middle, 0o600))
	_, err = from.Batch(t.Context(), 0)
	require.ErrorAs(t, err, new(*files.ChangedError))
}
