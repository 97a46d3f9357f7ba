package databend_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	godatabend "github.com/datafuselabs/databend-go"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/databend"
)

// These tests hold the front end over the real engine (scripts/databend) to what the official clients expect of a
// server, and the stand-in beside it where both can do it.

// variable reads where a real server is.
func variable(t *testing.T, name string) string {
	value := os.Getenv(name)
	if value == "" && os.Getenv("CI") == "true" {
		t.Fatalf("%s is not set, and CI must test every server", name)
	}
	if value == "" {
		t.Skipf("%s is not set: run scripts/servers up and eval \"$(scripts/servers env)\"", name)
	}
	return value
}

// engine is the real engine behind the front end, with a table of the test's own.
type engine struct {
	dsn, base, table string
	db               *sql.DB
}

func newEngine(t *testing.T, columns string) engine {
	dsn := variable(t, "TERAPUSH_TEST_DATABEND")
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	e := engine{dsn: dsn, base: "http://" + u.Host, table: "front_" + strings.ToLower(rand.Text()[:10])}
	e.db, err = sql.Open("databend", dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.db.Close() })
	e.exec(t, "CREATE TABLE "+e.table+" ("+columns+")")
	t.Cleanup(func() { _, _ = e.db.ExecContext(context.Background(), "DROP TABLE IF EXISTS "+e.table) })
	return e
}

func (e engine) exec(t *testing.T, text string) int64 {
	t.Helper()
	r, err := e.db.ExecContext(t.Context(), text)
	require.NoError(t, err, text)
	n, err := r.RowsAffected()
	require.NoError(t, err)
	return n
}

func (e engine) count(t *testing.T) (n int64) {
	t.Helper()
	require.NoError(t, e.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+e.table).Scan(&n))
	return n
}

// do sends a request as root and reads its answer.
func (e engine) do(t *testing.T, method, path string, header http.Header, body io.Reader) (int, answer) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, e.base+path, body)
	require.NoError(t, err)
	r.Header = header
	r.SetBasicAuth("root", "")
	got, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer got.Body.Close()
	var a answer
	require.NoError(t, json.NewDecoder(got.Body).Decode(&a))
	return got.StatusCode, a
}

func (e engine) stream(t *testing.T, label, statement, rows string) (int, answer) {
	t.Helper()
	kind, body := form("upload", "x.csv", rows)
	return e.do(t, http.MethodPut, "/v1/streaming_load",
		http.Header{"Content-Type": {kind}, "X-Databend-Sql": {statement}, "X-Databend-Deduplicate-Label": {label}}, body)
}

func (e engine) insert() string {
	return "INSERT INTO " + e.table + " (id, s) FROM @_databend_load FILE_FORMAT = (type = CSV, record_delimiter = '\\n', " +
		"quote = '\"', escape = '', empty_field_as = STRING)"
}

const idAndText = "id BIGINT NOT NULL, s VARCHAR NOT NULL"

func TestEngineAndOfficialGoClient(t *testing.T) {
	e := newEngine(t, "id BIGINT NOT NULL, s VARCHAR NULL, d DATE, at TIMESTAMP, price DECIMAL(20, 2), f DOUBLE, yes BOOLEAN")
	require.EqualValues(t, 1, e.exec(t, "INSERT INTO "+e.table+" VALUES (1, 'it''s', '2024-02-29', '2024-02-29 01:02:03.5', 1.5, 1e20, true)"))
	require.EqualValues(t, 1, e.exec(t, "INSERT INTO "+e.table+" (id) VALUES (2)"))
	rows, err := e.db.QueryContext(t.Context(), "SELECT id, s, d, at, price, f, yes FROM "+e.table+" ORDER BY id")
	require.NoError(t, err)
	defer rows.Close()
	types, err := rows.ColumnTypes()
	require.NoError(t, err)
	var names []string
	for _, c := range types {
		names = append(names, c.DatabaseTypeName())
	}
	require.Equal(t, []string{"Int64", "String NULL", "Date NULL", "Timestamp NULL", "Decimal(20, 2) NULL", "Float64 NULL", "Boolean NULL"}, names)
	var id int64
	var s, price sql.NullString
	var d, at sql.NullTime
	var f sql.NullFloat64
	var yes sql.NullBool
	require.True(t, rows.Next())
	require.NoError(t, rows.Scan(&id, &s, &d, &at, &price, &f, &yes))
	require.Equal(t, "it's 2024-02-29 01:02:03.5 1.50 1e+20 true",
		fmt.Sprint(s.String, " ", at.Time.UTC().Format("2006-01-02 15:04:05.9"), " ", price.String, " ", f.Float64, " ", yes.Bool))
	require.Equal(t, 29, d.Time.Day())
	require.True(t, rows.Next())
	require.NoError(t, rows.Scan(&id, &s, &d, &at, &price, &f, &yes))
	require.False(t, s.Valid || d.Valid || at.Valid || price.Valid || f.Valid || yes.Valid, "NULLs")
	require.False(t, rows.Next())
	require.NoError(t, rows.Err())

	_, err = e.db.ExecContext(t.Context(), "SELECT nope")
	var failed *godatabend.QueryError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 1065, failed.Code)
}

