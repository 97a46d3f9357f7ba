package databend_test

import (
	"bufio"
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	godatabend "github.com/datafuselabs/databend-go"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/databend"
)

// server is a stand-in over HTTP, with a table t.
type server struct {
	*databend.Fake
	*httptest.Server
}

func newServer(t *testing.T, o databend.Options) server {
	f := databend.New(o)
	s := server{f, httptest.NewServer(f)}
	t.Cleanup(s.Server.Close)
	t.Cleanup(f.Close)
	s.query(t, "CREATE TABLE t (id BIGINT NOT NULL, s VARCHAR NOT NULL)")
	return s
}

func (s server) dsn() string {
	return "databend://root:@" + strings.TrimPrefix(s.URL, "http://") + "/default?sslmode=disable"
}

// answer is what every route may say.
type answer struct {
	ID    string
	State string
	Error *struct {
		Code    int
		Message string
	}
	Data  [][]*string
	Stats struct {
		Rows  int64
		Write struct{ Rows int64 } `json:"write_progress"`
	}
	Next  string `json:"next_uri"`
	Files []string
}

// request sends a request and reads its answer; status 0 stands for a broken connection.
func (s server) request(t *testing.T, method, path string, header http.Header, body io.Reader) (status int, a answer) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, body)
	require.NoError(t, err)
	r.Header = header
	r.SetBasicAuth("root", "")
	// A connection of its own: a broken one is not tried again behind the test's back.
	got, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return 0, a
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	if err := json.Unmarshal(text, &a); err != nil && len(text) > 0 {
		return -1, a
	}
	return got.StatusCode, a
}

func (s server) query(t *testing.T, text string) answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"sql": text})
	require.NoError(t, err)
	status, a := s.request(t, http.MethodPost, "/v1/query", http.Header{}, bytes.NewReader(body))
	require.Equal(t, http.StatusOK, status)
	return a
}

const insertStreamed = "INSERT INTO t (id, s) FROM @_databend_load FILE_FORMAT = (type = CSV, empty_field_as = STRING)"

func (s server) load(t *testing.T, label, rows string) (int, answer) {
	t.Helper()
	return s.loadAs(t, label, "id-"+label, rows)
}

func (s server) loadAs(t *testing.T, label, id, rows string) (int, answer) {
	t.Helper()
	kind, body := form("upload", "batch.csv", rows)
	return s.request(t, http.MethodPut, "/v1/streaming_load", http.Header{
		"Content-Type": {kind}, "X-Databend-Sql": {insertStreamed},
		"X-Databend-Deduplicate-Label": {label}, "X-Databend-Query-Id": {id},
	}, body)
}

func form(name, file, rows string) (string, io.Reader) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreateFormFile(name, file)
	_, _ = io.WriteString(part, rows)
	_ = w.Close()
	return w.FormDataContentType(), &b
}

func twoRows() [][]any { return [][]any{{int64(1), "a"}, {int64(2), "b"}} }

func TestOfficialClient(t *testing.T) {
	s := newServer(t, databend.Options{})
	db, err := sql.Open("databend", s.dsn())
	require.NoError(t, err)
	defer db.Close()
	r, err := db.ExecContext(t.Context(), "INSERT INTO t (id, s) VALUES (?, ?), (?, ?)", 1, "it's, (so)", 2, "b")
	require.NoError(t, err)
	n, err := r.RowsAffected()
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	var count int64
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t WHERE id BETWEEN 1 AND 2").Scan(&count))
	require.EqualValues(t, 2, count)
	require.Equal(t, [][]any{{int64(1), "it's, (so)"}, {int64(2), "b"}}, s.Rows("t"))
	_, err = db.ExecContext(t.Context(), "DROP TABLE missing")
	var failed *godatabend.QueryError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, 1025, failed.Code)
}

