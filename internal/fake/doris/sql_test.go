package doris_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/doris"
)

func TestQueries(t *testing.T) {
	_, db := start(t, doris.Options{})
	exec1(t, db, "CREATE TABLE d.v (`k` BIGINT, d DATE, ts DATETIME(6), s STRING, n DECIMAL(10,2)) DISTRIBUTED BY RANDOM BUCKETS AUTO PROPERTIES ('replication_num'='1')")
	assert.Equal(t, int64(3), exec1(t, db, `INSERT INTO d.v VALUES (1,'2024-02-29','2024-02-29 01:02:03.5','it''s \\ \"x\"\n',1.005),(2,NULL,NULL,_binary'\0\Z',-2),(3000000000,'1970-01-01','1970-01-01 00:00:00',"",3)`))
	for query, want := range map[string]string{
		"SELECT COUNT(*), MIN(k), MAX(k) FROM d.v":                                 "3|1|3000000000",
		"SELECT COUNT(*), MIN(k), MAX(k) FROM d.v WHERE k > 9e12":                  "0|NULL|NULL",
		"SELECT d, ts, s FROM d.v WHERE k IN (1, 7)":                               "2024-02-29|2024-02-29 01:02:03.500000|it's \\ \"x\"\n",
		"SELECT `k`, hex(s), n FROM d.v WHERE d IS NULL":                           "2|001A|-2.00",
		"SELECT n FROM d.v WHERE k = 1":                                            "1.01",
		"SELECT k FROM d.v ORDER BY k DESC LIMIT 1":                                "3000000000",
		"SELECT 7 DIV 2, -7 DIV 2, 7 / 2, 7 % 4, -7 % 4, 1 + 2 * 3":                "3|-3|3.5|3|-3|7",
		"SELECT CAST(1e3 AS BIGINT), CAST('x' AS BIGINT), 1 / 0":                   "1000|NULL|NULL",
		"SELECT 9223372036854775807 + 1":                                           "-9223372036854775808",
		"SELECT CAST(9223372036854775807 AS LARGEINT) * 9":                         "83010348331692982263",
		"SELECT LENGTH('ä'), CHAR_LENGTH('ä'), COALESCE(NULL, 3)":                  "2|1|3",
		"SELECT GREATEST((SELECT MAX(k) FROM d.v), 5)":                             "3000000000",
		"SELECT COUNT(DISTINCT k % 2) FROM d.v WHERE k BETWEEN 1 AND 2":            "2",
		"SELECT k DIV 2 AS b, COUNT(*) FROM d.v WHERE k < 3 GROUP BY b ORDER BY 1": "0|1 1|1",
		"SELECT bucket, COUNT(*), MIN(o), MAX(o), SUM(o), SUM(o * o) FROM (SELECT (`k` - 1) DIV 10 AS bucket, CAST((`k` - 1) % 10 AS LARGEINT) AS o, LENGTH(s) AS l FROM d.v WHERE `k` BETWEEN 1 AND 99) t GROUP BY bucket": "0|2|0|1|1|1",
		"SELECT table_name, table_rows FROM information_schema.tables WHERE table_schema = 'd' AND table_name LIKE 'v%'":                                                                                                    "v|3",
		"SELECT column_name, column_type, is_nullable FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position":                                                                                     "id|bigint|NO body|varchar(20)|YES",
		"SELECT @@version_comment, VERSION(), @@session.group_commit":                                                                                                                                                       "Apache Doris version doris-3.1.2-rc01-a1b2c3d4e5|5.7.99|off_mode",
		"SELECT COUNT(*) FROM d.v WHERE ts BETWEEN '2024-02-29 01:02:03.500000' AND '2024-02-29 01:02:03.500001'":                                                                                                           "1",
		"SELECT MICROSECONDS_DIFF(ts, '1970-01-01 00:00:00.000000') - 1709168523000000, k FROM d.v WHERE ts IN ('2024-02-29 01:02:03.500000','2024-02-29 01:02:03.500001')":                                                 "500000|1",
		"SELECT column_type FROM information_schema.columns WHERE table_name = 'v' AND column_name = 'n'":                                                                                                                   "decimalv3(10, 2)",
		"SELECT CAST('-.5e1' AS DECIMAL(3,2)), CAST('1/3' AS DECIMAL(3,2)), CAST('0x1' AS DECIMAL(3,2)), CAST('9.995' AS DECIMAL(3,2))":                                                                                     "-5.00|NULL|NULL|NULL",
		"SHOW DATABASES LIKE 'd'": "d",
		"SELECT 'a' 'b'":          "",
		"SELECT COUNT(*) FROM BACKENDS() WHERE Alive = 'true'": "1",
	} {
		if want == "" {
			_, err := db.ExecContext(t.Context(), query)
			assert.Equal(t, uint16(1064), number(t, err), query)
			continue
		}
		_, rows := table(t, db, query)
		assert.Equal(t, want, flat(rows), query)
	}
	assert.Equal(t, int64(1), exec1(t, db, "DELETE FROM d.v WHERE k = 2"))
	exec1(t, db, "TRUNCATE TABLE d.v")
	_, rows := table(t, db, "SELECT COUNT(*), COALESCE(MAX(k), -1) + 1 FROM d.v")
	assert.Equal(t, "0|0", flat(rows))
}

