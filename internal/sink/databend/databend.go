// Package databend is a sink that takes what Databend takes over HTTP: streaming loads, files for a stage, whether
// uploaded through the node or to a presigned URL, and INSERT with values. COPY INTO and INSERT of files in a stage
// answer with the rows that were counted when the file came.
//
//   - Rows lie in a text as its FILE_FORMAT says; empty lines of CSV and NDJSON are none. Files in a stage are counted
//     before that is known, so a COPY of CSV with other quotes, separators, escapes or line ends than the usual is refused.
//   - INSERT … SELECT is refused: there is nothing to select from.
//   - Bytes of a file in a stage are counted when it is uploaded, its rows when a statement loads them.
//   - Names and rows of the last 10,000 files are remembered. A COPY that names another one fails.
//   - Labels are not remembered, nor which files were loaded, so the same one loads twice; nor are tables, transactions or sessions. A question about
//     them has an empty result.
//   - A streaming load is taken without a statement too, as lines.
package databend

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/web"
)

// version of Databend that the sink is like.
const version = "v1.2.895"

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) {
	return sink.Listen(addr, o, web.Talk((&node{}).serve))
}

// node is what all connections share.
type node struct {
	files   files
	queries atomic.Int64 // so far
}

// request is one request.
type request struct {
	*web.Exchange
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

// refusal is an error of Databend's protocol.
type refusal struct {
	status, code int
	message      string
}

func (r *refusal) Error() string { return r.message }

func refuse(code int, message string) error {
	return &refusal{http.StatusBadRequest, code, "terapush sink: " + message}
}

func (n *node) serve(x *web.Exchange) error {
	r := &request{x, n}
	err := r.route()
	var said *refusal
	if errors.As(err, &said) {
		return r.json(said.status, map[string]any{"error": map[string]any{"code": said.code, "message": said.message}})
	}
	return err
}

func (r *request) route() error {
	if strings.HasPrefix(r.URL.Path, presigned) && r.Method == http.MethodPut {
		return r.putPresigned()
	}
	if !r.Password() {
		return &refusal{http.StatusUnauthorized, codeAuthentication, "AuthenticateFailure: wrong password"}
	}
	switch r.Method + " " + r.URL.Path {
	case "POST /v1/query":
		return r.query()
	case "PUT /v1/streaming_load":
		return r.streamingLoad()
	case "PUT /v1/upload_to_stage":
		return r.uploadToStage()
	case "POST /v1/session/login":
		return r.json(http.StatusOK, map[string]string{"version": r.version(), "session_id": r.id()})
	case "POST /v1/session/logout":
		return r.json(http.StatusOK, struct{}{})
	case "POST /v1/session/heartbeat":
		return r.json(http.StatusOK, map[string][]string{"queries_to_remove": {}})
	case "POST /v1/verify", "GET /v1/verify":
		return r.verify()
	case "GET /v1/health":
		return r.json(http.StatusOK, map[string]string{"status": "pass"})
	}
	return &refusal{http.StatusNotFound, http.StatusNotFound, "terapush sink: there is no " + r.Method + " " + r.URL.Path}
}

func (r *request) verify() error {
	tenant := r.Header.Get("X-Databend-Tenant")
	if tenant == "" {
		tenant = "default"
	}
	return r.json(http.StatusOK, map[string]any{"tenant": tenant, "user": r.User(), "roles": []string{}})
}

func (r *request) version() string {
	return "Databend Query " + version + "-" + r.Stream.Options.Name()
}

// id returns that of a statement: the client's, or a new one.
func (r *request) id() string {
	if id := r.Header.Get("X-Databend-Query-Id"); id != "" {
		return id
	}
	return "sink-" + strconv.FormatInt(r.node.queries.Add(1), 10)
}

func (r *request) json(status int, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return r.Answer(status, "application/json; charset=utf-8", text)
}

// injected returns the error of a load that has to fail. A node that is full answers so, and nothing was begun.
func injected() error {
	return &refusal{http.StatusTooManyRequests, http.StatusTooManyRequests, "Failed to upgrade session: " + sink.ErrTold.Error()}
}
