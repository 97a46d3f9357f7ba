package mysql

import (
	"strings"
	"testing"

	"crypto/rand"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
	"github.com/terapush/terapush/pkg/rows"
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
	contract := contractOf(method, batchRows)
	loadertest.Run(t, loadertest.Harness{
		Driver:   New(),
		Deps:     s.deps,
		Schema:   d.Schema(),
		Contract: contract,
		Commit:   "COMMIT",
		Target: func(*testing.T) loader.Target {
			target := s.table("t_" + strings.ToLower(rand.Text()))
			target.Method = method
			return target
		},
		Batch: func(t *testing.T, id batch.ID, first, n int64) *batch.Batch {
			b := batchOf(t, d, contract.Format, id, first, n)
			b.Release() // the suite holds it
			return b
		},
		Row: func(number int64) []any {
			block := rows.NewBlock(d.Schema())
			dataset.Row(block, d, 0, number, 0)
			values := make([]any, len(block.Columns))
			for i, c := range d.Schema().Columns {
				if c.Type.Variable() {
					values[i] = block.Columns[i].Value(0)
				} else {
					values[i] = block.Columns[i].Ints[0]
				}
			}
			return values
		},
	})
}