func TestOfficialClientStages(t *testing.T) {
	for name, presign := range map[string]bool{"presigned": true, "through the node": false} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, databend.Options{Presign: presign})
			config, err := godatabend.ParseDSN(s.dsn() + fmt.Sprintf("&presigned_url_disabled=%t", !presign))
			require.NoError(t, err)
			client := godatabend.NewAPIClientFromConfig(config)
			stage := &godatabend.StageLocation{Name: "~", Path: "batch/1.csv"}
			text := "1,a\n2,b\n"
			require.NoError(t, client.UploadToStage(t.Context(), stage, bufio.NewReader(strings.NewReader(text)), int64(len(text))))
			require.Equal(t, []string{"batch/1.csv"}, s.Files("~"))
			got, err := client.InsertWithStage(t.Context(), "INSERT INTO t (id, s) VALUES", stage, nil, nil)
			require.NoError(t, err)
			require.EqualValues(t, 2, got.Stats.WriteProgress.Rows)
			require.Equal(t, twoRows(), s.Rows("t"))
			require.Empty(t, s.Files("~"), "purged")
		})
	}
}

func TestLabelIsACheckAndNotALock(t *testing.T) {
	held := make(chan struct{})
	s := newServer(t, databend.Options{Fault: func(k databend.Kind, _ string, attempt int) databend.Fault {
		if k == databend.Stream && attempt == 1 {
			return databend.Fault{Hold: held}
		}
		return databend.Fault{}
	}})
	first := make(chan answer)
	go func() {
		_, a := s.loadAs(t, "l", "one", "1,a\n2,b\n")
		first <- a
	}()
	require.Eventually(t, func() bool { return len(s.Running()) == 1 }, 10*time.Second, time.Millisecond)
	status, a := s.loadAs(t, "l", "two", "1,a\n2,b\n")
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, 2, a.Stats.Rows)
	close(held)
	require.EqualValues(t, 2, (<-first).Stats.Rows)
	require.Len(t, s.Rows("t"), 4, "both have committed")
	_, a = s.loadAs(t, "l", "three", "1,a\n2,b\n")
	require.Zero(t, a.Stats.Rows, "taken: a success without rows")
	s.ForgetLabel("l")
	_, a = s.loadAs(t, "l", "four", "1,a\n2,b\n")
	require.EqualValues(t, 2, a.Stats.Rows)
}

func TestLabelsExpire(t *testing.T) {
	now := time.Unix(0, 0)
	s := newServer(t, databend.Options{LabelTTL: time.Hour, Now: func() time.Time { return now }})
	for minutes, rows := range []int64{2, 0, 2} {
		now = time.Unix(0, 0).Add(time.Duration(minutes) * 35 * time.Minute)
		_, a := s.load(t, "l", "1,a\n2,b\n")
		require.Equal(t, rows, a.Stats.Rows, "after %d times 35 minutes", minutes)
	}
}

func TestAnswersThatSayNothing(t *testing.T) {
	for name, fault := range map[string]databend.Fault{
		"lost":      {LoseAnswer: true},
		"truncated": {Truncate: true},
		"vanished":  {Vanish: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, databend.Options{Fault: scripted(databend.Stream, fault)})
			status, _ := s.load(t, "l", "1,a\n2,b\n")
			require.LessOrEqual(t, status, 0)
			require.Eventually(t, func() bool { return len(s.Running()) == 0 }, 10*time.Second, time.Millisecond)
			require.Equal(t, twoRows(), s.Rows("t"))
		})
	}
}

// scripted gives the fault to the first request of a kind.
func scripted(kind databend.Kind, fault databend.Fault) func(databend.Kind, string, int) databend.Fault {
	return func(k databend.Kind, _ string, attempt int) databend.Fault {
		if k == kind && attempt == 1 {
			return fault
		}
		return databend.Fault{}
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		fault  databend.Fault
		status int
		words  string
	}{
		"before the body": {databend.Fault{Status: 400, Message: "Failed to upgrade session"}, 400, "Failed to upgrade session"},
		"login":           {databend.Fault{Status: 401}, 401, "refused"},
		"the statement":   {databend.Fault{Code: 1046, Message: "bad bytes"}, 400, "Query execution failed: bad bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, databend.Options{Fault: scripted(databend.Stream, c.fault)})
			status, a := s.load(t, "l", "1,a\n2,b\n")
			require.Equal(t, c.status, status)
			require.Contains(t, a.Error.Message, c.words)
			require.Equal(t, c.status, a.Error.Code, "a streaming load repeats the status")
			require.Empty(t, s.Rows("t"))
			status, _ = s.load(t, "l", "1,a\n2,b\n")
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, twoRows(), s.Rows("t"))
		})
	}
	s := newServer(t, databend.Options{Fault: scripted(databend.Insert, databend.Fault{Code: 4000})})
	a := s.query(t, "INSERT INTO t (id, s) VALUES (1, 'a')")
	require.Equal(t, 4000, a.Error.Code, "an error inside a 200")
	require.Equal(t, "Failed", a.State)
	require.Empty(t, s.Rows("t"))
}

