package mysql_test

import (
	"database/sql"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
)

// loadCases are LOAD DATA's clauses, with the rows that a real server makes of a text: TestLoadDataCountsAsServers
// asks it.
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
	{"REPLACE INTO TABLE % CHARACTER SET utf8mb4 COLUMNS TERMINATED BY X'2c' ESCAPED BY '!' LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES (a, @b) SET b = @b", "h,h\r\n1,a!\r\n,\nb\r\n2,b\r\n", 2},
	{"IGNORE INTO TABLE % LINES TERMINATED BY '|' IGNORE 3 ROWS", "h\nh|h|h|1\ta|2\tb", 2},
	{"INTO TABLE %  LINES STARTING BY '' TERMINATED BY '\\n' IGNORE 9 LINES (a, b)", "1\ta\n", 0},
}

// load loads a text by LOAD DATA with these clauses.
func load(t *testing.T, db *sql.DB, clauses, text string) (rows int64, err error) {
	name := strings.ReplaceAll(t.Name(), "'", "_")
	driver.RegisterReaderHandler(name, func() io.Reader { return strings.NewReader(text) })
	defer driver.DeregisterReaderHandler(name)
	r, err := db.Exec("LOAD DATA LOCAL INFILE 'Reader::" + name + "' " + clauses)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func TestLoadDataClauses(t *testing.T) {
	s := listen(t, sink.Options{})
	db := open(t, s, "me")
	var all int64
	for _, c := range loadCases {
		rows, err := load(t, db, strings.ReplaceAll(c.clauses, "%", "`t`"), c.text)
		require.NoError(t, err, c.clauses)
		require.Equal(t, c.rows, rows, "%s: %q", c.clauses, c.text)
		all += rows
	}
	require.Equal(t, all, s.Stats().Rows)
	for clauses, want := range map[string]string{
		"INTO TABLE t LINES STARTING BY 'x'":                      "LINES STARTING BY",
		"INTO TABLE t FIELDS TERMINATED BY ''":                    "rows of a fixed size",
		"INTO TABLE t LINES TERMINATED BY ''":                     "rows of a fixed size",
		"INTO TABLE t FIELDS ENCLOSED BY 'ab'":                    "one byte",
		"INTO TABLE t FIELDS TERMINATED /* how? */ BY ','":        "cannot be read",
		"INTO TABLE t FORMAT PARQUET":                             "cannot be read",
		"INTO TABLE t FIELDS TERMINATED BY ',' ENCLOSED BY X'22'": "has no end",
	} {
		_, err := load(t, db, clauses, "1,\"a\n")
		require.ErrorContains(t, err, want, clauses)
	}
	require.Equal(t, all, s.Stats().Rows, "what was refused does not count")
	dropped := open(t, listen(t, sink.Options{NoCount: true}), "me")
	_, err := load(t, dropped, "INTO TABLE t LINES STARTING BY 'x'", "1\n")
	require.NoError(t, err, "where nothing is counted, nothing is refused")
}

func TestLoadDataCountsAsServers(t *testing.T) {
	target, is := os.LookupEnv("TERAPUSH_TEST_MARIADB")
	if !is && os.Getenv("CI") != "" {
		t.Fatal("TERAPUSH_TEST_MARIADB is not set")
	}
	if !is {
		t.Skip("TERAPUSH_TEST_MARIADB is not set")
	}
	db, err := sql.Open("mysql", strings.NewReplacer("mariadb://", "", "@", "@tcp(", "/tera", ")/tera").Replace(target))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"SET sql_mode = ''", "CREATE TEMPORARY TABLE sink_counts (a TEXT, b TEXT)"} {
		_, err = db.Exec(statement)
		require.NoError(t, err)
	}
	for _, c := range loadCases {
		rows, err := load(t, db, strings.ReplaceAll(c.clauses, "%", "sink_counts"), c.text)
		require.NoError(t, err, c.clauses)
		require.Equal(t, c.rows, rows, "%s: %q", c.clauses, c.text)
	}
}

// Dumps are full of statements in comments, begin and end with comments, and mysqlimport sends such statements too.
func TestDumps(t *testing.T) {
	const dump = "/*M!999999\\- enable the sandbox mode */ \n-- MariaDB dump\n\n/*!40101 SET @OLD=@@CHARACTER_SET_CLIENT */;\n" +
		"LOCK TABLES `t` WRITE;\n/*!40000 ALTER TABLE `t` DISABLE KEYS */;\nINSERT INTO `t` VALUES\n(1,'a'),\n(2,'b');\n" +
		"# done\n/*!40000 ALTER TABLE `t` ENABLE KEYS */;\nUNLOCK TABLES;\n\n-- Dump completed\n"
	for name, program := range clients() {
		t.Run(name, func(t *testing.T) {
			client := installed(t, program)
			s := listen(t, sink.Options{})
			host, port, _ := strings.Cut(s.Addr(), ":")
			_, without := encryption(name)
			c := exec.Command(client, append([]string{"--no-defaults", "--protocol=tcp", "-h", host, "-P", port, "-u", "me"}, append(without, "--comments", "db")...)...)
			c.Stdin = strings.NewReader(dump)
			out, err := c.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.EqualValues(t, 2, s.Stats().Rows)
		})
	}
	importer := installed(t, "mysqlimport")
	s := listen(t, sink.Options{})
	host, port, _ := strings.Cut(s.Addr(), ":")
	file := filepath.Join(t.TempDir(), "t.csv")
	require.NoError(t, os.WriteFile(file, []byte("a,b\n1,\"a\nb\"\n2,c\n"), 0o600))
	out, err := exec.Command(importer, "--no-defaults", "--protocol=tcp", "-h", host, "-P", port, "-u", "me", "--local", "--ignore-lines=1",
		"--fields-terminated-by=,", `--fields-enclosed-by="`, "db", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "Records: 2")
}

func TestUnknownFormatsAreRefused(t *testing.T) {
	s := listen(t, sink.Options{})
	db := open(t, s, "me")
	for _, statement := range []string{
		"INSERT INTO t SELECT 1", "REPLACE INTO t SELECT a FROM b WHERE c IN (1)", "INSERT INTO t VALUES ROW(1), ROW(2)", "/*!50000 INSERT INTO t VALUES (1) */",
	} {
		var refused *driver.MySQLError
		_, err := db.Exec(statement)
		require.ErrorAs(t, err, &refused, statement)
		require.EqualValues(t, 1235, refused.Number, statement)
	}
	for _, statement := range []string{"INSERT INTO t () VALUES ()", "# one\nINSERT INTO t SET a = 1", "INSERT /*! IGNORE */ INTO t VALUES (1) AS new (a) ON DUPLICATE KEY UPDATE a = new.a"} {
		r, err := db.Exec(statement)
		require.NoError(t, err, statement)
		n, err := r.RowsAffected()
		require.NoError(t, err)
		require.EqualValues(t, 1, n, statement)
	}
}
