// Package databend is a sink that takes what terapush sends Databend over HTTP: streaming loads, and files for a stage,
// whether uploaded through the node or to a presigned URL, which COPY INTO or INSERT load later.
//
//   - Rows lie in a text as its FILE_FORMAT says; empty lines of CSV and NDJSON are none. Files in a stage are counted
//     as they come, by the ends of their names: .csv with commas, double quotes and line feeds, .ndjson, .tsv or
//     .parquet. A statement that loads them as anything else is refused.
//   - Bytes of a file in a stage are counted when it is uploaded, its rows when a statement loads them.
//   - Names and rows of files are remembered until they are removed. A COPY that names another one fails.
//   - Labels are not remembered, nor which files were loaded, so the same one loads twice; nor are tables, transactions
//     or sessions. A question about them has an empty result.
//   - A streaming load is taken without a statement too, as lines.
//   - INSERT with rows in its text, forms of several files, and COPY that chooses among files or rows are refused.
package databend

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/terapush/terapush/internal/sink"
)

// version of Databend that the sink is like.
const version = "v1.2.895"

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) {
	return sink.ListenHTTP(addr, o, new(node).serve)
}

// node is what all connections share.
type node struct {
	queries atomic.Int64      // so far
	files   sink.Shelf[*file] // in stages, by stage/path
}

// request is one request.
type request struct {
	*http.Request
	conn *sink.Conn
	node *node
}

// Codes of errors (databend, src/common/exception/src/exception_code.rs).
const (
	codeUnimplemented = 1002
	codeSyntax        = 1005
	codeBadBytes      = 1046
	codeFileMissing   = 3001
)

// queryError is an error of Databend's protocol.
type queryError struct {
	status, code int
	message      string
}

func (e *queryError) Error() string { return e.message }

func failed(code int, message string) error {
	return &queryError{http.StatusBadRequest, code, "terapush sink: " + message}
}

// loadError is the error of a load: for one that was told to fail what a full node answers, of which nothing was begun.
func loadError(err error) error {
	if errors.Is(err, sink.ErrTold) {
		const status = http.StatusTooManyRequests
		return &queryError{status, status, "Failed to upgrade session: " + err.Error()}
	}
	return failed(codeBadBytes, err.Error())
}

func (n *node) serve(c *sink.Conn, hr *http.Request) sink.Answer {
	r := &request{hr, c, n}
	if strings.HasPrefix(r.URL.Path, presigned) && r.Method == http.MethodPut {
		return r.putPresigned()
	}
	value, err := r.route()
	if err == nil {
		return sink.AnswerJSON(http.StatusOK, value)
	}
	e := &queryError{status: http.StatusBadRequest, code: codeBadBytes, message: err.Error()}
	errors.As(err, &e)
	return sink.AnswerJSON(e.status, map[string]any{"error": map[string]any{"code": e.code, "message": e.message}})
}

func (r *request) route() (any, error) {
	switch r.Method + " " + r.URL.Path {
	case "POST /v1/query":
		return r.query()
	case "PUT /v1/streaming_load":
		return r.streamingLoad()
	case "PUT /v1/upload_to_stage":
		return r.uploadToStage()
	}
	message := "terapush sink: there is no " + r.Method + " " + r.URL.Path
	return nil, &queryError{http.StatusNotFound, http.StatusNotFound, message}
}

// id returns that of a statement: the client's, or a new one.
func (r *request) id() string {
	return cmp.Or(r.Header.Get("X-Databend-Query-Id"), "sink-"+strconv.FormatInt(r.node.queries.Add(1), 10))
}

// maxQuery bounds a request for a statement, in bytes.
const maxQuery = 1 << 20

// question is what the body of a query asks.
type question struct {
	SQL        string `json:"sql"`
	Attachment *struct {
		Location string            `json:"location"`
		Format   map[string]string `json:"file_format_options"`
	} `json:"stage_attachment"`
	Session json.RawMessage `json:"session"`
}

// query answers a statement in one page: there are no addresses to ask for more.
func (r *request) query() (any, error) {
	var q question
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxQuery)).Decode(&q); err != nil {
		return nil, failed(http.StatusBadRequest, "the question cannot be read: "+err.Error())
	}
	out, err := r.run(q)
	answer := map[string]any{
		"id": r.id(), "session": q.Session, "schema": out.columns, "data": out.rows, "state": "Succeeded", "error": nil,
		"stats": map[string]any{"write_progress": map[string]int64{"rows": out.written}},
	}
	if err != nil {
		e := &queryError{code: codeBadBytes, message: err.Error()}
		errors.As(err, &e)
		answer["state"], answer["error"] = "Failed", map[string]any{"code": e.code, "message": e.message}
	}
	return answer, nil
}

// result is what a statement comes to.
type result struct {
	columns []column
	rows    [][]string
	written int64
}

type column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// table makes a result of texts.
func table(columns []string, rows ...[]string) result {
	r := result{columns: []column{}, rows: append([][]string{}, rows...)} // JSON has [] for none
	for _, name := range columns {
		r.columns = append(r.columns, column{name, "String"})
	}
	return r
}

func (r *request) run(q question) (result, error) {
	statements := sink.Split(q.SQL, sink.Backslash)
	if len(statements) != 1 {
		return table(nil), failed(codeSyntax, "one statement is expected")
	}
	s := statements[0]
	switch s.Verb {
	case "INSERT", "REPLACE":
		return r.insert(q)
	case "COPY":
		return r.copyInto(s.Text)
	case "PRESIGN":
		return r.presign(s.Text)
	case "LIST", "REMOVE":
		return r.stageFiles(s.Verb, s.Text)
	case "SELECT":
		return r.selects(s)
	}
	if why := s.Refusal(); why != "" {
		return table(nil), failed(codeUnimplemented, why)
	}
	// There are no tables: what makes or changes them is agreed to, and what asks about them has no rows.
	return table(nil), nil
}

// maxRunning is the number of queries at a time that the sink announces: high enough that it limits no measurement.
const maxRunning = "1024"

func (r *request) selects(s sink.Statement) (result, error) {
	if strings.Contains(s.Text, "system.configs") && strings.HasSuffix(s.Text, "'max_running_queries'") {
		return table([]string{"value"}, []string{maxRunning}), nil
	}
	switch item := s.Item(); item {
	case "":
		return table(nil), nil
	case "version()":
		return table([]string{item}, []string{"Databend Query " + version + "-" + r.conn.Options.Name()}), nil
	default:
		return table(nil), failed(codeSyntax, "what is '"+item+"'?")
	}
}
