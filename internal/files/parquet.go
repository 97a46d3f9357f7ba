package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/parquet-go/parquet-go"
)

var parquetMagic = []byte("PAR1")

// readFooter returns the names of a Parquet file's columns.
func readFooter(ctx context.Context, f File) ([]string, error) {
	switch {
	case f.Path == Stdin:
		return nil, errors.New("a Parquet file is read from its end, which standard input has not: name the file")
	case f.Compression != Plain:
		return nil, fmt.Errorf("%s is compressed by %s, and no Parquet file: decompress it", f.Path, f.Compression)
	}
	in, err := f.open(ctx, 0, nil, 0)
	if err != nil {
		return nil, err
	}
	defer in.close()
	footer, err := openParquet(f, anywhere{in})
	if err != nil {
		return nil, err
	}

	var names []string
	for _, field := range footer.Schema().Fields() {
		names = append(names, field.Name())
	}
	return names, nil
}

// openParquet reads and checks a footer: no column is nested, so each has as many values as there are rows.
func openParquet(f File, in io.ReaderAt) (*parquet.File, error) {
	footer, err := parquet.OpenFile(in, f.Size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("%s is no Parquet file, or is not whole: %w", f.Path, err)
	}
	for _, field := range footer.Schema().Fields() {
		if !field.Leaf() || field.Repeated() {
			return nil, fmt.Errorf("%s: column %s is nested, which load does not take: write it as a column of JSON texts",
				f.Path, field.Name())
		}
	}
	rows := int64(0)
	for i, group := range footer.Metadata().RowGroups {
		rows += group.NumRows
		for _, c := range group.Columns {
			if c.MetaData.NumValues != group.NumRows {
				return nil, fmt.Errorf("%s: row group %d has %d rows, and %d values in column %s",
					f.Path, i, group.NumRows, c.MetaData.NumValues, c.MetaData.PathInSchema)
			}
		}
	}
	if rows != footer.NumRows() {
		return nil, fmt.Errorf("%s has %d rows by its footer, and %d by its row groups", f.Path, footer.NumRows(), rows)
	}
	return footer, nil
}

// anywhere reads at offsets of a file that is stored as it is.
type anywhere struct{ *stream }

func (a anywhere) ReadAt(p []byte, at int64) (int, error) {
	if err := a.skipTo(at); err != nil {
		return 0, err
	}
	n, ended, err := a.fill(p)
	if err == nil && ended && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// cutWhole reads a Parquet file into a buffer, and reports whether it has rows. How many there are is in its footer.
func (c *cutter) cutWhole(b *buffer) (bool, error) {
	n, _, err := c.in.fill(b.memory[:c.file.Size])
	if err == nil {
		err = c.in.whole()
	}
	if err != nil {
		return false, err
	}
	c.eof = true
	footer, err := openParquet(c.file, bytes.NewReader(b.memory[:n]))
	if err != nil || footer.NumRows() == 0 {
		return false, err
	}

	r := c.next
	r.FirstLine, r.To, r.Records, r.Last = 0, int64(n), footer.NumRows(), true
	r.Hash = crc32.Checksum(b.memory[:n], castagnoli)
	b.at, b.raw, b.seen = r, b.memory[:n], seen{}
	return true, nil
}
