package databend_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/standin/databend"
	"github.com/terapush/terapush/pkg/rows"
)

// server is the stand-in, or the front end over the real engine, with a table.
type server struct{ base, table string }

// answer is what every route may say.
type answer struct {
	Error *struct{ Code int }
	Data  [][]*string
	Stats struct {
		Rows  int64
		Write struct{ Rows int64 } `json:"write_progress"`
	}
	Files []string
}

const format = ` FILE_FORMAT = (type = CSV, field_delimiter = ',', record_delimiter = '\n', quote = '"', escape = '', skip_header = 0, ` +
	`empty_field_as = STRING, error_on_column_count_mismatch = true, compression = NONE)`

// do sends a request; status 0 is a broken connection.
func (s server) do(t *testing.T, method, path string, header map[string]string, body io.Reader) (status int, a answer) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, s.base+path, body)
	require.NoError(t, err)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	r.SetBasicAuth("root", "")
	// A connection of its own: a broken one is not tried again behind the test's back.
	got, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return 0, a
	}
	defer got.Body.Close()
	require.NoError(t, json.NewDecoder(got.Body).Decode(&a))
	return got.StatusCode, a
}

func (s server) query(t *testing.T, id, sql string, more map[string]any) answer {
	t.Helper()
	body := map[string]any{"sql": sql}
	maps.Copy(body, more)
	text, err := json.Marshal(body)
	require.NoError(t, err)
	_, a := s.do(t, http.MethodPost, "/v1/query", map[string]string{"X-Databend-Query-Id": id}, bytes.NewReader(text))
	return a
}

func (s server) count(t *testing.T) string {
	t.Helper()
	return *s.query(t, "", "SELECT COUNT(*) FROM "+s.table+" WHERE `id` BETWEEN 0 AND 99", nil).Data[0][0]
}

// form is the body of an upload and the headers that come with it.
func form(rows string, header map[string]string) (map[string]string, []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreateFormFile("upload", "rows.csv")
	_, _ = io.WriteString(part, rows)
	_ = w.Close()
	header["Content-Type"] = w.FormDataContentType()
	return header, b.Bytes()
}

func (s server) load(t *testing.T, label, rows string) (int, answer) {
	t.Helper()
	header, body := form(rows, map[string]string{
		"X-Databend-Sql":               "INSERT INTO " + s.table + " (`id`, `s`) FROM @_databend_load" + format,
		"X-Databend-Deduplicate-Label": label,
	})
	return s.do(t, http.MethodPut, "/v1/streaming_load", header, bytes.NewReader(body))
}

func start(t *testing.T, script func(databend.Request) databend.Fault) (*databend.Server, server) {
	f := databend.Start(databend.Options{Script: script, Schemas: []rows.Schema{{
		Columns: []rows.Column{{Name: "id", Type: rows.Int64}, {Name: "s", Type: rows.Text}}, Number: []rows.Term{{Times: 1}},
	}}})
	t.Cleanup(f.Close)
	return f, server{f.URL, "`default`.`t_" + strings.ToLower(rand.Text()) + "`"}
}

func (s server) makeTable(t *testing.T) {
	t.Helper()
	a := s.query(t, "", "CREATE TABLE IF NOT EXISTS "+s.table+" (`id` BIGINT NOT NULL, `s` VARCHAR NOT NULL) COMMENT = 'x'", nil)
	require.Nil(t, a.Error)
	t.Cleanup(func() { s.query(t, "", "DROP TABLE IF EXISTS "+s.table, nil) })
}

