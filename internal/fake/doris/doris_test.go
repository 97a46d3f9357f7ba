package doris_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/doris"
)

const createT = "CREATE TABLE d.t (id BIGINT NOT NULL, body VARCHAR(20)) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"replication_num\" = \"1\")"

// start starts a cluster with database d and table t (id BIGINT, body VARCHAR).
func start(t testing.TB, o doris.Options) (*doris.Cluster, *sql.DB) {
	c, err := doris.Start(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	db := open(t, c, o, "")
	exec1(t, db, "CREATE DATABASE d")
	exec1(t, db, createT)
	return c, db
}

func open(t testing.TB, c *doris.Cluster, o doris.Options, database string) *sql.DB {
	cfg := mysql.NewConfig()
	cfg.Logger = &mysql.NopLogger{} // connections are cut here on purpose
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.DBName = "root", o.Password, "tcp", c.SQLAddress(), database
	if o.User != "" {
		cfg.User = o.User
	}
	k, err := mysql.NewConnector(cfg)
	require.NoError(t, err)
	db := sql.OpenDB(k)
	db.SetMaxOpenConns(1) // session variables and SHOW LAST INSERT are a connection's
	t.Cleanup(func() { db.Close() })
	return db
}

func exec1(t testing.TB, db *sql.DB, query string) int64 {
	t.Helper()
	r, err := db.ExecContext(t.Context(), query)
	require.NoError(t, err, query)
	n, err := r.RowsAffected()
	require.NoError(t, err)
	return n
}

// table reads an answer as text, NULL as "NULL".
func table(t *testing.T, db *sql.DB, query string) (names []string, rows [][]string) {
	t.Helper()
	list, err := db.QueryContext(t.Context(), query)
	require.NoError(t, err, query)
	defer list.Close()
	names, err = list.Columns()
	require.NoError(t, err)
	for list.Next() {
		values, to := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range values {
			to[i] = &values[i]
		}
		require.NoError(t, list.Scan(to...))
		var row []string
		for _, v := range values {
			if !v.Valid {
				v.String = "NULL"
			}
			row = append(row, v.String)
		}
		rows = append(rows, row)
	}
	require.NoError(t, list.Err())
	return names, rows
}

// answer is what a load answers, with the keys in the order of the struct.
type answer struct {
	TxnID              int64 `json:"TxnId"`
	Label              string
	TwoPhaseCommit     string
	GroupCommit        bool
	Status             string
	ExistingJobStatus  string
	Message            string
	NumberTotalRows    int64
	NumberLoadedRows   int64
	NumberFilteredRows int64
	LoadBytes          int64
	ErrorURL           string
	FirstErrorMsg      string
	Msg                string // the frontend's, beside a "status"
	Code               int
}

// curl runs curl as the documentation says, with the redirect followed and the password sent on.
func curl(t *testing.T, c *doris.Cluster, body string, args ...string) (answer, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "body")
	require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
	return curlRaw(t, append([]string{"--location-trusted", "-u", "root:", "-H", "Expect:100-continue", "-T", file,
		"http://" + c.HTTPAddress() + "/api/d/t/_stream_load"}, args...)...)
}

