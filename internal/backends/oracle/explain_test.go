package oracle

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// What no server takes is not shown as if one did.
func TestExplainOfLongValues(t *testing.T) {
	s := every()
	s.Columns[1].MaxBytes = 40_000
	shown := Driver{client: builtIn()}.Explain(loader.Target{}, loader.Preparation{
		Schema: s, Contract: loader.Contract{Method: methodArray, Format: batch.ColumnArrays, Dedup: loader.DedupTx, BatchRows: 10},
	})
	require.Len(t, shown, 1)
	assert.Contains(t, shown[0].When, "refused: ")
	assert.Contains(t, shown[0].When, "40000 bytes")
	assert.Contains(t, shown[0].When, "--payload-bytes")
	assert.NotContains(t, shown[0].When, "\n")
}

// go test ./internal/backends/oracle -run Explain -update

func TestExplain(t *testing.T) {
	set := []loader.Setting{{Name: "commit_logging", Value: "batch"}, {Name: "nls_date_format", Value: "YYYY-MM-DD"}}
	direct := func(o map[string]string) loader.Target { return loader.Target{Method: methodDirect, Options: o} }
	for name, c := range map[string]struct {
		target loader.Target
		schema rows.Schema
		dedup  loader.Dedup
		create loader.CreateMode
	}{
		"array of every type": {loader.Target{Table: "bulk.every", Settings: set}, every(), loader.DedupTx, loader.CreateRecreate},
		"array of times":      {loader.Target{}, schemaOf(t, "httplogs"), loader.DedupTx, ""},
		"single lineitem":     {loader.Target{Method: methodSingle}, schemaOf(t, "lineitem"), loader.DedupNone, ""},
		"fast pairs":          {loader.Target{Method: methodFast}, schemaOf(t, "pairs"), loader.DedupNone, loader.CreateTruncate},
		"array at least once": {loader.Target{}, journal(), loader.DedupNone, loader.CreateNever},
		"direct partition":    {direct(map[string]string{"partition": "p2026"}), journal(), loader.DedupTx, ""},
	} {
		t.Run(name, func(t *testing.T) {
			contract := loader.Contract{Method: c.target.Method, Format: batch.ColumnArrays, Dedup: c.dedup, BatchRows: 3000}
			if contract.Method == "" {
				contract.Method = methodArray
			}
			driver := Driver{client: builtIn()}
			driver.client.directPath = true
			driver.client.endsByStatement = false // the texts are those of go-ora, whichever is in this binary
			var b strings.Builder
			p := loader.Preparation{
				Schema: c.schema, Contract: contract, Create: c.create, PrimaryKey: c.target.Method == methodSingle,
			}
			for _, st := range driver.Explain(c.target, p) {
				_, _ = fmt.Fprintf(&b, "-- %s\n%s;\n", st.When, st.Text)
			}
			golden.Equal(t, filepath.Join("explain", strings.ReplaceAll(name, " ", "-")+".sql"), b.String())
		})
	}
}