// The stand-in and the front end over the engine give the same answers: what tests with either rely on.
func TestProtocol(t *testing.T) {
	for name, find := range map[string]func(*testing.T) server{
		"stand-in": func(t *testing.T) server { _, s := start(t, nil); return s },
		"engine": func(t *testing.T) server {
			u, err := url.Parse(backendtest.Server(t, "TERAPUSH_TEST_DATABEND"))
			require.NoError(t, err)
			return server{"http://" + u.Host, "`default`.`t_" + strings.ToLower(rand.Text()) + "`"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := find(t)
			s.makeTable(t)
			for _, rows := range []int64{3, 0} { // a label that is taken: a success without rows
				status, a := s.load(t, s.table+"1", "1,a\n2,\n3,\"\"\n")
				require.Equal(t, http.StatusOK, status)
				require.Equal(t, rows, a.Stats.Rows)
			}
			for _, bad := range []string{"4,a\n5\n", "4,a\nx,b\n"} { // all or nothing
				status, a := s.load(t, "", bad)
				require.Equal(t, []int{http.StatusBadRequest, http.StatusBadRequest}, []int{status, a.Error.Code}, bad)
			}
			require.Equal(t, "3", s.count(t))
			require.Equal(t, 1025, s.query(t, "", "SELECT 1 FROM `default`.`missing` LIMIT 1", nil).Error.Code)

			folder := "r-" + strings.ToLower(rand.Text())
			header, body := form("7,a\n8,b\n", map[string]string{"X-Databend-Stage-Name": "~", "X-Databend-Relative-Path": folder})
			_, a := s.do(t, http.MethodPut, "/v1/upload_to_stage", header, bytes.NewReader(body))
			require.Equal(t, []string{"rows.csv"}, a.Files)
			copyInto := "COPY INTO " + s.table + " (`id`, `s`) FROM @~ FILES = ('" + folder + "/rows.csv')" + format + " ON_ERROR = abort"
			a = s.query(t, "", copyInto, nil)
			require.Equal(t, []string{folder + "/rows.csv", "2"}, []string{*a.Data[0][0], *a.Data[0][1]})
			require.Empty(t, s.query(t, "", copyInto, nil).Data, "files are remembered by name")
			id := strings.ToLower(rand.Text())
			for range 2 { // the same id is the same query
				a = s.query(t, id, "INSERT INTO "+s.table+" (`id`, `s`) VALUES", map[string]any{"stage_attachment": map[string]any{
					"location": "@~/" + folder + "/rows.csv", "copy_options": map[string]string{"purge": "true"},
					"file_format_options": map[string]string{
						"type": "CSV", "field_delimiter": ",", "record_delimiter": "\n", "quote": `"`, "escape": "", "skip_header": "0",
						"empty_field_as": "STRING", "error_on_column_count_mismatch": "true", "compression": "NONE",
					}}})
				require.Nil(t, a.Error)
				require.EqualValues(t, 2, a.Stats.Write.Rows)
			}
			require.Equal(t, "7", s.count(t))
			require.Empty(t, s.query(t, "", "LIST @~/"+folder+"/", nil).Data, "purged")
		})
	}
}

// A label is a check and no lock: of two loads that overlap, both commit. A test in which terapush has to prevent that would show
// nothing otherwise.
func TestLoadsThatOverlap(t *testing.T) {
	hold := make(chan struct{})
	f, s := start(t, func(r databend.Request) (fault databend.Fault) {
		if r.Kind == databend.Stream && r.Attempt == 1 {
			fault.Hold = hold
		}
		return fault
	})
	s.makeTable(t)
	first := make(chan answer)
	go func() {
		_, a := s.load(t, "l", "1,a\n2,b\n")
		first <- a
	}()
	require.Eventually(t, func() bool { return len(f.Running()) == 1 }, 10*time.Second, time.Millisecond)
	_, a := s.load(t, "l", "1,a\n2,b\n")
	require.EqualValues(t, 2, a.Stats.Rows)
	close(hold)
	require.EqualValues(t, 2, (<-first).Stats.Rows)
	require.Equal(t, "4", s.count(t))
}

// A connection that breaks in the middle of a row commits those before it.
func TestAConnectionThatBreaks(t *testing.T) {
	f, s := start(t, nil)
	s.makeTable(t)
	header, whole := form("1,a\n2,b\n3,\"c\nc\"\n", map[string]string{
		"X-Databend-Sql": "INSERT INTO " + s.table + " (`id`, `s`) FROM @_databend_load" + format,
	})
	r, w := io.Pipe()
	go func() {
		_, _ = w.Write(whole[:bytes.Index(whole, []byte("\nc\""))+1])
		_ = w.CloseWithError(io.ErrClosedPipe)
	}()
	status, _ := s.do(t, http.MethodPut, "/v1/streaming_load", header, r)
	require.Zero(t, status)
	require.Eventually(t, func() bool { return len(f.Rows(strings.ReplaceAll(s.table, "`", ""))) == 2 }, 10*time.Second, time.Millisecond)
}

// The front end does as Databend's own client expects of a server.
func TestOfficialPythonClient(t *testing.T) {
	python, dsn := backendtest.Server(t, "TERAPUSH_TEST_DATABEND_PYTHON"), backendtest.Server(t, "TERAPUSH_TEST_DATABEND")
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	s := server{"http://" + u.Host, "t_" + strings.ToLower(rand.Text())}
	s.makeTable(t)
	dsn = strings.Replace(dsn, "root@", "root:@", 1)
	out, err := exec.CommandContext(t.Context(), python, "testdata/driver.py", dsn, s.table, t.TempDir()).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