func curlRaw(t *testing.T, args ...string) (answer, string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "curl", append([]string{"-sS", "--max-time", "20"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var a answer
	if json.Unmarshal(out.Bytes(), &a) != nil && err == nil {
		return a, out.String()
	}
	if err != nil {
		return a, fmt.Sprintf("%v: %s", err, out.String())
	}
	return a, out.String()
}

func headers(h ...string) []string {
	var args []string
	for _, one := range h {
		args = append(args, "-H", one)
	}
	return args
}

// The header set of doris-streamloader, and of everybody's first curl.
func TestCurlLoads(t *testing.T) {
	c, _ := start(t, doris.Options{Backends: 2})
	a, text := curl(t, c, "1,one\n2,two\n", headers("label:first", "column_separator:,", "columns:id,body", "group_commit:off_mode",
		"max_filter_ratio:0", "timeout:36000")...)
	require.Equal(t, "Success", a.Status, text)
	assert.Equal(t, "OK", a.Message)
	assert.Equal(t, "first", a.Label)
	assert.Equal(t, "false", a.TwoPhaseCommit)
	assert.Equal(t, []int64{2, 2, 0, 12}, []int64{a.NumberTotalRows, a.NumberLoadedRows, a.NumberFilteredRows, a.LoadBytes})
	assert.NotContains(t, text, "GroupCommit")
	assert.Equal(t, map[string]int{"1": 1, "2": 1}, c.KeyCounts("d.t"))
	assert.Equal(t, "VISIBLE", c.State("d", "first"))

	a, _ = curl(t, c, "1,one\n2,two\n", headers("label:first", "column_separator:,", "group_commit:off_mode")...)
	assert.Equal(t, "Label Already Exists", a.Status)
	assert.Equal(t, "FINISHED", a.ExistingJobStatus)

	// A larger body than any buffer: curl waits for the 100-continue and the frontend sees nothing of it.
	large := strings.Repeat("3\tthree\n", 500_000)
	a, text = curl(t, c, large, headers("label:large", "group_commit:off_mode")...)
	require.Equal(t, int64(500_000), a.NumberLoadedRows, text)
	assert.Equal(t, int64(500_002), c.Rows("d.t"))
	assert.Zero(t, c.FrontendBodyBytes())

	var backends []int
	for _, r := range c.Requests() {
		if r.Kind == doris.Load {
			backends = append(backends, r.Backend)
		}
	}
	assert.Equal(t, []int{0, 1, 0}, backends, "by turns")
}

// Chunks: the label goes, unless group commit is off; and there is no length to check.
func TestCurlChunks(t *testing.T) {
	c, _ := start(t, doris.Options{})
	send := func(h ...string) answer {
		file := filepath.Join(t.TempDir(), "body")
		require.NoError(t, os.WriteFile(file, []byte("1,a\n"), 0o600))
		a, _ := curl(t, c, "1,a\n", headers(append(h, "Transfer-Encoding: chunked", "column_separator:,")...)...)
		return a
	}
	a := send("label:l1")
	assert.Equal(t, "Success", a.Status)
	assert.NotEqual(t, "l1", a.Label)
	assert.Equal(t, "UNKNOWN", c.State("d", "l1"))
	a = send("label:l1", "group_commit:off_mode")
	assert.Equal(t, "l1", a.Label)
	assert.Equal(t, int64(2), c.Rows("d.t"))

	old, _ := start(t, doris.Options{ChunkedKeepsLabel: true})
	c = old
	assert.Equal(t, "l1", send("label:l1").Label)
}

// What the frontend refuses, it refuses with HTTP 200.
func TestFrontendRefuses(t *testing.T) {
	c, _ := start(t, doris.Options{Password: "secret"})
	url := "http://" + c.HTTPAddress() + "/api/d/t/_stream_load"
	_, text := curlRaw(t, "-u", "root:secret", "-X", "PUT", url)
	assert.JSONEq(t, `{"status":"FAILED","msg":"There is no 100-continue header"}`, text)
	a, _ := curlRaw(t, "-u", "root:wrong", "-H", "Expect: 100-continue", "-X", "PUT", url)
	assert.Equal(t, 401, a.Code)
	assert.Equal(t, "Unauthorized", a.Msg)
	assert.Empty(t, a.Status)
	_, text = curlRaw(t, "-u", "root:secret", "-H", "Expect: 100-continue", "-H", "group_commit: on", "-X", "PUT", url)
	assert.Contains(t, text, "Header `group_commit` can only be")
	_, text = curlRaw(t, "-u", "root:secret", "-H", "Expect: 100-continue", "-H", "group_commit: sync_mode", "-X", "PUT", strings.Replace(url, "/t/", "/none/", 1))
	assert.Contains(t, text, "OlapTable not found.")
	_, text = curlRaw(t, "-i", "-u", "root:secret", "-H", "Expect: 100-continue", "-X", "PUT", url+"?a=b")
	assert.Contains(t, text, "HTTP/1.1 307")
	assert.Contains(t, text, "Location: http://root:secret@"+c.BackendAddresses()[0]+"/api/d/t/_stream_load?a=b")
	_, text = curlRaw(t, "-u", "root:secret", "-X", "PUT", "-H", "Content-Length: 0", "http://"+c.BackendAddresses()[0]+"/api/x/t/_stream_load")
	assert.Contains(t, text, "Unknown database")
	a, _ = curlRaw(t, "-X", "PUT", "-H", "Content-Length: 0", "http://"+c.BackendAddresses()[0]+"/api/d/t/_stream_load")
	assert.Equal(t, "Fail", a.Status)
	assert.Contains(t, a.Message, "no valid Basic authorization")
}

// A body that is sent without waiting ends up at the frontend, and is counted.
func TestFrontendCountsBodies(t *testing.T) {
	c, _ := start(t, doris.Options{})
	conn, err := net.Dial("tcp", c.HTTPAddress())
	require.NoError(t, err)
	_, err = fmt.Fprintf(conn, "PUT /api/d/t/_stream_load HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nAuthorization: Basic cm9vdDo=\r\nContent-Length: 5\r\n\r\n1\ta\n2")
	require.NoError(t, err)
	answer, err := readUntilEOF(conn)
	require.NoError(t, err)
	assert.Contains(t, answer, "307")
	conn.Close()
	assert.Eventually(t, func() bool { return c.FrontendBodyBytes() == 5 }, timeLimit, tick)
}

// A backend wants exactly one of length and chunks.
func TestLengths(t *testing.T) {
	c, _ := start(t, doris.Options{})
	for head, want := range map[string]string{
		"": "content_length is empty and transfer-encoding!=chunked",
		"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n": "please do not set both content_length and transfer-encoding",
		"Content-Length: 9\r\nlabel: short\r\n":               "receive body don't equal with body bytes",
		"Content-Length: 99999999999\r\n":                     "exceed BE's conf `streaming_load_max_mb`",
	} {
		conn, err := net.Dial("tcp", c.BackendAddresses()[0])
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "PUT /api/d/t/_stream_load HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Basic cm9vdDo=\r\n%s\r\n1\ta\n", head)
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		text, err := readUntilEOF(conn)
		require.NoError(t, err)
		assert.Contains(t, text, want)
		conn.Close()
	}
	assert.Zero(t, c.Rows("d.t"))
	assert.Equal(t, "ABORTED", c.State("d", "short"))
}

// The loads of a group meet on one backend.
func TestGroupKeepsToOneBackend(t *testing.T) {
	c, _ := start(t, doris.Options{Backends: 3})
	for _, mode := range []string{"off_mode", "async_mode", "off_mode", "async_mode", "async_mode", "off_mode"} {
		curl(t, c, "1\ta\n", headers("group_commit:"+mode)...)
	}
	var at []int
	for _, r := range c.Requests() {
		if r.Kind == doris.Load {
			at = append(at, r.Backend)
		}
	}
	assert.Equal(t, []int{0, 1, 2, 1, 1, 0}, at)
}

func TestLoadState(t *testing.T) {
	c, _ := start(t, doris.Options{})
	base := "http://" + c.HTTPAddress() + "/api/d/"
	_, text := curlRaw(t, "-u", "root:", base+"get_load_state?label=none")
	assert.JSONEq(t, `{"msg":"success","code":0,"data":"UNKNOWN","count":0}`, text)
	a, _ := curl(t, c, "1\ta\n", headers("label:two", "two_phase_commit:true")...)
	assert.Equal(t, "true", a.TwoPhaseCommit)
	assert.Zero(t, c.Rows("d.t"))
	_, text = curlRaw(t, "-u", "root:", base+"get_load_state?label=two")
	assert.Contains(t, text, `"PRECOMMITTED"`)
	again, _ := curl(t, c, "1\ta\n", headers("label:two", "two_phase_commit:true")...)
	assert.Equal(t, "PRECOMMITTED", again.ExistingJobStatus)
	two, text := curlRaw(t, "--location-trusted", "-u", "root:", "-X", "PUT", "-H", fmt.Sprintf("txn_id:%d", a.TxnID), "-H", "txn_operation:commit", base+"_stream_load_2pc")
	assert.Equal(t, "Success", two.Status, text)
	assert.Equal(t, int64(1), c.Rows("d.t"))
	two, _ = curlRaw(t, "--location-trusted", "-u", "root:", "-X", "PUT", "-H", "label:two", "-H", "txn_operation:abort", base+"_stream_load_2pc")
	assert.Contains(t, two.Msg, "is already VISIBLE, not pre-committed")
	_, text = curlRaw(t, "-u", "root:", "-X", "POST", base+"_cancel?label=two")
	assert.Contains(t, text, `"code": 1`)
}
