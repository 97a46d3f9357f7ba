package databend

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// fake is a server whose answers a test writes down. It keeps what it was asked.
type fake struct {
	*httptest.Server
	mu     sync.Mutex
	seen   []seen
	sql    map[string]func(seen) string // answers to statements by what they begin with; the longest beginning wins
	routes map[string]http.HandlerFunc  // of other paths; 404 without one
}

// missingSQL is the answer to a streaming load without a statement, by which a server is known to have them.
const missingSQL = `{"error":{"code":400,"message":"Missing required header X-DATABEND-SQL in request"}}`

// seen is one request as it came, without its body unless it is SQL.
type seen struct {
	path   string
	header http.Header
	query  queryRequest
}

func newFake(t *testing.T) *fake {
	f := &fake{sql: make(map[string]func(seen) string), routes: make(map[string]http.HandlerFunc)}
	for begin, answer := range map[string]string{
		"SELECT version()":                        result([]any{"Databend Query v1.2.900"}),
		"SELECT name, value FROM system.settings": result([]any{"max_threads", "4"}),
		selectMaxRunning:                          result([]any{"8"}),
		"SELECT table_id":                         result([]any{"7", "FUSE", loader.MadeBy}),
		"SELECT name, data_type":                  result([]any{"id", "BIGINT", "0"}, []any{"s", "VARCHAR", "0"}),
		"SELECT 1 FROM":                           result(),
		"SELECT id FROM system.processes":         result(),
		"CREATE TABLE":                            result(),
		"REMOVE":                                  result(),
		"DROP STAGE":                              result(),
	} {
		f.on(begin, answer)
	}
	f.streams(http.StatusBadRequest, missingSQL)
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

// result is the answer of a query that has ended, with its rows.
func result(rows ...[]any) string {
	data, _ := json.Marshal(append([][]any{}, rows...))
	return fmt.Sprintf(`{"id":"q","node_id":"n1","state":"Succeeded","error":null,"data":%s,`+
		`"stats":{"write_progress":{"rows":0,"bytes":0}},"final_uri":"/v1/query/q/final","next_uri":null}`, data)
}

// wrote is the answer of a statement that wrote rows.
func wrote(n int64) string {
	return fmt.Sprintf(`{"id":"q","state":"Succeeded","data":[],"stats":{"write_progress":{"rows":%d,"bytes":1}},"next_uri":null}`, n)
}

func failure(code int, message string) string {
	text, _ := json.Marshal(message)
	return fmt.Sprintf(`{"id":"q","state":"Failed","error":{"code":%d,"message":%s},"data":[],"next_uri":null}`, code, text)
}

// streamed is the answer of a streaming load.
func streamed(rows int) string { return fmt.Sprintf(`{"id":"x","stats":{"rows":%d,"bytes":15}}`, rows) }

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	s := seen{path: r.URL.Path, header: r.Header}
	isQuery := r.URL.Path == "/v1/query"
	if isQuery {
		_ = json.NewDecoder(r.Body).Decode(&s.query)
	}
	f.mu.Lock()
	f.seen = append(f.seen, s)
	best := ""
	for begin := range f.sql {
		if strings.HasPrefix(s.query.SQL, begin) && len(begin) > len(best) {
			best = begin
		}
	}
	answer, route := f.sql[best], f.routes[r.URL.Path]
	f.mu.Unlock()
	switch {
	case isQuery && answer != nil:
		_, _ = io.WriteString(w, answer(s))
	case isQuery:
		_, _ = io.WriteString(w, failure(1005, "the test has no answer to "+s.query.SQL))
	case route != nil:
		route(w, r)
	default:
		http.NotFound(w, r)
	}
}

// on sets the answer to statements, call what gives it.
func (f *fake) on(begin, answer string) { f.call(begin, func(seen) string { return answer }) }

func (f *fake) call(begin string, answer func(seen) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sql[begin] = answer
}

// streams sets the answer to streaming loads.
func (f *fake) streams(status int, body string) {
	f.routes["/v1/streaming_load"] = func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// asked lists the requests of which path, or statement, begins so.
func (f *fake) asked(begin string) (all []seen) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.seen {
		if strings.HasPrefix(s.path, begin) || strings.HasPrefix(s.query.SQL, begin) {
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

// openTarget opens a loader for the time of the test.
func openTarget(t *testing.T, target loader.Target) *opened {
	t.Helper()
	return backendtest.Open(t, New(), target, backendtest.Deps()).(*opened)
}

// open opens the table and one session of the method.
func (f *fake) open(t *testing.T, method string, change ...func(*loader.Target)) (*opened, loader.Session) {
	t.Helper()
	target := f.target(method)
	for _, c := range change {
		c(&target)
	}
	db := openTarget(t, target)
	_, err := db.Prepare(t.Context(), preparation(method))
	require.NoError(t, err)
	return db, newSession(t, db, method)
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

const threeRows = "6,a\n7,b\n8,\"\"\n"

// testBatch is batch 2 of run r-1, with rows 6 to 8.
func testBatch(attempt int) *batch.Batch {
	b := &batch.Batch{
		ID: batch.ID{Run: "r-1", Number: 2}, Format: batch.CSV, First: 6, Rows: 3, Attempt: attempt, Encoded: []byte(threeRows),
	}
	b.Hold()
	return b
}

// readForm reads the part of a multipart body that is called upload: file name and content.
func readForm(r *http.Request) (name, content string, err error) {
	part, head, err := r.FormFile("upload")
	if err != nil {
		return "", "", err
	}
	text, err := io.ReadAll(part)
	return head.Filename, string(text), err
}
