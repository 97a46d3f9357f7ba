package mysql

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/pkg/loader"
)

// What a run says on the other flavours is in the golden files of their sessions.
func TestExplain(t *testing.T) {
	for name, c := range map[string]struct{ scheme, method, dataset string }{
		"mysql-load-data":       {"mysql", methodLoadData, "documents"},
		"mysql-insert":          {"mysql", methodInsert, "documents"},
		"mysql-journal":         {"mysql", methodLoadData, "journal"},  // a LONGTEXT cannot be a key
		"mysql-httplogs":        {"mysql", methodLoadData, "httplogs"}, // a key that is a timestamp
		"mysql-lineitem":        {"mysql", methodLoadData, "lineitem"}, // a key of two columns
		"singlestore-load-data": {"singlestore", methodLoadData, "documents"},
		"singlestore-lineitem":  {"singlestore", methodLoadData, "lineitem"},
		"singlestore-pipeline":  {"singlestore", methodPipeline, "documents"},
		"tidb-load-data":        {"tidb", methodLoadData, "documents"},
	} {
		t.Run(name, func(t *testing.T) {
			to := loader.Target{Scheme: c.scheme, Password: "hunter2", Database: "shop", Table: "shop." + c.dataset}
			p := loader.Preparation{Contract: contractOf(c.method, 1000)}
			if c.dataset == "documents" {
				to.Settings = []loader.Setting{{Name: "unique_checks", Value: "0"}}
				p.Schema = documents(t, 512).Schema()
			} else {
				p.Schema, p.PrimaryKey = sourceOf(t, c.dataset).Schema(), c.scheme != "singlestore"
			}
			if c.method == methodPipeline {
				to.Via = &loader.Target{Scheme: "s3", Hosts: []string{"bucket"}, Database: "in/2026/"}
			}
			var b strings.Builder
			for _, s := range New().Explain(to, p) {
				fmt.Fprintf(&b, "-- %s\n%s;\n", s.When, s.Text)
			}
			assert.NotContains(t, b.String(), "hunter2")
			golden.Equal(t, "explain-"+name+".sql", b.String())
		})
	}
	c := contractOf(methodLoadData, 1000)
	c.Delivery, c.Dedup = loader.AtLeastOnce, loader.DedupNone
	all := New().Explain(loader.Target{Scheme: "mysql", Table: "shop.documents"},
		loader.Preparation{Schema: documents(t, 512).Schema(), Contract: c, Create: loader.CreateTruncate})
	assert.Contains(t, all, loader.Statement{When: "once, if the table is there", Text: "TRUNCATE TABLE `shop`.`documents`"})
	assert.Contains(t, all, loader.Statement{When: "per batch", Text: "SHOW WARNINGS"})
	for _, s := range all {
		assert.NotContains(t, s.Text, "terapush_claims")
	}
}

func lines(statements []string) string { return strings.Join(statements, ";\n") + ";\n" }