func TestBadRowsLoadNothing(t *testing.T) {
	s := newServer(t, databend.Options{})
	for name, text := range map[string]string{
		"too few fields": "1,a\n2\n", "no number": "1,a\nx,b\n", "null": "1,a\n2,\\N\n", "open quote": "1,a\n2,\"b\n",
	} {
		status, a := s.load(t, name, text)
		require.Equal(t, http.StatusBadRequest, status, name)
		require.Contains(t, a.Error.Message, "Query execution failed: ", name)
	}
	require.Empty(t, s.Rows("t"))
	kind, body := form("file", "x.csv", "1,a\n")
	status, _ := s.request(t, http.MethodPut, "/v1/streaming_load",
		http.Header{"Content-Type": {kind}, "X-Databend-Sql": {insertStreamed}}, body)
	require.Equal(t, http.StatusBadRequest, status, "a part of another name")
	_, _ = s.load(t, "quotes", "7,\"a\"\"b,\nc\"\n8,\"\"\n9,\n")
	require.Equal(t, [][]any{{int64(7), "a\"b,\nc"}, {int64(8), ""}, {int64(9), ""}}, s.Rows("t"))
}

func TestNDJSON(t *testing.T) {
	s := newServer(t, databend.Options{})
	kind, body := form("upload", "x", `{"id": 9007199254740993, "s": "a\n"}`+"\n"+`{"s": "b", "id": 2}`)
	status, a := s.request(t, http.MethodPut, "/v1/streaming_load", http.Header{"Content-Type": {kind}, "X-Databend-Sql": {
		"INSERT INTO t (id, s) FROM @_databend_load FILE_FORMAT = (type = NDJSON, missing_field_as = ERROR)"}}, body)
	require.Equal(t, http.StatusOK, status)
	require.EqualValues(t, 2, a.Stats.Rows)
	require.Equal(t, [][]any{{int64(9007199254740993), "a\n"}, {int64(2), "b"}}, s.Rows("t"))
}

func TestABrokenConnectionCommitsWhatHasCome(t *testing.T) {
	s := newServer(t, databend.Options{})
	kind, body := form("upload", "x", "1,a\n2,b\n3,c\n")
	whole, err := io.ReadAll(body)
	require.NoError(t, err)
	r, w := io.Pipe()
	go func() {
		_, _ = w.Write(whole[:bytes.Index(whole, []byte("c\n"))])
		_ = w.CloseWithError(io.ErrClosedPipe)
	}()
	status, _ := s.request(t, http.MethodPut, "/v1/streaming_load", http.Header{"Content-Type": {kind}, "X-Databend-Sql": {insertStreamed}}, r)
	require.Zero(t, status)
	require.Eventually(t, func() bool { return len(s.Rows("t")) == 2 }, 10*time.Second, time.Millisecond)
	require.Equal(t, twoRows(), s.Rows("t"))
}

func TestAQueryOutlivesItsClientUntilItIsKilled(t *testing.T) {
	s := newServer(t, databend.Options{Fault: scripted(databend.Stream, databend.Fault{Vanish: true, Hold: make(chan struct{})})})
	status, _ := s.load(t, "l", "1,a\n2,b\n")
	require.Zero(t, status)
	at := s.query(t, "SELECT id FROM system.processes WHERE current_query_id IN ('id-l', 'another')")
	require.Len(t, at.Data, 1)
	status, _ = s.request(t, http.MethodGet, "/v1/query/id-l/kill", http.Header{}, nil)
	require.Equal(t, http.StatusNotFound, status, "/v1/query knows no streaming load")
	require.Nil(t, s.query(t, "KILL QUERY '"+*at.Data[0][0]+"'").Error)
	require.Eventually(t, func() bool { return len(s.Running()) == 0 }, 10*time.Second, time.Millisecond)
	require.Empty(t, s.Rows("t"))
	_, a := s.load(t, "l", "1,a\n2,b\n")
	require.EqualValues(t, 2, a.Stats.Rows, "a killed query has not taken the label")
}

