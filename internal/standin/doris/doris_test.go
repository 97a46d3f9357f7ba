package doris_test

import (
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/standin/doris"
)

// Bounds of what happens on another goroutine; nothing is measured by them.
const wait, tick = 10 * time.Second, time.Millisecond

// createAs makes a table of documents.
func createAs(name string) string {
	return "CREATE TABLE IF NOT EXISTS `d`.`" + name + "` (\n  `document_id` BIGINT NOT NULL,\n  `payload` VARCHAR(3) NOT NULL\n)\n" +
		"DUPLICATE KEY(`document_id`)\nCOMMENT 'c'\nDISTRIBUTED BY HASH(`document_id`) BUCKETS 1\nPROPERTIES (\"replication_num\" = \"1\")"
}

// start starts a cluster with a table.
func start(t *testing.T, o doris.Options, table string) (*doris.Cluster, *sql.DB) {
	c, err := doris.Start(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	db, err := sql.Open("mysql", "root:@tcp("+c.SQL+")/d")
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.Exec(table)
	require.NoError(t, err)
	return c, db
}

// put sends a stream load to an address; headers are name:value. The answer has the keys of whoever answers.
func put(t *testing.T, address, body string, headers ...string) (answer map[string]any) {
	t.Helper()
	return do(t, http.MethodPut, address+"/api/d/t/_stream_load", body, headers...)
}

func do(t *testing.T, method, to, body string, headers ...string) (answer map[string]any) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+to, strings.NewReader(body))
	require.NoError(t, err)
	r.SetBasicAuth("root", "")
	for _, h := range append([]string{"format:csv", `column_separator:,`, `line_delimiter:\x02`, "columns:`document_id`, `payload`"}, headers...) {
		name, value, _ := strings.Cut(h, ":")
		r.Header.Set(name, value)
	}
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &answer), "%s", text)
	return answer
}

// A label is used once: it is free again after a load that was aborted, and when it is forgotten.
func TestLabels(t *testing.T) {
	held := make(chan struct{})
	c, db := start(t, doris.Options{Script: func(r doris.Request) (f doris.Fault) {
		if r.Label == "l" && r.Attempt == 3 {
			f.Hold = held
		}
		return f
	}}, createAs("t"))
	load := func(body string) []any {
		a := put(t, c.Backends[0], body, "label:l")
		return []any{a["Status"], a["ExistingJobStatus"]}
	}
	assert.Equal(t, []any{"Fail", nil}, load("1,abcd"))
	assert.Equal(t, []any{"Fail", nil}, load("1"), "the label is free again")
	ended := make(chan []any)
	go func() { ended <- load("1,a\x022,b\x02") }()
	underWay := func() bool {
		return do(t, http.MethodGet, c.HTTP+"/api/d/get_load_state?label=l", "")["data"] == "PREPARE"
	}
	assert.Eventually(t, underWay, wait, tick)
	assert.Equal(t, []any{"Label Already Exists", "RUNNING"}, load("1,a"))
	_, err := db.Exec("INSERT INTO `d`.`t` WITH LABEL `l` (`document_id`, `payload`) VALUES (1,'a')")
	assert.ErrorContains(t, err, "Label [l] has already been used")
	close(held)
	assert.Equal(t, []any{"Success", nil}, <-ended)
	assert.Equal(t, []any{"Label Already Exists", "FINISHED"}, load("1,a"))
	c.ForgetLabels()
	assert.Equal(t, []any{"Success", nil}, load("1,a"))
	assert.Equal(t, map[int64]int{1: 2, 2: 1}, c.Table("t").Counts())
}

// What a server would refuse is refused, and what is not known is no success.
func TestRefusals(t *testing.T) {
	c, db := start(t, doris.Options{}, createAs("t"))
	for want, headers := range map[string][]string{
		"label and group_commit can't be set at the same time": {"label:l", "group_commit:sync_mode"},
		"no valid Basic authorization":                         {"Authorization:Basic x"},
		"too many filtered rows":                               {"columns:`document_id`, `x`"},
	} {
		assert.Contains(t, put(t, c.Backends[0], "1,a", headers...)["Message"], want)
	}
	assert.Equal(t, "There is no 100-continue header", put(t, c.HTTP, "")["msg"])
	assert.Equal(t, "Unauthorized", put(t, c.HTTP, "", "Authorization:Basic x")["msg"])
	for statement, want := range map[string]string{
		"SELECT document_id FROM t":                                                          "does not know: SELECT document_id FROM t",
		"SELECT COUNT(*) FROM `d`.`u` WHERE `document_id` BETWEEN 0 AND 1":                   "Table [u] does not exist",
		"SHOW PARTITIONS FROM `e`.`t`":                                                       "Unknown database 'e'",
		"SET no_such_variable = 1":                                                           "Unknown system variable",
		"INSERT INTO `d`.`t` (`document_id`, `x`) VALUES (1,'a')":                            "column x is none of the table's",
		"INSERT INTO `d`.`t` (`document_id`, `payload`) VALUES (1,'abcd')":                   "too long",
		"INSERT INTO `d`.`t` (`document_id`, `payload`) SELECT CAST(c1 AS X) FROM t":         "does not know",
		"INSERT INTO `d`.`t` (`payload`) SELECT CAST(c2 AS X) FROM S3(\"format\" = \"csv\")": "Unknown column 'c2'",
		strings.Replace(createAs("u"), "KEY(`document_id`)", "KEY(`payload`)", 1):            "ordered prefix",
		strings.Replace(createAs("u"), "\"1\"", "\"2\"", 1):                                  "number of available backends",
		strings.Replace(createAs("u"), "HASH(`document_id`)", "HASH(`payload`)", 1):          "is not key column",
	} {
		_, err := db.Exec(statement)
		assert.ErrorContains(t, err, want, statement)
	}
	assert.Zero(t, c.Rows("t"))
	assert.Empty(t, c.Table("u").Columns)
}
