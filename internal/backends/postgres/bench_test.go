package postgres_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// BenchmarkBatchBytes loads 512 MiB on two sessions in batches of several sizes: what DefaultBatchBytes was chosen by.
//
//	go test ./internal/backends/postgres -run - -bench BatchBytes -benchtime 1x -count 3
func BenchmarkBatchBytes(b *testing.B) {
	const total, sessions = 512 << 20, 2
	for _, c := range []struct {
		method string
		format batch.Format
		sizes  []int64
	}{
		{"copy", batch.PGBinary, []int64{1 << 20, 4 << 20, 16 << 20, 32 << 20, 64 << 20, 128 << 20}},
		{"insert", batch.PGValues, []int64{64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20}},
	} {
		s := documents(b, c.format, dataset.Bytes)
		one := s.batch(b, batch.ID{}, 0, 1)
		for _, size := range c.sizes {
			b.Run(fmt.Sprintf("%s/%dKiB", c.method, size>>10), func(b *testing.B) {
				rows := size / int64(len(one.Encoded))
				b.SetBytes(total)
				for range b.N {
					b.StopTimer()
					to := target(b)
					to.Method = c.method
					l, err := postgres.New().Open(b.Context(), to, deps())
					require.NoError(b, err)
					_, err = l.Prepare(b.Context(), loader.Preparation{
						Run: "bench", Schema: s.schema(), Contract: contract(c.method, c.format), Create: loader.CreateIfMissing,
					})
					require.NoError(b, err)
					template := s.batch(b, batch.ID{}, 0, rows)
					b.StartTimer()
					var wg sync.WaitGroup
					for w := range int64(sessions) {
						wg.Go(func() { loadShare(b, l, template, contract(c.method, c.format), w, total/size/sessions) })
					}
					wg.Wait()
				}
			})
		}
	}
}

// loadShare sends the template n times under batch numbers of its own.
func loadShare(b *testing.B, l loader.Loader, template *batch.Batch, c loader.Contract, worker, n int64) {
	s, err := l.Session(b.Context(), c)
	if err != nil {
		b.Error(err)
		return
	}
	defer func() { _ = s.Close() }()
	for i := range n {
		mine := &batch.Batch{
			ID: batch.ID{Run: "bench", Number: worker<<32 + i}, Format: template.Format, First: template.First,
			Rows: template.Rows, Encoded: template.Encoded, Head: template.Head, Starts: template.Starts,
		}
		mine.Hold()
		if _, err := s.Load(b.Context(), mine); err != nil {
			b.Error(err)
			return
		}
		mine.Release()
	}
}
