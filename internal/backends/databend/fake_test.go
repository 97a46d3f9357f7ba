package databend

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// fake is a server whose answers a test writes down. It keeps what it was asked.
type fake struct {
	*httptest.Server
	mu   sync.Mutex
	seen []seen
	// sql answers statements by what they begin with; the longest beginning wins.
	sql map[string]func(seen) string
	// routes answer other paths. What is not there is a 404.
	routes map[string]http.HandlerFunc
}

// seen is one request as it came, without its body unless it is SQL.
type seen struct {
	method, path string
	header       http.Header
	sql          string
	attachment   map[string]any
	session      map[string]any
	pageRows     int64
}

func newFake(t *testing.T) *fake {
	f := &fake{routes: make(map[string]http.HandlerFunc)}
	f.sql = map[string]func(seen) string{
		"SELECT version()":                        say(result([]any{"Databend Query v1.2.900"})),
		"SELECT name, value FROM system.settings": say(result([]any{"max_threads", "4"})),
		selectMaxRunning:                          say(result([]any{"8"})),
		"SELECT table_id":                         say(result([]any{"7", "FUSE", loader.MadeBy})),
		"SELECT name, data_type":                  say(result([]any{"id", "BIGINT", "0"}, []any{"s", "VARCHAR", "0"})),
		"SELECT 1 FROM":                           say(result()),
		"SELECT id FROM system.processes":         say(result()),
		"CREATE TABLE":                            say(result()),
		"REMOVE":                                  say(result()),
		"DROP STAGE":                              say(result()),
	}
	f.routes["/v1/streaming_load"] = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"code":400,"message":"Missing required header X-DATABEND-SQL in request"}}`)
	}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func say(body string) func(seen) string { return func(seen) string { return body } }

// result is the answer of a query that is done, with its rows.
func result(rows ...[]any) string {
	data, _ := json.Marshal(append([][]any{}, rows...))
	return fmt.Sprintf(`{"id":"q","node_id":"n1","state":"Succeeded","error":null,"data":%s,`+
		`"stats":{"write_progress":{"rows":0,"bytes":0}},"final_uri":"/v1/query/q/final","next_uri":null}`, data)
}

// wrote is the answer of a statement that wrote rows.
func wrote(n int64) string {
	return fmt.Sprintf(`{"id":"q","state":"Succeeded","error":null,"data":[],"stats":{"write_progress":{"rows":%d,"bytes":1}},"next_uri":null}`, n)
}

func failure(code int, message string) string {
	text, _ := json.Marshal(message)
	return fmt.Sprintf(`{"id":"q","state":"Failed","error":{"code":%d,"message":%s},"data":[],"next_uri":null}`, code, text)
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	s := seen{method: r.Method, path: r.URL.Path, header: r.Header}
	if r.URL.Path != "/v1/query" {
		f.note(s)
		if route, found := f.routes[r.URL.Path]; found {
			route(w, r)
			return
		}
		http.Error(w, `{"error":{"code":404,"message":"not found"}}`, http.StatusNotFound)
		return
	}
	var body struct {
		SQL        string         `json:"sql"`
		Session    map[string]any `json:"session"`
		Attachment map[string]any `json:"stage_attachment"`
		Pagination struct {
			Rows int64 `json:"max_rows_per_page"`
		} `json:"pagination"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.sql, s.session, s.attachment, s.pageRows = body.SQL, body.Session, body.Attachment, body.Pagination.Rows
	f.note(s)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, f.answer(s))
}

func (f *fake) note(s seen) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, s)
}

func (f *fake) answer(s seen) string {
	f.mu.Lock()
	var best string
	for begin := range f.sql {
		if strings.HasPrefix(s.sql, begin) && len(begin) > len(best) {
			best = begin
		}
	}
	answer := f.sql[best]
	f.mu.Unlock()
	if answer == nil {
		return failure(1005, "the test has no answer to "+s.sql)
	}
	return answer(s)
}

// on sets the answer to statements.
func (f *fake) on(begin string, answer func(seen) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sql[begin] = answer
}

// asked lists the requests of which path, or statement, begins so.
func (f *fake) asked(begin string) (all []seen) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.seen {
		if strings.HasPrefix(s.path, begin) && s.sql == "" || s.sql != "" && strings.HasPrefix(s.sql, begin) {
			all = append(all, s)
		}
	}
	return all
}

func (f *fake) target(method string) loader.Target {
	return loader.Target{
		Scheme: "databend", Hosts: []string{strings.TrimPrefix(f.URL, "http://")}, User: "root", Password: "hidden-password",
		Database: "db", Table: "t", Method: method, TLS: loader.TLSOff,
	}
}

func testDeps() loader.Deps {
	return loader.Deps{Dial: new(netio.Dialer).DialContext, TLS: netio.Trust{}.TLS, Log: slog.New(slog.DiscardHandler)}
}

func testSchema() rows.Schema {
	return rows.Schema{
		Dataset: "test",
		Columns: []rows.Column{{Name: "id", Type: rows.Int64, Derived: true}, {Name: "s", Type: rows.Text, MaxBytes: 10}},
		Number:  []rows.Term{{Column: 0, Times: 1}},
	}
}

func contractOf(method string) loader.Contract {
	m, _ := loader.FindMethod(New(), method)
	c := loader.Contract{Method: method, Format: batch.CSV, Delivery: loader.ExactlyOnce, Dedup: loader.DedupKey, BatchRows: 3}
	if m.Caps.Staged {
		c.GroupBatches, c.Commits = 2, 1
	}
	return c
}

func preparation(method string) loader.Preparation {
	return loader.Preparation{Run: "r-1", Schema: testSchema(), Contract: contractOf(method), Create: loader.CreateIfMissing}
}

// open opens the table and one session of the method.
func (f *fake) open(t *testing.T, method string, change ...func(*loader.Target)) (*opened, loader.Session) {
	t.Helper()
	target := f.target(method)
	for _, c := range change {
		c(&target)
	}
	l, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, err = l.Prepare(t.Context(), preparation(method))
	require.NoError(t, err)
	s, err := l.Session(t.Context(), contractOf(method))
	require.NoError(t, err)
	return l.(*opened), s
}

const threeRows = "6,a\n7,b\n8,\"\"\n"

// testBatch is batch 2 of run r-1, with rows 6 to 8.
func testBatch(attempt int) *batch.Batch {
	b := &batch.Batch{
		ID: batch.ID{Run: "r-1", Number: 2}, Format: batch.CSV, First: 6, Rows: 3, Attempt: attempt, Encoded: []byte(threeRows),
	}
	b.Hold()
	return b
}

// form reads a multipart body: the only part's name, file name and content.
func readForm(r *http.Request) (name, file, content string, err error) {
	parts, err := r.MultipartReader()
	if err != nil {
		return "", "", "", err
	}
	part, err := parts.NextPart()
	if err != nil {
		return "", "", "", err
	}
	var text bytes.Buffer
	if _, err = io.Copy(&text, part); err != nil {
		return "", "", "", err
	}
	if _, err = parts.NextPart(); !errors.Is(err, io.EOF) {
		return "", "", "", fmt.Errorf("behind the first part: %w", err)
	}
	return part.FormName(), part.FileName(), text.String(), nil
}
