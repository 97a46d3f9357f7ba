package mysql_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

// loadCases are LOAD DATA's clauses, with the rows that a real server makes of a text.
var loadCases = []struct {
	clauses, text string
	rows          int64
}{
	{"INTO TABLE %", "1\ta\n2\tb\n", 2},
	{"INTO TABLE %", "1\ta\\\nb\n2\t\\\\\n3\t\\N\n", 3},
	{"INTO TABLE %", "1\t\"a\n2\tb\"\n", 2},
	{"INTO TABLE % FIELDS TERMINATED BY ',' ENCLOSED BY '\"'", "1,\"a\nb\"\n2,\"c\"\"\n\"\"d\"\n3,x\"\n", 3},
	{"INTO TABLE % FIELDS TERMINATED BY ',' ENCLOSED BY '\"'", "1,\"a\\\"\nb\"\n2,\\\"x\n", 2},
	{"INTO TABLE % FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\\'' ESCAPED BY ''", "1,'a\\'\n2,'b\n'\n", 2},
	{"REPLACE INTO TABLE % CHARACTER SET utf8mb4 COLUMNS TERMINATED BY ',' ESCAPED BY '!' LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES (a, @b) SET b = @b", "h,h\r\n1,a!\r\n,\nb\r\n2,b\r\n", 2},
	{"IGNORE INTO TABLE % LINES TERMINATED BY '|' IGNORE 3 ROWS", "h\nh|h|h|1\ta|2\tb", 2},
	{"INTO TABLE %  LINES STARTING BY '' TERMINATED BY '\\n' IGNORE 9 LINES (a, b)", "1\ta\n", 0},
}

func TestLoadDataCounts(t *testing.T) {
	t.Run("the sink", func(t *testing.T) { loadsAll(t, open(t, listen(t, sink.Options{}), "me", ""), "`t`") })
	t.Run("MariaDB", func(t *testing.T) {
		target := sinktest.Env(t, "TERAPUSH_TEST_MARIADB")
		db, err := sql.Open("mysql", strings.NewReplacer("mariadb://", "", "@", "@tcp(", "/tera", ")/tera").Replace(target))
		require.NoError(t, err)
		defer db.Close()
		db.SetMaxOpenConns(1)
		affected(t, db, "SET sql_mode = ''")
		affected(t, db, "CREATE TEMPORARY TABLE sink_counts (a TEXT, b TEXT)")
		loadsAll(t, db, "sink_counts")
	})
}

func loadsAll(t *testing.T, db *sql.DB, table string) {
	for _, c := range loadCases {
		rows, err := load(t, db, strings.ReplaceAll(c.clauses, "%", table), strings.NewReader(c.text))
		require.NoError(t, err, c.clauses)
		require.Equal(t, c.rows, rows, "%s: %q", c.clauses, c.text)
	}
}

func TestWhatCannotBeCountedIsRefused(t *testing.T) {
	s := listen(t, sink.Options{})
	db := open(t, s, "me", "")
	for clauses, want := range map[string]string{
		"INTO TABLE t LINES STARTING BY 'x'":                     "LINES STARTING BY",
		"INTO TABLE t FIELDS TERMINATED BY ''":                   "rows of a fixed size",
		"INTO TABLE t LINES TERMINATED BY ''":                    "rows of a fixed size",
		"INTO TABLE t FIELDS ENCLOSED BY 'ab'":                   "one byte",
		"INTO TABLE t FORMAT PARQUET":                            "cannot be read",
		"INTO TABLE t FIELDS TERMINATED BY ',' ENCLOSED BY '\"'": "has no end",
		"INTO TABLE t FIELDS TERMINATED BY X'2c'":                "cannot be read",
		"INTO TABLE t LINES TERMINATED BY '||'":                  "rows end with one byte here",
	} {
		_, err := load(t, db, clauses, strings.NewReader("1,\"a\n"))
		require.ErrorContains(t, err, want, clauses)
	}
	for statement, number := range map[string]uint16{
		"INSERT INTO t SELECT 1": 1235, "INSERT INTO t VALUES ROW(1), ROW(2)": 1235, "/*!50000 INSERT INTO t VALUES (1) */": 1235,
		"INSERT INTO t SET a = 1": 1235, "INSERT /*! IGNORE */ INTO t VALUES (1)": 1235,
		"INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)": 1064, // half of it must not be taken for the whole
		"LOAD DATA INFILE '/etc/passwd' INTO TABLE t":        1148,
	} {
		_, err := db.Exec(statement)
		refused(t, err, number, statement)
	}
	require.Zero(t, s.Stats().Rows)
	for _, statement := range []string{
		"INSERT INTO t () VALUES ()", "# one\nINSERT IGNORE INTO t VALUES (1) AS new (a) ON DUPLICATE KEY UPDATE a = new.a",
	} {
		require.EqualValues(t, 1, affected(t, db, statement), statement)
	}
	dropped := open(t, listen(t, sink.Options{NoCount: true}), "me", "")
	_, err := load(t, dropped, "INTO TABLE t LINES STARTING BY 'x'", strings.NewReader("1\n"))
	require.NoError(t, err, "where nothing is counted, nothing is refused")
}