func flat(rows [][]string) string {
	var all []string
	for _, r := range rows {
		all = append(all, strings.Join(r, "|"))
	}
	return strings.Join(all, " ")
}

// number is MySQL's error number.
func number(t *testing.T, err error) uint16 {
	t.Helper()
	var e *mysql.MySQLError
	require.ErrorAs(t, err, &e)
	return e.Number
}

// Whatever is wrong or not known is an error with its words, never an empty success.
func TestRefusals(t *testing.T) {
	_, db := start(t, doris.Options{})
	for query, want := range map[string]string{
		"SELEKT 1":                          "1064 a statement that is not known",
		"SELECT 1 FROM d.t JOIN d.t":        "1064 nothing may follow",
		"SELECT nothing(1)":                 "1105 Can not found function 'NOTHING'",
		"SELECT x FROM d.t":                 "1105 Unknown column 'x'",
		"SELECT 1 FROM d.none":              "1051 Table [none] does not exist in database [d]",
		"SELECT 1 FROM t":                   "1046 No database selected",
		"USE none":                          "1049 Unknown database 'none'",
		"SELECT @@none":                     "1193 Unknown system variable 'none'",
		"SET none = 1":                      "1193 Unknown system variable 'none'",
		"SET group_commit = maybe":          "1105 group_commit can only be",
		"SHOW ENGINES":                      "1064 a SHOW that is not known",
		"ALTER TABLE d.t SET ('a'='b')":     "1064 a statement that is not known",
		"INSERT INTO d.t VALUES (1)":        "1105 insert into cols should be corresponding to the query output",
		"INSERT INTO d.t VALUES (NULL,'x')": "1105 Insert has filtered data in strict mode",
		"INSERT INTO d.t VALUES ('x','x')":  "1105 Insert has filtered data in strict mode",
		"INSERT INTO d.t VALUES (1,'123456789012345678901')":      "1105 the length of input is too long than schema",
		"INSERT INTO d.t WITH LABEL a-b VALUES (1,'x')":           "1064 expected VALUES or SELECT",
		"INSERT INTO d.t WITH LABEL `a b` VALUES (1,'x')":         "1105 Label format error",
		"INSERT INTO d.t SELECT c1, c2 FROM S3('uri'='s3://b/k')": "1105 Properties 's3.endpoint' is required",
		createT: "1050 Table 't' already exists",
		"CREATE TABLE d.x (a BIGINT, b INT) DUPLICATE KEY(b) DISTRIBUTED BY HASH(a)":                                            "1105 Key columns must be a ordered prefix of the schema",
		"CREATE TABLE d.x (a BIGINT) DUPLICATE KEY(a) DISTRIBUTED BY HASH(z)":                                                   "1105 Distribution column(z) doesn't exist",
		"CREATE TABLE d.x (a BIGINT, b INT) UNIQUE KEY(a) DISTRIBUTED BY HASH(b) PROPERTIES ('replication_num'='1')":            "1105 Distribution column[b] is not key column",
		"CREATE TABLE d.x (a STRING) DUPLICATE KEY(a) DISTRIBUTED BY RANDOM":                                                    "1105 String Type should not be used in key column[a]",
		"CREATE TABLE d.x (a BIGINT) DUPLICATE KEY(a)":                                                                          "1105 should contain distribution desc",
		"CREATE TABLE d.x (a BIGINT) DUPLICATE KEY(a) DISTRIBUTED BY HASH(a)":                                                   "1105 replication num is 3, available backend num is 1",
		"CREATE TABLE d.x (a BIGINT) DUPLICATE KEY(a) DISTRIBUTED BY HASH(a) PROPERTIES ('replication_num'='2')":                "1105 replication num is 2, available backend num is 1",
		"CREATE TABLE d.x (a BIGINT) DUPLICATE KEY(a) DISTRIBUTED BY HASH(a) PROPERTIES ('replication_num'='1','colour'='red')": "1105 Unknown properties: {colour=red}",
		"CREATE TABLE d.x (a VARCHAR(70000)) DISTRIBUTED BY RANDOM":                                                             "1064 VARCHAR size must be between 1 and 65533",
		"CREATE TABLE d.x (a DECIMAL(65,0)) DISTRIBUTED BY RANDOM":                                                              "1064 DECIMAL size must be between 1 and 38",
		"SELECT CAST(1 AS BLOB)": "1064 unsupported data type",
	} {
		_, err := db.ExecContext(t.Context(), query)
		code, words, _ := strings.Cut(want, " ")
		require.Error(t, err, query)
		assert.ErrorContains(t, err, "Error "+code+" ", query)
		assert.ErrorContains(t, err, words, query)
	}
	_, err := db.PrepareContext(t.Context(), "INSERT INTO d.t VALUES (?, ?)")
	assert.Equal(t, uint16(1295), number(t, err))
}

