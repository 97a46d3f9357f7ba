package postgres_test

import (
	"testing"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		method   string
		source   source
		rows     int64 // of a batch
		unlogged string
	}{
		{"copy", documents(t, batch.PGBinary, dataset.Bytes), 1000, "false"},
		{"copy", documents(t, batch.PGText, dataset.Bytes), 1000, "true"},
		{"copy", documents(t, batch.CSV, dataset.Text), 1000, "false"},
		{"insert", documents(t, batch.PGValues, dataset.Bytes), 1000, "false"},
		{"copy", sourceOf(t, "lineitem", batch.PGBinary), 1001, "false"}, // which cuts orders
		{"copy", sourceOf(t, "lineitem", batch.PGText), 1001, "false"},
		{"copy", sourceOf(t, "httplogs", batch.PGBinary), 2000, "false"},
		{"insert", sourceOf(t, "httplogs", batch.PGValues), 2000, "false"},
	} {
		s := c.source
		t.Run(c.method+" "+string(s.format)+" "+s.schema().Dataset, func(t *testing.T) {
			t.Parallel()
			wanted := contract(c.method, s.format)
			wanted.BatchRows = c.rows
			loadertest.Run(t, backendtest.Harness(s.dataset, loadertest.Harness{
				Driver: postgres.New(), Deps: deps(), Contract: wanted, Commit: "COMMIT\x00", // not READ COMMITTED
				Target: func(t *testing.T) loader.Target {
					to := target(t)
					to.Method, to.TLS = c.method, loader.TLSOff
					to.Options = map[string]string{"unlogged": c.unlogged}
					return to
				},
			}))
		})
	}
}
