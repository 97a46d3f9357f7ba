package mysql

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// Both methods, whole numbers and keys of two columns. What differs for other keys is shown by TestTables and by the
// arithmetic of the proof.
func TestConformance(t *testing.T) {
	for method, d := range map[string]dataset.Dataset{loadData: sourceOf(t, "lineitem"), insert: documents(t, 512)} {
		answers := []string{"first_key, row_count, connection", "`payload`) VALUES", "SHOW WARNINGS"}
		if method == loadData {
			answers = []string{"LOAD DATA LOCAL", "\n\x00\x00\x00"} // an empty packet ends the rows
		}
		t.Run(method, func(t *testing.T) {
			eachServer(t, func(t *testing.T, s *testServer) {
				loadertest.Run(t, backendtest.Harness(d, loadertest.Harness{
					// A megabyte, so that a cut hits the middle of a body, and orders are cut.
					Driver: New(), Deps: s.deps, Contract: contractOf(method, 2001), Commit: "COMMIT", Answers: answers,
					Target: func(*testing.T) loader.Target {
						target := s.table("t_" + strings.ToLower(rand.Text()))
						target.Method = method
						return target
					},
				}))
			})
		})
	}
}