func TestEngineAndStages(t *testing.T) {
	e := newEngine(t, idAndText)
	config, err := godatabend.ParseDSN(e.dsn + "&presigned_url_disabled=true")
	require.NoError(t, err)
	client := godatabend.NewAPIClientFromConfig(config)
	stage := &godatabend.StageLocation{Name: "~", Path: e.table + "/1.csv"}
	text := "1,a\n2,\"b, \"\"c\"\"\"\n"
	require.NoError(t, client.UploadToStage(t.Context(), stage, bufio.NewReader(strings.NewReader(text)), int64(len(text))))
	got, err := client.InsertWithStage(t.Context(), "INSERT INTO "+e.table+" (id, s) VALUES", stage, nil, nil)
	require.NoError(t, err)
	require.EqualValues(t, 2, got.Stats.WriteProgress.Rows)
	require.EqualValues(t, 2, e.count(t))

	missing := &godatabend.StageLocation{Name: "~", Path: e.table + "/none.csv"}
	got, err = client.InsertWithStage(t.Context(), "INSERT INTO "+e.table+" (id, s) VALUES", missing, nil, nil)
	require.NoError(t, err)
	require.Zero(t, got.Stats.WriteProgress.Rows, "a file that is not there has no rows")
	_, err = client.QuerySync(t.Context(), "PRESIGN UPLOAD @~/x")
	require.ErrorContains(t, err, "presign")
}

func TestEngineAndStreamingLoad(t *testing.T) {
	e := newEngine(t, idAndText)
	status, a := e.stream(t, e.table+"-1", e.insert(), "1,a\n2,\n3,\"\"\n")
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, 3, a.Stats.Rows)
	require.NotEmpty(t, a.ID)
	status, a = e.stream(t, e.table+"-1", e.insert(), "1,a\n2,\n3,\"\"\n")
	require.Equal(t, http.StatusOK, status)
	require.Zero(t, a.Stats.Rows, "the label is taken")
	require.EqualValues(t, 3, e.count(t))

	for name, c := range map[string]struct{ statement, rows string }{
		"too few fields":   {e.insert(), "1,a\n2\n"},
		"no number":        {e.insert(), "1,a\nx,b\n"},
		"no such table":    {strings.Replace(e.insert(), e.table, "missing", 1), "1,a\n"},
		"another sentence": {"DROP TABLE " + e.table, "1,a\n"},
		"a select in it":   {"INSERT INTO " + e.table + " SELECT 1, 'a' FROM @_databend_load FILE_FORMAT = (type = CSV)", "1,a\n"},
		"two in one":       {e.insert() + "; DROP TABLE " + e.table, "1,a\n"},
		"copy options":     {e.insert() + " ON_ERROR = CONTINUE", "1,a\n2\n"},
	} {
		status, a = e.stream(t, "", c.statement, c.rows)
		require.Equal(t, http.StatusBadRequest, status, name)
		require.Equal(t, http.StatusBadRequest, a.Error.Code, name)
		require.NotEmpty(t, a.Error.Message, name)
	}
	require.EqualValues(t, 3, e.count(t), "all or nothing")

	status, a = e.stream(t, "", strings.Replace(e.insert(), "FROM", "VALUES (? + 10, 'what?') FROM", 1), "1,a\n")
	require.Equal(t, http.StatusOK, status, a.Error)
	var text string
	require.NoError(t, e.db.QueryRowContext(t.Context(), "SELECT s FROM "+e.table+" WHERE id = 11").Scan(&text))
	require.Equal(t, "what?", text)
}

