package mysql

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), got, "%s; -update writes it anew", path)
}

func lines(statements []string) string { return strings.Join(statements, ";\n") + ";\n" }

// mysqlRegister registers a session's reader under the name that a test has given it.
func mysqlRegister(s *session) { mysql.RegisterReaderHandler(s.reader, s.handOut) }

func TestExplain(t *testing.T) {
	d := documents(t, 512)
	for _, scheme := range []string{"mysql", "tidb", "singlestore"} {
		for _, m := range New().Methods() {
			if m.Caps.Staged && scheme != "singlestore" {
				continue
			}
			t.Run(scheme+" "+m.Name, func(t *testing.T) {
				target := loader.Target{
					Scheme: scheme, User: "root", Password: "hunter2", Database: "shop", Table: "documents",
					Settings: []loader.Setting{{Name: "unique_checks", Value: "0"}},
				}
				if m.Caps.Staged {
					target.Via = &loader.Target{Scheme: "s3", Hosts: []string{"bucket"}, Database: "in/2026/"}
				}
				var b strings.Builder
				for _, s := range New().Explain(target, loader.Preparation{Schema: d.Schema(), Contract: contractOf(m.Name, 1000)}) {
					fmt.Fprintf(&b, "-- %s\n%s;\n", s.When, s.Text)
				}
				assert.NotContains(t, b.String(), "hunter2")
				golden(t, fmt.Sprintf("explain-%s-%s.sql", scheme, m.Name), b.String())
			})
		}
	}
	// A LONGTEXT cannot be a key; the others have keys of a timestamp and of two columns.
	for _, name := range []string{"journal", "httplogs", "lineitem"} {
		for _, scheme := range []string{"mysql", "tidb", "singlestore"} {
			if name == "journal" && scheme == "tidb" {
				continue
			}
			t.Run(scheme+" "+name, func(t *testing.T) {
				p := loader.Preparation{Schema: sourceOf(t, name).Schema(), Contract: contractOf(loadData, 1000), PrimaryKey: scheme != "singlestore"}
				var b strings.Builder
				for _, s := range New().Explain(loader.Target{Scheme: scheme, Table: "shop." + name}, p) {
					fmt.Fprintf(&b, "-- %s\n%s;\n", s.When, s.Text)
				}
				golden(t, "explain-"+scheme+"-"+name+".sql", b.String())
			})
		}
	}
	t.Run("truncate", func(t *testing.T) {
		all := New().Explain(loader.Target{Scheme: "mysql", Table: "shop.documents"},
			loader.Preparation{Schema: d.Schema(), Contract: contractOf(loadData, 1000), Create: loader.CreateTruncate})
		made := slices.IndexFunc(all, func(s loader.Statement) bool {
			return strings.HasPrefix(s.Text, "CREATE TABLE IF NOT EXISTS `shop`.`documents`")
		})
		emptied := slices.Index(all, loader.Statement{When: "once", Text: "TRUNCATE TABLE `shop`.`documents`"})
		assert.Less(t, -1, made)
		assert.Equal(t, made+1, emptied)
	})
	t.Run("at least once", func(t *testing.T) {
		c := contractOf(loadData, 1000)
		c.Delivery, c.Dedup = loader.AtLeastOnce, loader.DedupNone
		all := New().Explain(loader.Target{Scheme: "mysql", Table: "shop.documents"}, loader.Preparation{Schema: d.Schema(), Contract: c})
		assert.Contains(t, all, loader.Statement{When: "per batch", Text: "SHOW WARNINGS"})
		for _, s := range all {
			assert.NotContains(t, s.Text, "terapush_claims")
			assert.NotContains(t, s.Text, "COMMIT;")
		}
	})
}
