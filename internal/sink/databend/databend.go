// Package databend is a sink that takes what Databend takes over HTTP: streaming loads, files for a stage, whether
// uploaded through the node or to a presigned URL, and INSERT with values. COPY INTO and INSERT of files in a stage
// answer with the rows that were counted when the file came.
//
//   - Rows lie in a text as its FILE_FORMAT says; empty lines of CSV and NDJSON are none. Files in a stage are counted
//     before that is known, so a COPY of CSV with other quotes, separators, escapes or line ends than the usual is refused.
//   - INSERT … SELECT is refused: there is nothing to select from.
//   - Bytes of a file in a stage are counted when it is uploaded, its rows when a statement loads them.
//   - Names and rows of the last 10,000 files are remembered. A COPY that names another one fails.
//   - Labels are not remembered, nor which files were loaded, so the same one loads twice; nor are tables, transactions or
//     sessions. A question about them has an empty result.
//   - A streaming load is taken without a statement too, as lines.
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
	files   sink.Recent[*file] // by stage/path
	queries atomic.Int64       // so far
}

// request is one request.
type request struct {
	*http.Request
	conn *sink.Conn
	node *node
}

// Codes of errors (databend, src/common/exception/src/exception_code.rs).
const (
	codeUnimplemented  = 1002
	codeSyntax         = 1005
	codeBadBytes       = 1046
	codeNoResources    = 2404
	codeFileMissing    = 3001
	codeAuthentication = 5100
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
		return &queryError{http.StatusTooManyRequests, http.StatusTooManyRequests, "Failed to upgrade session: " + err.Error()}
	}
	return failed(codeBadBytes, err.Error())
}

func (n *node) serve(c *sink.Conn, hr *http.Request) sink.Answer {
	r := &request{hr, c, n}
	if strings.HasPrefix(r.URL.Path, presigned) && r.Method == http.MethodPut {
		return r.putPresigned()
	}
	value, err := r.route()
	if err != nil {
		e := &queryError{status: http.StatusBadRequest, code: codeBadBytes, message: err.Error()}
		errors.As(err, &e)
		return sink.AnswerJSON(e.status, map[string]any{"error": map[string]any{"code": e.code, "message": e.message}})
	}
	return sink.AnswerJSON(http.StatusOK, value)
}

func (r *request) route() (any, error) {
	if !r.conn.KnowsPassword(r.Request) {
		return nil, &queryError{http.StatusUnauthorized, codeAuthentication, "AuthenticateFailure: wrong password"}
	}
	switch r.Method + " " + r.URL.Path {
	case "POST /v1/query":
		return r.query()
	case "PUT /v1/streaming_load":
		return r.streamingLoad()
	case "PUT /v1/upload_to_stage":
		return r.uploadToStage()
	case "POST /v1/session/login":
		return map[string]string{"version": r.version(), "session_id": r.id()}, nil
	case "POST /v1/session/logout":
		return struct{}{}, nil
	case "POST /v1/session/heartbeat":
		return map[string][]string{"queries_to_remove": {}}, nil
	case "POST /v1/verify", "GET /v1/verify":
		tenant := cmp.Or(r.Header.Get("X-Databend-Tenant"), "default")
		return map[string]any{"tenant": tenant, "user": r.user(), "roles": []string{}}, nil
	case "GET /v1/health":
		return map[string]string{"status": "pass"}, nil
	}
	return nil, &queryError{http.StatusNotFound, http.StatusNotFound, "terapush sink: there is no " + r.Method + " " + r.URL.Path}
}

func (r *request) version() string { return "Databend Query " + version + "-" + r.conn.Options.Name() }

// user returns the name that the client gave.
func (r *request) user() string {
	name, _, _ := r.BasicAuth()
	return name
}

// id returns that of a statement: the client's, or a new one.
func (r *request) id() string {
	return cmp.Or(r.Header.Get("X-Databend-Query-Id"), "sink-"+strconv.FormatInt(r.node.queries.Add(1), 10))
}

// maxQuery bounds a request for a statement, in bytes.
const maxQuery = 256 << 20

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
		"id": r.id(), "node_id": "sink", "session_id": "", "session": q.Session, "schema": out.columns, "data": out.rows, "state": "Succeeded",
		"error": nil, "affect": nil, "warnings": []string{}, "stats_uri": nil, "final_uri": nil, "next_uri": nil, "kill_uri": nil,
		"stats": map[string]any{
			"scan_progress": progress{}, "write_progress": progress{Rows: out.written}, "result_progress": progress{Rows: int64(len(out.rows))},
			"total_scan": progress{}, "running_time_ms": 0.0,
		},
	}
	if err != nil {
		e := &queryError{code: codeBadBytes, message: err.Error()}
		errors.As(err, &e)
		answer["state"], answer["error"] = "Failed", map[string]any{"code": e.code, "message": e.message, "detail": ""}
		answer["schema"], answer["data"] = []column{}, [][]*string{}
	}
	return answer, nil
}

// progress is how far a part of a query has come.
type progress struct {
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}
