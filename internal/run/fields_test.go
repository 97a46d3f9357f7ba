package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Headers may have another order, and not other columns. An empty file has none.
func TestHeaders(t *testing.T) {
	table := []loader.Column{{Name: "id"}, {Name: "name"}, {Name: "total"}}
	of := func(headers ...[]string) (*run.Files, error) {
		f := &run.Files{Spec: files.NewSpec(files.CSV)}
		f.Header = true
		for i, header := range headers {
			f.Files = append(f.Files, files.File{Path: string(rune('a' + i)), Header: header})
		}
		return f.ForTable(table, batch.CSV, nil)
	}
	made, err := of(nil, []string{"ID", "name"}, []string{"name", "id"}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"name", "id"}, made.Fields(2))
	require.Equal(t, 2, made.Width())
	for _, other := range [][]string{{"id"}, {"id", "total"}, {"id", "name", "total"}} {
		_, err := of([]string{"id", "name"}, nil, other)
		require.ErrorContains(t, err, "the header of ")
		require.ErrorContains(t, err, "that of ")
	}
	_, err = of(nil)
	require.ErrorContains(t, err, "the files are empty")

	f := &run.Files{Spec: files.NewSpec(files.CSV), Columns: []string{"id", "name"}}
	f.Header = true
	f.Files = []files.File{{Path: "b"}, {Path: "c", Header: []string{"x", "y", "z"}}}
	_, err = f.ForTable(table, batch.CSV, nil)
	require.EqualError(t, err, "--columns: c has 3 fields, and 2 are named: name a column for each")

	for format, where := range map[files.Format]string{files.NDJSON: "the first line of ", files.Parquet: "the footer of "} {
		f := &run.Files{Spec: files.NewSpec(format)}
		f.Files = []files.File{{Path: "a", Header: []string{"id"}}, {Path: "b", Header: []string{"id", "name"}}}
		_, err := f.ForTable(table, batch.NDJSON, nil)
		require.EqualError(t, err, where+"b names column name, and that of a does not: load files with other columns by themselves")
		f.Files[0].Header = []string{"ids"}
		_, err = f.ForTable(table, batch.NDJSON, nil)
		require.ErrorContains(t, err, where+"a: ")
	}
}

// What a column must not get follows it into the order of each file.
func TestFragile(t *testing.T) {
	table := []loader.Column{{Name: "id"}, {Name: "name", NoNull: true}, {Name: "total", NoEmpty: true}}
	f := &run.Files{Spec: files.NewSpec(files.CSV)}
	f.Header = true
	f.Files = []files.File{{Path: "a", Header: []string{"total", "id"}}, {Path: "b", Header: []string{"ID", "Total"}}}
	made, err := f.ForTable(table, batch.CSV, nil)
	require.NoError(t, err)
	id, total := files.Field{Column: "id"}, files.Field{Column: "total", NoEmpty: true}
	require.Equal(t, []files.Field{total, id}, made.ColumnsIn(0))
	require.Equal(t, []files.Field{id, total}, made.ColumnsIn(1))
	made, err = f.ForTable([]loader.Column{{Name: "id"}, {Name: "total"}}, batch.CSV, nil)
	require.NoError(t, err)
	require.Nil(t, made.ColumnsIn(0))
}
