package source

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
)

// BenchmarkBatches measures one core that makes batches of 4 MiB of column data, in a ring that is more than the caches
// hold: found there and stamped where the format can be, or encoded afresh.
func BenchmarkBatches(b *testing.B) {
	formats := []batch.Format{batch.TSV, batch.CSV, batch.NDJSON, batch.PGBinary, batch.PGText, batch.Parquet, batch.ColumnArrays}
	for _, name := range dataset.Names() {
		d, err := dataset.New(name, dataset.Options{})
		require.NoError(b, err)
		for _, format := range formats {
			if encode.Carries(format, d.Schema()) != nil {
				continue
			}
			for _, distinct := range []int64{32, 0} {
				b.Run(fmt.Sprintf("%s/%s/distinct=%d", name, format, distinct), func(b *testing.B) {
					c := Config{Dataset: d, Spans: Spans{Rows: 1 << 40, BatchRows: 4 << 20 / d.Schema().MaxRowBytes()}, Buffers: 32}
					c.Distinct = distinct * c.BatchRows
					c.Encoder, err = NewEncoder(format, d, 0, c.Rows)
					require.NoError(b, err)
					benchmarkBatches(b, c)
				})
			}
		}
	}
}

// benchmarkBatches makes one batch after the other.
func benchmarkBatches(b *testing.B, c Config) {
	r := newRing(b, c)
	require.NoError(b, r.Fill(b.Context(), 2, nil))
	b.ReportAllocs()
	for number := int64(c.Buffers); b.Loop(); number++ {
		out, err := r.Batch(b.Context(), number)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(out.Encoded)))
		out.Release()
	}
	require.Zero(b, r.Refills())
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(c.BatchRows), "ns/row")
}

func TestBatchAllocatesNothingPerRow(t *testing.T) {
	for _, format := range []batch.Format{batch.TSV, batch.ColumnArrays} {
		for _, distinct := range []int64{4, 0} { // stamped, encoded
			c := config(t, format, distinct*1024, 4)
			c.Rows, c.BatchRows = 1<<20, 1024
			var err error
			c.Encoder, err = NewEncoder(format, c.Dataset, c.FirstKey, c.Rows)
			require.NoError(t, err)
			r := newRing(t, c)
			require.NoError(t, r.Fill(t.Context(), 1, nil))
			number := int64(4)
			allocs := testing.AllocsPerRun(20, func() {
				b, err := r.Batch(t.Context(), number)
				require.NoError(t, err)
				b.Release()
				number++
			})
			assert.Less(t, allocs, 20.0, "a batch of %d rows as %s", c.BatchRows, format)
		}
	}
}