func TestQueueBeforeTheBody(t *testing.T) {
	gate := make(chan struct{})
	s := newServer(t, databend.Options{MaxRunning: 1, Fault: scripted(databend.Stream, databend.Fault{Queue: gate})})
	done := make(chan int)
	go func() {
		status, _ := s.load(t, "l", "1,a\n2,b\n")
		done <- status
	}()
	require.Eventually(t, func() bool { return len(s.Running()) == 1 }, 10*time.Second, time.Millisecond)
	require.Empty(t, s.Rows("t"))
	close(gate)
	require.Equal(t, http.StatusOK, <-done)
}

func TestStartingAndPages(t *testing.T) {
	s := newServer(t, databend.Options{Fault: scripted(databend.Insert, databend.Fault{Starting: 2})})
	a := s.query(t, "INSERT INTO t (id, s) VALUES (1, 'a'), (2, 'b')")
	for range 2 {
		require.NotEqual(t, "Succeeded", a.State)
		require.Zero(t, a.Stats.Write.Rows)
		_, a = s.request(t, http.MethodGet, a.Next, http.Header{}, nil)
	}
	require.Equal(t, "Succeeded", a.State)
	require.EqualValues(t, 2, a.Stats.Write.Rows)
	require.True(t, strings.HasSuffix(a.Next, "/final"))

	body := `{"sql": "SELECT id, id, s FROM t WHERE id IN (1,2)", "pagination": {"max_rows_per_page": 1}}`
	_, a = s.request(t, http.MethodPost, "/v1/query", http.Header{}, strings.NewReader(body))
	require.Len(t, a.Data, 1)
	_, b := s.request(t, http.MethodGet, a.Next, http.Header{}, nil)
	require.Len(t, b.Data, 1)
	require.Equal(t, []string{"a", "b"}, []string{*a.Data[0][2], *b.Data[0][2]})
}

func TestTheSameIDIsTheSameQuery(t *testing.T) {
	s := newServer(t, databend.Options{})
	for range 2 {
		_, a := s.request(t, http.MethodPost, "/v1/query", http.Header{"X-Databend-Query-Id": {"once"}},
			strings.NewReader(`{"sql": "INSERT INTO t (id, s) VALUES (1, 'a')"}`))
		require.EqualValues(t, 1, a.Stats.Write.Rows)
	}
	require.Len(t, s.Rows("t"), 1)
}

func TestCopyRemembersNames(t *testing.T) {
	s := newServer(t, databend.Options{Object: func(url string) ([]byte, error) {
		if url != "s3://bucket/prefix/r/2.csv" {
			return nil, fmt.Errorf("no object %s", url)
		}
		return []byte("3,c\n"), nil
	}})
	kind, body := form("upload", "1.csv", "1,a\n2,b\n")
	status, a := s.request(t, http.MethodPut, "/v1/upload_to_stage", http.Header{
		"Content-Type": {kind}, "X-Databend-Stage-Name": {"~"}, "X-Databend-Relative-Path": {"r"}}, body)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, []string{"1.csv"}, a.Files)
	format := ` FILE_FORMAT = (type = CSV, record_delimiter = '\n', quote = '"', escape = '') ON_ERROR = abort`
	a = s.query(t, "COPY INTO `default`.`t` (`id`, `s`) FROM @~ FILES = ('r/1.csv')"+format)
	require.Nil(t, a.Error)
	require.Equal(t, "r/1.csv", *a.Data[0][0])
	require.Equal(t, "2", *a.Data[0][1])
	require.Empty(t, s.query(t, "COPY INTO t FROM @~ FILES = ('r/1.csv')"+format).Data, "skipped")
	require.Equal(t, 3001, s.query(t, "COPY INTO t FROM @~ FILES = ('r/none.csv')"+format).Error.Code)

	require.Nil(t, s.query(t, "CREATE OR REPLACE STAGE x URL = 's3://bucket/prefix/' CONNECTION = (endpoint_url = 'http://h')").Error)
	require.Nil(t, s.query(t, "COPY INTO t FROM @x FILES = ('r/2.csv')"+format).Error)
	require.Len(t, s.Rows("t"), 3)
	require.Nil(t, s.query(t, "REMOVE @~/r/ PATTERN = '(1|2)[.]csv'").Error)
	require.Empty(t, s.Files("~"))
}