func TestShows(t *testing.T) {
	_, db := start(t, doris.Options{Backends: 2})
	exec1(t, db, "USE d")
	names, rows := table(t, db, "SHOW CREATE TABLE t")
	assert.Equal(t, []string{"Table", "Create Table"}, names)
	for _, piece := range []string{"`id` bigint NOT NULL,\n", "`body` varchar(20) NULL\n", "DUPLICATE KEY(`id`)", "DISTRIBUTED BY HASH(`id`) BUCKETS 1",
		`"replication_allocation" = "tag.location.default: 1"`, `"group_commit_interval_ms" = "10000"`} {
		assert.Contains(t, rows[0][1], piece)
	}
	_, rows = table(t, db, "SHOW VARIABLES LIKE 'group_commit'")
	assert.Equal(t, "group_commit|off_mode|off_mode|0", flat(rows))
	_, rows = table(t, db, "SHOW BACKENDS")
	assert.Len(t, rows, 2)
	_, before := table(t, db, "SHOW PARTITIONS FROM d.t")
	exec1(t, db, "TRUNCATE TABLE t")
	_, after := table(t, db, "SHOW PARTITIONS FROM d.t")
	assert.NotEqual(t, before[0][0], after[0][0])

	_, rows = table(t, db, "SHOW LAST INSERT")
	assert.Empty(t, rows)
	exec1(t, db, "INSERT INTO t WITH LABEL `l-1` (id, body) VALUES (1,'a'),(2,NULL)")
	_, rows = table(t, db, "SHOW LAST INSERT")
	assert.Equal(t, []string{"l-1", "d", "t", "VISIBLE", "2", "0"}, rows[0][1:])
	_, err := db.ExecContext(t.Context(), "INSERT INTO t WITH LABEL `l-1` VALUES (1,'a')")
	assert.ErrorContains(t, err, "Label [l-1] has already been used, relate to txn")
	names, rows = table(t, db, "SHOW TRANSACTION FROM d WHERE LABEL = 'l-1'")
	assert.Equal(t, []string{"Label", "TransactionStatus"}, []string{names[1], names[3]})
	assert.Equal(t, []string{"l-1", "VISIBLE"}, []string{rows[0][1], rows[0][3]})
	_, rows = table(t, db, "SHOW LOAD FROM d WHERE LABEL = 'l-1'")
	assert.Equal(t, []string{"l-1", "FINISHED"}, rows[0][1:3])
	_, rows = table(t, db, "SHOW LOAD FROM d WHERE LABEL = 'other'")
	assert.Empty(t, rows)
}

// The newest row of a key wins.
func TestUniqueKey(t *testing.T) {
	c, db := start(t, doris.Options{})
	exec1(t, db, "CREATE TABLE d.u (id BIGINT, body STRING) UNIQUE KEY(id) DISTRIBUTED BY HASH(id) PROPERTIES ('replication_num'='1')")
	exec1(t, db, "INSERT INTO d.u VALUES (1,'a'),(2,'b')")
	exec1(t, db, "INSERT INTO d.u VALUES (1,'c')")
	assert.Equal(t, map[string]int{"1": 1, "2": 1}, c.KeyCounts("d.u"))
	_, rows := table(t, db, "SELECT body FROM d.u ORDER BY id")
	assert.Equal(t, "c b", flat(rows))
}

func TestPassword(t *testing.T) {
	o := doris.Options{User: "loader", Password: "s3cret"}
	c, _ := start(t, o)
	o.Password = "wrong"
	err := open(t, c, o, "").PingContext(t.Context())
	assert.Equal(t, uint16(1045), number(t, err))
	o.Password = "s3cret"
	err = open(t, c, o, "none").PingContext(t.Context())
	assert.Equal(t, uint16(1049), number(t, err))
	assert.NoError(t, open(t, c, o, "d").PingContext(t.Context()))
}

// The official client of whichever of the two is installed.
func TestCommandLineClient(t *testing.T) {
	name := "mysql"
	if _, err := exec.LookPath(name); err != nil {
		t.Skip("no mysql client")
	}
	c, _ := start(t, doris.Options{Password: "pw"})
	host, port, _ := strings.Cut(c.SQLAddress(), ":")
	cmd := exec.CommandContext(t.Context(), name, "-h", host, "-P", port, "-u", "root", "-ppw", "--batch", "d", "-e",
		"SET group_commit = off_mode; INSERT INTO t VALUES (1,'a'),(2,NULL); SELECT * FROM t ORDER BY id; SHOW LAST INSERT;")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "id\tbody\n1\ta\n2\tNULL\n")
	assert.Contains(t, string(out), "VISIBLE")
}
