package mysql

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
			t.Run(scheme+" "+m.Name, func(t *testing.T) {
				target := loader.Target{
					Scheme: scheme, User: "root", Password: "secret", Database: "shop", Table: "documents",
					Settings: []loader.Setting{{Name: "unique_checks", Value: "0"}},
				}
				var b strings.Builder
				for _, s := range New().Explain(target, loader.Preparation{Schema: d.Schema(), Contract: contractOf(m.Name, 1000)}) {
					fmt.Fprintf(&b, "-- %s\n%s;\n", s.When, s.Text)
				}
				assert.NotContains(t, b.String(), "secret")
				golden(t, fmt.Sprintf("explain-%s-%s.sql", scheme, m.Name), b.String())
			})
		}
	}
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