func TestEngineAnswersOnlyOnceToAnID(t *testing.T) {
	e := newEngine(t, idAndText)
	id := http.Header{"X-Databend-Query-Id": {strings.ToLower(rand.Text())}}
	for range 2 {
		_, a := e.do(t, http.MethodPost, "/v1/query", id.Clone(), strings.NewReader(`{"sql": "INSERT INTO `+e.table+` VALUES (1, 'a')"}`))
		require.Nil(t, a.Error)
		require.EqualValues(t, 1, a.Stats.Write.Rows)
	}
	require.EqualValues(t, 1, e.count(t))
}

func TestEngineQueriesInPages(t *testing.T) {
	e := newEngine(t, idAndText)
	_, a := e.do(t, http.MethodPost, "/v1/query", http.Header{}, strings.NewReader(
		`{"sql": "SELECT number FROM numbers(25) ORDER BY number", "pagination": {"max_rows_per_page": 10}}`))
	var got []string
	for {
		require.Nil(t, a.Error)
		for _, row := range a.Data {
			got = append(got, *row[0])
		}
		if strings.HasSuffix(a.Next, "/final") {
			break
		}
		_, a = e.do(t, http.MethodGet, a.Next, http.Header{}, nil)
	}
	require.Len(t, got, 25)
	require.Equal(t, "24", got[24])
}

// TestEngineCannotStopAStatement holds the front end to saying so: a kill does not take the query out of the list of
// what is at work, as long as the engine has it.
func TestEngineCannotStopAStatement(t *testing.T) {
	e := newEngine(t, "n BIGINT UNSIGNED")
	id := strings.ToLower(rand.Text())
	_, a := e.do(t, http.MethodPost, "/v1/query", http.Header{"X-Databend-Query-Id": {id}}, strings.NewReader(
		`{"sql": "INSERT INTO `+e.table+` SELECT COUNT(*) FROM numbers(200000000) WHERE sqrt(number) > 10", "pagination": {"wait_time_secs": 1}}`))
	atWork := func() int {
		var n int
		require.NoError(t, e.db.QueryRowContext(t.Context(),
			"SELECT COUNT(*) FROM system.processes WHERE current_query_id IN ('"+id+"')").Scan(&n))
		return n
	}
	_, _ = e.do(t, http.MethodGet, "/v1/query/"+id+"/kill", http.Header{}, nil)
	if a.State == "Running" { // a fast machine may be through
		if _, a = e.do(t, http.MethodGet, a.Next, http.Header{}, nil); a.Error != nil {
			require.Equal(t, 1043, a.Error.Code)
		}
	}
	require.Eventually(t, func() bool { return atWork() == 0 }, 2*time.Minute, 20*time.Millisecond)
	require.EqualValues(t, 1, e.count(t), "it went on and committed")
}

