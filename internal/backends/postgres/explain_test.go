package postgres_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

func TestExplain(t *testing.T) {
	s := documents(t).Schema()
	set := []loader.Setting{{Name: "synchronous_commit", Value: "off"}, {Name: "my.note", Value: "it's"}}
	for name, c := range map[string]struct {
		target loader.Target
		format batch.Format
		dedup  loader.Dedup
	}{
		"copy":                 {loader.Target{Scheme: "postgres"}, batch.PGBinary, loader.DedupTx},
		"copy unlogged":        {loader.Target{Table: `bulk.my "table"`, Settings: set, Options: options("unlogged", "true")}, batch.PGText, loader.DedupTx},
		"insert":               {loader.Target{Method: "insert", Table: "public.documents"}, batch.PGValues, loader.DedupTx},
		"yugabyte copy":        {loader.Target{Scheme: "yugabyte"}, batch.PGBinary, loader.DedupTx},
		"yugabyte pieces":      {loader.Target{Scheme: "yugabyte", Options: options("rows-per-transaction", "20000")}, batch.PGBinary, loader.DedupNone},
		"yugabyte no tx":       {loader.Target{Scheme: "yugabyte", Options: options("disable-transactional-writes", "true")}, batch.PGBinary, loader.DedupNone},
		"redshift":             {loader.Target{Scheme: "redshift", Method: "s3-copy", Via: via(), Options: options("iam-role", "arn:aws:iam::1:role/load")}, batch.CSV, loader.DedupTx},
		"redshift once":        {loader.Target{Scheme: "redshift", Method: "s3-copy", Via: via(), Options: options("s3-keys", "true")}, batch.CSV, loader.DedupNone},
		"journal":              {loader.Target{Scheme: "postgres", Table: "journal"}, batch.PGBinary, loader.DedupTx},
		"yugabyte once a copy": {loader.Target{Scheme: "yugabyte"}, batch.PGBinary, loader.DedupNone},
		"copy truncate":        {loader.Target{Scheme: "postgres"}, batch.PGBinary, loader.DedupTx},
		"httplogs":             {loader.Target{Scheme: "postgres", Table: "httplogs"}, batch.PGBinary, loader.DedupTx},
		"httplogs redshift":    {loader.Target{Scheme: "redshift", Table: "httplogs", Method: "s3-copy", Via: via()}, batch.CSV, loader.DedupTx},
		"lineitem":             {loader.Target{Scheme: "postgres", Table: "lineitem"}, batch.PGBinary, loader.DedupTx},
		"lineitem pieces":      {loader.Target{Scheme: "yugabyte", Table: "lineitem", Options: options("rows-per-transaction", "2")}, batch.PGBinary, loader.DedupNone},
		"lineitem redshift":    {loader.Target{Scheme: "redshift", Table: "lineitem", Method: "s3-copy", Via: via()}, batch.CSV, loader.DedupTx},
	} {
		t.Run(name, func(t *testing.T) {
			method := c.target.Method
			if method == "" {
				method = "copy"
			}
			var b strings.Builder
			wanted := loader.Contract{Method: method, Format: c.format, Dedup: c.dedup, BatchRows: 50000}
			schema := s
			if c.target.Via != nil {
				wanted.GroupBatches, schema = 100, people()
			}
			p := loader.Preparation{Schema: schema, Contract: wanted}
			// Keys of text, of a timestamp and of two columns.
			if slices.Contains([]string{"journal", "httplogs", "lineitem"}, c.target.Table) {
				p.Schema, p.PrimaryKey = sourceOf(t, c.target.Table).Schema(), c.target.Scheme == "postgres"
			}
			if strings.HasSuffix(name, "truncate") {
				p.Create = loader.CreateTruncate
			}
			for _, st := range postgres.New().Explain(c.target, p) {
				_, _ = fmt.Fprintf(&b, "-- %s\n%s;\n", st.When, st.Text)
			}
			golden.Equal(t, filepath.Join("explain", strings.ReplaceAll(name, " ", "-")+".sql"), b.String())
		})
	}
}

func options(name, value string) map[string]string { return map[string]string{name: value} }

func via() *loader.Target {
	return &loader.Target{Scheme: "s3", Hosts: []string{"bucket"}, Database: "in/2026/"}
}
