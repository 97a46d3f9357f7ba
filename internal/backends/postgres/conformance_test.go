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

// harness is a fresh table for every case, loaded in batches of n rows.
func harness(d dataset.Dataset, f batch.Format, method string, n int64, change func(*loader.Target)) loadertest.Harness {
	wanted := contract(method, f)
	wanted.BatchRows = n
	return backendtest.Harness(d, loadertest.Harness{
		Driver: postgres.New(), Deps: backendtest.Deps(), Contract: wanted, Commit: "COMMIT\x00", // not READ COMMITTED
		Target: func(t *testing.T) loader.Target {
			to := target(t)
			to.Method, to.TLS = method, loader.TLSOff
			if change != nil {
				change(&to)
			}
			return to
		},
	})
}

// Every format, every kind of key, and both kinds of table.
func TestConformance(t *testing.T) {
	unlogged := func(to *loader.Target) { to.Options = options("unlogged", "true") }
	for name, h := range map[string]loadertest.Harness{
		"copy binary":      harness(documents(t), batch.PGBinary, "copy", 1000, nil),
		"insert":           harness(documents(t), batch.PGValues, "insert", 1000, nil),
		"copy text, items": harness(sourceOf(t, "lineitem"), batch.PGText, "copy", 1001, unlogged), // which cuts orders
		"copy csv, logs":   harness(sourceOf(t, "httplogs"), batch.CSV, "copy", 2000, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.Answers = []string{"FROM STDIN", "c\x00\x00\x00\x04"} // CopyDone
			if name == "insert" {
				h.Answers = []string{"OVERRIDING SYSTEM VALUE"}
			}
			loadertest.Run(t, h)
		})
	}
}
