package feed

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
)

// benchConfig returns a ring of 64 buffers: of documents, the default load, more than the caches hold.
func benchConfig(tb testing.TB, name string, f batch.Format, distinctBatches, batchRows int64) Config {
	d, err := dataset.New(name, dataset.Options{})
	require.NoError(tb, err)
	c := Config{Dataset: d, Rows: 1 << 40, BatchRows: batchRows, Distinct: distinctBatches * batchRows, Buffers: 64}
	c.Encoder, err = NewEncoder(f, d, 0, c.Rows)
	require.NoError(tb, err)
	return c
}

// benchmarkBatches makes one batch after the other.
func benchmarkBatches(b *testing.B, c Config) {
	f := newFeed(b, c)
	require.NoError(b, f.Fill(b.Context(), 2, nil))
	b.ReportAllocs()
	for number := int64(c.Buffers); b.Loop(); number++ {
		out, err := f.Batch(b.Context(), number)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(out.Encoded)))
		out.Release()
	}
	require.Zero(b, f.Refills())
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.BatchRows), "ns/row")
}

// BenchmarkBatch measures one batch of 8192 rows, found in the ring and stamped.
func BenchmarkBatch(b *testing.B) {
	for _, format := range []batch.Format{batch.TSV, batch.PGBinary, batch.ColumnArrays} {
		b.Run(string(format), func(b *testing.B) { benchmarkBatches(b, benchConfig(b, "documents", format, 64, 8192)) })
	}
}

// BenchmarkFill measures one core that makes rows and encodes them, into memory that is already mapped.
func BenchmarkFill(b *testing.B) {
	for _, format := range []batch.Format{batch.TSV, batch.PGBinary, batch.PGText, batch.ColumnArrays} {
		b.Run(string(format), func(b *testing.B) { benchmarkBatches(b, benchConfig(b, "documents", format, 0, 8192)) })
	}
}

// BenchmarkDatasets measures batches of 4 MiB of column data: stamped where the format can be, encoded afresh where not.
func BenchmarkDatasets(b *testing.B) {
	for _, name := range dataset.Names()[1:] {
		for _, format := range []batch.Format{batch.CSV, batch.NDJSON, batch.PGBinary, batch.Parquet, batch.ColumnArrays} {
			for _, distinct := range []int64{32, 0} {
				b.Run(fmt.Sprintf("%s/%s/distinct=%d", name, format, distinct), func(b *testing.B) {
					d, err := dataset.New(name, dataset.Options{})
					require.NoError(b, err)
					c := benchConfig(b, name, format, distinct, 4<<20/d.Schema().MaxRowBytes())
					c.Buffers = 32
					benchmarkBatches(b, c)
				})
			}
		}
	}
}

func TestBatchAllocatesNothingPerRow(t *testing.T) {
	for _, format := range []batch.Format{batch.TSV, batch.ColumnArrays} {
		for _, distinct := range []int64{4, 0} { // stamped, encoded
			c := benchConfig(t, "documents", format, distinct, 1024)
			c.Buffers = 4
			f := newFeed(t, c)
			require.NoError(t, f.Fill(t.Context(), 1, nil))
			number := int64(4)
			allocs := testing.AllocsPerRun(20, func() {
				b, err := f.Batch(t.Context(), number)
				require.NoError(t, err)
				b.Release()
				number++
			})
			assert.Less(t, allocs, 20.0, "a batch of %d rows as %s", c.BatchRows, format)
		}
	}
}