func TestAFormThatBreaksOff(t *testing.T) {
	s := newServer(t, databend.Options{Fault: scripted(databend.Upload, databend.Fault{FewerFiles: true})})
	kind, body := form("upload", "1.csv", "1,a\n")
	status, a := s.request(t, http.MethodPut, "/v1/upload_to_stage", http.Header{"Content-Type": {kind}, "X-Databend-Stage-Name": {"~"}}, body)
	require.Equal(t, http.StatusOK, status)
	require.Empty(t, a.Files)
	require.Empty(t, s.Files("~"))
}

func TestBuckets(t *testing.T) {
	s := newServer(t, databend.Options{})
	_, _ = s.load(t, "l", "0,a\n1,bb\n2,ccc\n5,d\n")
	a := s.query(t, "SELECT bucket, COUNT(*), MIN(o), MAX(o), SUM(CAST(o AS DECIMAL(38, 0))), SUM(CAST(o AS DECIMAL(38, 0)) * CAST(o AS DECIMAL(38, 0))), "+
		"SUM(CAST(l1 AS DECIMAL(38, 0))) FROM (SELECT (`id` - 0) DIV 4 AS bucket, (`id` - 0) % 4 AS o, OCTET_LENGTH(`s`) AS l1 FROM `default`.`t` "+
		"WHERE `id` BETWEEN 0 AND 2) t GROUP BY bucket")
	require.Nil(t, a.Error)
	require.Len(t, a.Data, 1)
	var got []string
	for _, v := range a.Data[0] {
		got = append(got, *v)
	}
	require.Equal(t, []string{"0", "3", "0", "2", "3", "5", "6"}, got)
}

func TestDelete(t *testing.T) {
	s := newServer(t, databend.Options{})
	_, _ = s.load(t, "l", "0,z\n1,a\n2,b\n5,d\n")
	require.EqualValues(t, 1, s.query(t, "DELETE FROM `default`.`t` WHERE `id` BETWEEN 3 AND 9").Stats.Write.Rows)
	require.EqualValues(t, 1, s.query(t, "DELETE FROM t WHERE (`id` - 0) * 2 BETWEEN 0 AND 1").Stats.Write.Rows)
	require.Equal(t, twoRows(), s.Rows("t"))
}

func TestUnknownStatementsAreRefused(t *testing.T) {
	s := newServer(t, databend.Options{})
	require.Equal(t, 1005, s.query(t, "SELECT s FROM t ORDER BY id").Error.Code)
}

// A kill that is agreed to comes too late for a statement that is committing.
func TestDeaf(t *testing.T) {
	held := make(chan struct{})
	s := newServer(t, databend.Options{Fault: scripted(databend.Insert, databend.Fault{Starting: 1, Hold: held, Deaf: true})})
	_, a := s.request(t, http.MethodPost, "/v1/query", http.Header{"X-Databend-Query-Id": {"id"}},
		strings.NewReader(`{"sql": "INSERT INTO t (id, s) VALUES (1, 'a'), (2, 'b')"}`))
	status, _ := s.request(t, http.MethodGet, "/v1/query/id/kill", http.Header{}, nil)
	require.Equal(t, http.StatusOK, status)
	at := s.query(t, "SELECT id FROM system.processes WHERE current_query_id IN ('id')")
	require.Len(t, at.Data, 1, "still listed")
	require.Nil(t, s.query(t, "KILL QUERY '"+*at.Data[0][0]+"'").Error)
	close(held)
	_, a = s.request(t, http.MethodGet, a.Next, http.Header{}, nil)
	require.EqualValues(t, 2, a.Stats.Write.Rows)
	require.Equal(t, twoRows(), s.Rows("t"))
}

