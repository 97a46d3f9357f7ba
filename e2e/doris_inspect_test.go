package e2e_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/standin/doris"
)

// The user's table is filled, and a copy of it: by the file that inspect writes, and by --like.
func TestDorisInspect(t *testing.T) {
	backendtest.Long(t)
	t.Parallel()
	s := newCluster(t, doris.Options{Backends: 2})
	config := mysql.NewConfig()
	config.User, config.Passwd, config.Net, config.Addr, config.DBName = "root", dorisPassword, "tcp", s.SQL, doris.Database
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS `d`.`orders` (\n" +
		"  `tenant` INT NOT NULL,\n  `n` SMALLINT NOT NULL,\n  `ref` VARCHAR(36) NULL,\n  `paid` BOOLEAN NULL,\n" +
		"  `level` TINYINT NULL,\n  `total` DECIMAL(30, 4) NOT NULL,\n  `weight` DOUBLE NULL,\n" +
		"  `placed` DATETIME(3) NULL,\n  `note` STRING NULL\n)\nUNIQUE KEY(`tenant`, `n`)\nCOMMENT ''\n" +
		"DISTRIBUTED BY HASH(`tenant`) BUCKETS 1\nPROPERTIES (\"replication_num\" = \"1\")")
	require.NoError(t, err)

	text := knowing(invocation{args: []string{"inspect", s.target(), "--table", "orders"}}).run(t).ends(t, 0).stdout
	assert.Contains(t, text, "only a stand-in")
	assert.Contains(t, text, `key: [tenant, "n"]`+"\ncolumns:\n")

	withNulls := strings.ReplaceAll(text, "nulls: 0%", "nulls: 10%")
	for _, c := range [][]string{
		{"filed", withNulls, "--dataset", writeFile(t, withNulls)},
		{"copied", text, "--like", "orders"},
	} {
		table := c[0]
		spec, err := dataset.ParseSpec("orders.yaml", []byte(c[1]), nil)
		require.NoError(t, err)
		d, err := spec.Compile(0)
		require.NoError(t, err)
		s.Know(d.Schema())
		flags := append(c[2:], "--table", table, "--rows", "4000", "--batch-rows", "500", "--verify", "full")
		s.push(flags...).run(t).ends(t, 0)
		assert.Len(t, s.Table(table).Counts(), 4000)
		assert.EqualValues(t, 4000, s.Rows(table))
	}
	assert.Equal(t, s.Table("orders").Columns, s.Table("copied").Columns)
	assert.Equal(t, "made by terapush, like d.orders", s.Table("copied").Comment)

	all := invocation{args: []string{"inspect", s.target(), "--schema", doris.Database}}
	schema := knowing(all).run(t).ends(t, 0).stdout
	for _, part := range []string{"only a stand-in", "  orders:\n", "  filed:\n", "  copied:\n", "    rows: 4000\n"} {
		assert.Contains(t, schema, part)
	}
}
