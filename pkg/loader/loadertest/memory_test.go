package loadertest_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
	"github.com/terapush/terapush/pkg/rows"
)

func schema() rows.Schema {
	return rows.Schema{
		Dataset: "d",
		Columns: []rows.Column{{Name: "k", Type: rows.Int64, Derived: true}, {Name: "v", Type: rows.Bytes, MaxBytes: 4}},
		Number:  []rows.Term{{Times: 1}},
	}
}

func row(n int64) []any { return []any{n, binary.BigEndian.AppendUint32(nil, uint32(n))} }

func newBatch(_ *testing.T, id batch.ID, first, n int64) *batch.Batch {
	return &batch.Batch{ID: id, Format: batch.PGBinary, First: first, Rows: n, Encoded: make([]byte, 12*n)}
}

// columnBatch makes the same rows as columns.
func columnBatch(t *testing.T, id batch.ID, first, n int64) *batch.Batch {
	t.Helper()
	e, err := encode.New(batch.ColumnArrays, schema(), encode.Options{})
	require.NoError(t, err)
	block := rows.NewBlock(schema())
	block.Reset(int(n))
	key, value := &block.Columns[0], &block.Columns[1]
	for i := range n {
		values := row(first + i)
		key.Ints[i] = values[0].(int64)
		value.Data = append(value.Data, values[1].([]byte)...)
		value.Ends = append(value.Ends, uint32(len(value.Data)))
	}
	w := e.(encode.PerBatch).ForBatch(int(n))
	return &batch.Batch{
		ID: id, Format: batch.ColumnArrays, First: first, Rows: n,
		Encoded: w.AppendTail(w.AppendRows(w.AppendHead(nil), block, &encode.Offsets{})),
	}
}

func contract() loader.Contract {
	return loader.Contract{
		Method: "keep", Format: batch.PGBinary, Delivery: loader.ExactlyOnce, Dedup: loader.DedupTx, BatchRows: 100,
	}
}

// The suite is checked by a back-end that is right by inspection.
func TestMemory(t *testing.T) {
	label, staged, stagedLabel, columns := contract(), contract(), contract(), contract()
	label.Dedup, columns.Format = loader.DedupKey, batch.ColumnArrays
	staged.GroupBatches, stagedLabel.GroupBatches, stagedLabel.Dedup = 3, 2, loader.DedupKey
	for name, c := range map[string]loader.Contract{
		"claims": contract(), "labels": label, "staged": staged, "staged with labels": stagedLabel, "columns": columns,
	} {
		t.Run(name, func(t *testing.T) {
			of := newBatch
			if c.Format == batch.ColumnArrays {
				of = columnBatch
			}
			tables := make(map[string]*loadertest.Memory)
			loadertest.Run(t, loadertest.Harness{
				Driver: tableDriver{Driver: (&loadertest.Memory{}).Driver(), tables: tables},
				Target: func(t *testing.T) loader.Target {
					tables[t.Name()] = &loadertest.Memory{Row: row}
					return loader.Target{Scheme: "memory", Table: t.Name()}
				},
				Schema: schema(), Contract: c, Batch: of, Row: row, Overlap: c.Dedup == loader.DedupKey,
			})
		})
	}
}

// tableDriver gives every table a database of its own.
type tableDriver struct {
	loader.Driver
	tables map[string]*loadertest.Memory
}

func (d tableDriver) Open(ctx context.Context, t loader.Target, deps loader.Deps) (loader.Loader, error) {
	return d.tables[t.Table].Driver().Open(ctx, t, deps)
}

// A database that is given columns of other rows than it should be, or something else, says so and puts nothing in.
func TestMemoryReadsColumns(t *testing.T) {
	m := &loadertest.Memory{Row: row}
	l, err := m.Driver().Open(t.Context(), loader.Target{}, loader.Deps{})
	require.NoError(t, err)
	_, err = l.Prepare(t.Context(), loader.Preparation{Schema: schema()})
	require.NoError(t, err)
	s, err := l.Session(t.Context(), contract())
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*batch.Batch)
		want   string
	}{
		"nothing":           {func(*batch.Batch) {}, ""},
		"another key":       {func(b *batch.Batch) { clear(b.Encoded[99*8:][:8]) }, "row 399, column 0: got 0 (int64), want 399 (int64)"},
		"another value":     {func(b *batch.Batch) { b.Encoded[len(b.Encoded)-1]++ }, `row 399, column 1: got "\x00\x00\x01\x90", want "\x00\x00\x01\x8f"`},
		"rows of the next":  {func(b *batch.Batch) { b.First++ }, "row 301, column 0: got 300 (int64), want 301 (int64)"},
		"a buffer too long": {func(b *batch.Batch) { b.Encoded = append(b.Encoded, 0) }, "has 1 bytes after 100 rows of d"},
	} {
		t.Run(name, func(t *testing.T) {
			b, freed := columnBatch(t, batch.ID{Run: name, Number: 3}, 300, 100), 0
			b.Free = func() { freed++ }
			c.change(b)
			b.Hold()
			before := len(m.Applied())
			ack, err := s.Load(t.Context(), b)
			b.Release()
			require.Equal(t, 1, freed, "the buffer comes back once")
			if c.want == "" {
				require.NoError(t, err)
				require.Equal(t, b.Rows, ack.Rows)
				m.Crash()
				return
			}
			require.ErrorContains(t, err, c.want)
			require.Len(t, m.Applied(), before)
			v := m.Driver().Classify(err)
			require.Equal(t, loader.No, v.Applied)
			require.False(t, v.Retry)
		})
	}
}