// A file is read when the statement is planned.
func TestAnAttachmentMayBeRemovedMeanwhile(t *testing.T) {
	held := make(chan struct{})
	s := newServer(t, databend.Options{Fault: scripted(databend.Insert, databend.Fault{Starting: 1, Hold: held})})
	kind, body := form("upload", "1.csv", "1,a\n2,b\n")
	_, _ = s.request(t, http.MethodPut, "/v1/upload_to_stage", http.Header{"Content-Type": {kind}, "X-Databend-Stage-Name": {"~"}}, body)
	_, a := s.request(t, http.MethodPost, "/v1/query", http.Header{}, strings.NewReader(
		`{"sql": "INSERT INTO t (id, s) VALUES", "stage_attachment": {"location": "@~/1.csv", "file_format_options": {"type": "CSV"}}}`))
	require.Nil(t, s.query(t, "REMOVE @~/1.csv").Error)
	close(held)
	_, a = s.request(t, http.MethodGet, a.Next, http.Header{}, nil)
	require.EqualValues(t, 2, a.Stats.Write.Rows)
}

// A deletion heeds its label as a load does.
func TestDeleteHeedsItsLabel(t *testing.T) {
	s := newServer(t, databend.Options{})
	for _, rows := range []int64{2, 0} {
		_, _ = s.load(t, fmt.Sprint("l", rows), "1,a\n2,b\n")
		_, a := s.request(t, http.MethodPost, "/v1/query", http.Header{"X-Databend-Deduplicate-Label": {"once"}},
			strings.NewReader(`{"sql": "DELETE FROM t WHERE id BETWEEN 1 AND 2"}`))
		require.Equal(t, rows, a.Stats.Write.Rows)
	}
	require.Equal(t, twoRows(), s.Rows("t"))
}

// A table whose key is a number's digits is asked by them, and for them as a number.
func TestKeysOfText(t *testing.T) {
	s := newServer(t, databend.Options{})
	s.query(t, "CREATE TABLE k (id VARCHAR NOT NULL, s VARCHAR NOT NULL)")
	require.Nil(t, s.query(t, "INSERT INTO k (id, s) VALUES ('0008', 'a'), ('0009', 'bb'), ('0010', 'c'), ('0010', 'd'), ('0100', 'e')").Error)
	for statement, want := range map[string]string{
		"SELECT COUNT(*) FROM k WHERE `id` BETWEEN '0009' AND '0010'":                             "3",
		"SELECT COUNT(DISTINCT CAST(`id` AS BIGINT)) FROM k WHERE `id` BETWEEN '0009' AND '0010'": "2",
		"SELECT CAST(`id` AS BIGINT), `id`, `s` FROM k WHERE `id` IN ('0100','0008','0011')":      "8 0008 a, 100 0100 e",
		"SELECT COUNT(*) FROM k WHERE CAST(`id` AS BIGINT) BETWEEN 9 AND 10":                      "3",
		"SELECT bucket, COUNT(*), MIN(o), MAX(o), CAST(SUM(o) AS DECIMAL(38, 0)), CAST(SUM(o * o) AS DECIMAL(38, 0)), " +
			"CAST(SUM(l1) AS DECIMAL(38, 0)) FROM (SELECT (CAST(`id` AS BIGINT) - 8) DIV 50 AS bucket, (CAST(`id` AS BIGINT) - 8) % 50 AS o, " +
			"OCTET_LENGTH(`s`) AS l1 FROM k WHERE `id` BETWEEN '0008' AND '0057') t GROUP BY bucket": "0 4 0 2 5 9 5",
	} {
		require.Equal(t, want, texts(s.query(t, statement)), statement)
	}
	require.Equal(t, "3", texts(s.query(t, "DELETE FROM k WHERE `id` BETWEEN '0009' AND '0010'")))
	require.Equal(t, [][]any{{"0008", "a"}, {"0100", "e"}}, s.Rows("k"))
	for _, wrong := range []string{
		"SELECT COUNT(*) FROM k WHERE `id` BETWEEN 9 AND 10", // a text is no number
		"SELECT COUNT(*) FROM k WHERE `id` BETWEEN '0009' AND 10",
		"SELECT COUNT(*) FROM t WHERE `id` BETWEEN '0009' AND '0010'", // and a number no text
		"SELECT COUNT(*) FROM t WHERE CAST(`id` AS BIGINT) BETWEEN 9 AND 10",
	} {
		require.NotNil(t, s.query(t, wrong).Error, wrong)
	}
}

// texts are an answer's rows.
func texts(a answer) string {
	var all []string
	for _, row := range a.Data {
		var values []string
		for _, v := range row {
			values = append(values, *v)
		}
		all = append(all, strings.Join(values, " "))
	}
	return strings.Join(all, ", ")
}
