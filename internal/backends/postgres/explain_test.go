package postgres_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// go test ./internal/backends/postgres -run Explain -update
var update = flag.Bool("update", false, "write the golden files anew")

func TestExplain(t *testing.T) {
	s := documents(t, batch.PGBinary, dataset.Bytes).schema()
	set := []loader.Setting{{Name: "synchronous_commit", Value: "off"}, {Name: "my.note", Value: "it's"}}
	for name, c := range map[string]struct {
		target loader.Target
		format batch.Format
		dedup  loader.Dedup
	}{
		"copy":                 {loader.Target{Scheme: "postgres"}, batch.PGBinary, loader.DedupTx},
		"copy at least once":   {loader.Target{Scheme: "postgres"}, batch.CSV, loader.DedupNone},
		"copy unlogged":        {loader.Target{Table: `bulk.my "table"`, Settings: set, Options: options("unlogged", "true")}, batch.PGText, loader.DedupTx},
		"insert":               {loader.Target{Method: "insert", Table: "public.documents"}, batch.PGValues, loader.DedupTx},
		"yugabyte copy":        {loader.Target{Scheme: "yugabyte"}, batch.PGBinary, loader.DedupTx},
		"yugabyte pieces":      {loader.Target{Scheme: "yugabyte", Options: options("rows-per-transaction", "20000")}, batch.PGBinary, loader.DedupRange},
		"yugabyte no tx":       {loader.Target{Scheme: "yugabyte", Options: options("disable-transactional-writes", "true")}, batch.PGBinary, loader.DedupNone},
		"yugabyte insert":      {loader.Target{Scheme: "yugabyte", Method: "insert"}, batch.PGValues, loader.DedupTx},
		"yugabyte once a copy": {loader.Target{Scheme: "yugabyte"}, batch.PGBinary, loader.DedupNone},
	} {
		t.Run(name, func(t *testing.T) {
			method := c.target.Method
			if method == "" {
				method = "copy"
			}
			var b strings.Builder
			for _, st := range postgres.New().Explain(c.target, loader.Preparation{Schema: s, Contract: loader.Contract{
				Method: method, Format: c.format, Dedup: c.dedup, BatchRows: 50000,
			}}) {
				_, _ = fmt.Fprintf(&b, "-- %s\n%s;\n", st.When, st.Text)
			}
			file := filepath.Join("testdata", "explain", strings.ReplaceAll(name, " ", "-")+".sql")
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), b.String())
		})
	}
}

func options(name, value string) map[string]string { return map[string]string{name: value} }
