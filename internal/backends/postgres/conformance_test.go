package postgres_test

import (
	"testing"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		method   string
		format   batch.Format
		kind     dataset.Kind
		unlogged string
	}{
		{"copy", batch.PGBinary, dataset.Bytes, "false"},
		{"copy", batch.PGText, dataset.Bytes, "true"},
		{"copy", batch.CSV, dataset.Text, "false"},
		{"insert", batch.PGValues, dataset.Bytes, "false"},
	} {
		t.Run(c.method+" "+string(c.format), func(t *testing.T) {
			t.Parallel()
			s := documents(t, c.format, c.kind)
			loadertest.Run(t, loadertest.Harness{
				Driver: postgres.New(), Deps: deps(), Schema: s.schema(), Contract: contract(c.method, c.format),
				Target: func(t *testing.T) loader.Target {
					to := target(t)
					to.Method, to.TLS = c.method, loader.TLSOff
					to.Options = map[string]string{"unlogged": c.unlogged}
					return to
				},
				Batch: func(t *testing.T, id batch.ID, first, n int64) *batch.Batch { return s.batch(t, id, first, n) },
				Row:   s.row, Commit: "COMMIT\x00", // not READ COMMITTED
			})
		})
	}
}
