package mysql

import (
	"strings"
	"testing"

	"crypto/rand"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestConformance(t *testing.T) {
	for _, method := range direct() {
		t.Run(method.Name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *testServer) {
				runConformance(t, s, method.Name, documents(t, 512), 2000) // a megabyte, so that a cut hits the middle of a body
			})
		})
	}
	// A key of two columns, with batches that cut orders, and one that is a timestamp.
	for method, name := range map[string]string{loadData: "lineitem", insert: "httplogs"} {
		t.Run(method+" "+name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *testServer) { runConformance(t, s, method, sourceOf(t, name), 2001) })
		})
	}
}

func runConformance(t *testing.T, s *testServer, method string, d dataset.Dataset, batchRows int64) {
	loadertest.Run(t, backendtest.Harness(d, loadertest.Harness{
		Driver: New(), Deps: s.deps, Contract: contractOf(method, batchRows), Commit: "COMMIT",
		Target: func(*testing.T) loader.Target {
			target := s.table("t_" + strings.ToLower(rand.Text()))
			target.Method = method
			return target
		},
	}))
}