func TestEngineAndAnObjectStore(t *testing.T) {
	e := newEngine(t, idAndText)
	store, err := url.Parse(variable(t, "TERAPUSH_TEST_S3"))
	require.NoError(t, err)
	stage := "stage_" + e.table
	e.exec(t, fmt.Sprintf("CREATE STAGE %s URL = 's3://%s%s/%s/' CONNECTION = (endpoint_url = '%s', region = 'us-east-1', "+
		"access_key_id = '%s', secret_access_key = '%s', enable_virtual_host_style = 'false')", stage, store.Host, store.Path, e.table,
		store.Query().Get("endpoint"), os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")))
	t.Cleanup(func() { _, _ = e.db.ExecContext(context.Background(), "DROP STAGE "+stage) })
	config, err := godatabend.ParseDSN(e.dsn)
	require.NoError(t, err)
	client := godatabend.NewAPIClientFromConfig(config)
	// Once by a URL that the engine signs, once through the front end.
	text := "1,a\n2,b\n"
	at := &godatabend.StageLocation{Name: stage, Path: "1.csv"}
	require.NoError(t, client.UploadToStageByPresignURL(t.Context(), at, bufio.NewReader(strings.NewReader(text)), int64(len(text))))
	kind, body := form("upload", "2.csv", "3,c\n")
	status, a := e.do(t, http.MethodPut, "/v1/upload_to_stage", http.Header{
		"Content-Type": {kind}, "X-Databend-Stage-Name": {stage}, "X-Databend-Relative-Path": {"below"}}, body)
	require.Equal(t, http.StatusOK, status, a.Error)
	require.Equal(t, []string{"2.csv"}, a.Files)

	copyInto := "COPY INTO " + e.table + " (id, s) FROM @" + stage + " FILES = ('1.csv', 'below/2.csv') FILE_FORMAT = (type = CSV) ON_ERROR = abort"
	load := func() answer {
		request, err := json.Marshal(map[string]string{"sql": copyInto})
		require.NoError(t, err)
		_, a := e.do(t, http.MethodPost, "/v1/query", http.Header{}, bytes.NewReader(request))
		require.Nil(t, a.Error)
		return a
	}
	a = load()
	require.EqualValues(t, 3, a.Stats.Write.Rows)
	require.Len(t, a.Data, 2)
	require.Empty(t, load().Data, "their names are remembered")
	require.EqualValues(t, 3, e.count(t))
	e.exec(t, "REMOVE @"+stage)
}

func TestEngineAndOfficialPythonClient(t *testing.T) {
	e := newEngine(t, idAndText)
	python := variable(t, "TERAPUSH_TEST_DATABEND_PYTHON")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "testdata/driver.py", strings.Replace(e.dsn, "root@", "root:@", 1), e.table, t.TempDir()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.EqualValues(t, 4, e.count(t))
}

// BenchmarkEngineStreamingLoad is the rate of the front end and the engine: one load of 100,000 rows of 766 bytes.
func BenchmarkEngineStreamingLoad(b *testing.B) {
	const rows = 100_000
	var text strings.Builder
	for i := range rows {
		fmt.Fprintf(&text, "%d,%s\n", i, strings.Repeat("x", 758))
	}
	dsn := os.Getenv("TERAPUSH_TEST_DATABEND")
	if dsn == "" {
		b.Skip("TERAPUSH_TEST_DATABEND is not set")
	}
	u, err := url.Parse(dsn)
	require.NoError(b, err)
	db, err := sql.Open("databend", dsn)
	require.NoError(b, err)
	defer db.Close()
	_, err = db.ExecContext(b.Context(), "CREATE OR REPLACE TABLE front_bench ("+idAndText+")")
	require.NoError(b, err)
	statement := engine{table: "front_bench"}.insert()
	for b.Loop() {
		kind, body := form("upload", "x.csv", text.String())
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPut, "http://"+u.Host+"/v1/streaming_load", body)
		require.NoError(b, err)
		r.Header = http.Header{"Content-Type": {kind}, "X-Databend-Sql": {statement}}
		r.SetBasicAuth("root", "")
		got, err := http.DefaultClient.Do(r)
		require.NoError(b, err)
		_ = got.Body.Close()
		require.Equal(b, http.StatusOK, got.StatusCode)
	}
	b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
	_, err = db.ExecContext(b.Context(), "DROP TABLE front_bench")
	require.NoError(b, err)
}

// TestTheStandInAndOfficialPythonClient is the same for the stand-in, as far as its statements go.
func TestTheStandInAndOfficialPythonClient(t *testing.T) {
	python := variable(t, "TERAPUSH_TEST_DATABEND_PYTHON")
	s := newServer(t, databend.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, python, "testdata/driver.py", s.dsn(), "t", t.TempDir()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, [][]any{{int64(1), "a"}, {int64(2), "b"}, {int64(3), "c, \"d\""}, {int64(4), "e"}}, s.Rows("t"))
}
