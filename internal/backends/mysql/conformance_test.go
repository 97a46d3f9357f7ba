package mysql

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// vanishes are the cases of a client whose end the server does not notice. Its session keeps the claim of its batch until
// wait_timeout where an uncommitted claim cannot be read, and so does not say whose it is.
var vanishes = []string{"client vanished", "client vanished, another process resumes"}

// Both methods, whole numbers and keys of two columns. What differs for other keys is shown by TestTables and by the
// arithmetic of the proof.
func TestConformance(t *testing.T) {
	for method, d := range map[string]dataset.Dataset{methodLoadData: sourceOf(t, "lineitem"), methodInsert: documents(t, 512)} {
		t.Run(method, func(t *testing.T) {
			everyServer(t, func(t *testing.T, s *testServer) {
				h := loadertest.Harness{
					// A megabyte, so that a cut hits the middle of a body, and orders are cut.
					Driver: New(), Deps: s.deps, Contract: contractOf(method, 2001), Commit: "COMMIT",
					Target: func(*testing.T) loader.Target {
						target := s.table("t_" + strings.ToLower(rand.Text()))
						if s.flavour == tiDB { // which ends a vanished client's transaction by itself
							target.Settings = []loader.Setting{{Name: "tidb_idle_transaction_timeout", Value: "1"}}
						}
						target.Method = method
						return target
					},
				}
				rows := []string{"LOAD DATA LOCAL", "\n\x00\x00\x00"} // an empty packet ends the rows
				if method == methodInsert {
					rows = []string{"`payload`) VALUES"}
				}
				h.Answers = rows
				if method == methodInsert || !s.flavour.joins() {
					h.Answers = slices.Concat([]string{"first_key, row_count, connection"}, rows, []string{"SHOW WARNINGS"})
				}
				switch s.flavour {
				case oceanBase:
					if method == methodLoadData {
						h.Contract.Delivery, h.Contract.Dedup, h.Answers = loader.AtLeastOnce, loader.DedupNone, nil
					}
					h.Without = append(vanishes, "stored") // of rows in memory it counts none
				case tiDB:
					h.Without = []string{"stored"} // its statistics come later
				}
				loadertest.Run(t, backendtest.Harness(d, h))
			})
		})
	}
}
