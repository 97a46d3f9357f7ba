package loadertest

import (
	"fmt"
	"io"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// read opens the batch, as a load does from its beginning to its end. Columns are read here and now.
func (s *memorySession) read(b *batch.Batch) (io.Closer, error) {
	if b.Format != batch.ColumnArrays {
		return b.Open(), nil
	}
	s.mu.Lock()
	schema := s.schema
	s.mu.Unlock()
	columns, err := b.Columns(schema)
	if err != nil {
		return nil, err
	}
	for i := 0; i < columns.Rows && s.Row != nil; i++ {
		if err := s.compare(b.First+int64(i), columns.Vectors, i); err != nil {
			_ = columns.Close()
			return nil, fmt.Errorf("%w: batch %s, %w", ErrRejected, b.ID, err)
		}
	}
	columns.Passed(columns.Rows)
	return columns, nil
}

// compare looks at row i of the vectors, which is to be the one of this number.
func (m *Memory) compare(number int64, vectors []rows.Vector, i int) error {
	want := m.Row(number)
	if len(want) != len(vectors) {
		return fmt.Errorf("row %d has %d columns, want %d", number, len(vectors), len(want))
	}
	for c := range vectors {
		v := &vectors[c]
		var got any
		if v.Type.Variable() {
			got = v.Value(i)
		} else {
			got = v.Ints[i]
		}
		if !same(got, want[c]) {
			return fmt.Errorf("row %d, column %d: got %s, want %s", number, c, shown(got), shown(want[c]))
		}
	}
	return nil
}
