package databend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/terapush/terapush/internal/httpload"
)

// statement is one SQL statement for /v1/query.
type statement struct {
	sql string
	marks
	attachment *attachment
	pageRows   int64 // most rows of the result in one answer; 0: the server's default of 10,000
}

// marks are what makes a statement findable: see marks.go. Without them the server makes up an id of its own.
type marks struct{ label, queryID string }

func (m marks) set(h http.Header) {
	if m.label != "" {
		h.Set("X-DATABEND-DEDUPLICATE-LABEL", m.label)
	}
	if m.queryID != "" {
		h.Set("X-DATABEND-QUERY-ID", m.queryID)
	}
}

// queryRequest asks for a statement. It is what of the protocol is used here; see the package's comment for why it is
// not the official driver's.
type queryRequest struct {
	SQL        string          `json:"sql"`
	Session    json.RawMessage `json:"session"`
	Pagination struct {
		MaxRows int64 `json:"max_rows_per_page,omitempty"`
	} `json:"pagination"`
	Attachment *attachment `json:"stage_attachment,omitempty"`
}

// attachment is a file whose rows are the values of an INSERT.
type attachment struct {
	Location string            `json:"location"`
	Format   map[string]string `json:"file_format_options"`
	Copy     map[string]string `json:"copy_options"`
}

// sessionState is what a request brings along, since nothing is kept on the server.
type sessionState struct {
	Database       string            `json:"database"`
	Role           string            `json:"role,omitempty"`
	SecondaryRoles *[]string         `json:"secondary_roles,omitempty"` // empty: the role named and no other
	Settings       map[string]string `json:"settings"`
}

// queryPage is one answer about a statement.
type queryPage struct {
	Node  string       `json:"node_id"`
	State string       `json:"state"`
	Error *serverWords `json:"error"`
	Data  [][]*string  `json:"data"` // nil is NULL
	Stats *struct {
		Written struct {
			Rows int64 `json:"rows"`
		} `json:"write_progress"`
	} `json:"stats"`
	Next  string `json:"next_uri"`
	Final string `json:"final_uri"`
}

// last reports whether there is nothing more to come: the end of the pages is none.
func (p *queryPage) last() bool { return p.Next == "" || strings.HasSuffix(p.Next, "/final") }

func (p *queryPage) rows(each func(row [][]byte) error) error {
	for _, values := range p.Data {
		row := make([][]byte, len(values))
		for i, v := range values {
			if v != nil {
				row[i] = []byte(*v)
			}
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

// run sends a statement, calls each for every row of its result, until that returns an error, and returns how many rows
// the server says it wrote. A nil value is NULL; each may be nil.
func (n *node) run(ctx context.Context, s statement, each func(row [][]byte) error) (written int64, err error) {
	page, err := n.start(ctx, s)
	for {
		if err != nil {
			return written, err
		}
		if page.Stats != nil {
			written = page.Stats.Written.Rows
		}
		if each != nil {
			if err := page.rows(each); err != nil {
				return written, err
			}
		}
		if page.last() {
			break
		}
		page, err = n.page(ctx, page)
	}
	// The server lets go of the result at once instead of after a minute. Its answer means nothing.
	if page.Final != "" {
		if r, err := n.request(ctx, http.MethodGet, page.Final); err == nil {
			_, _ = n.http.Do(r)
		}
	}
	return written, nil
}

func (n *node) start(ctx context.Context, s statement) (*queryPage, error) {
	request := queryRequest{SQL: s.sql, Session: n.login.session, Attachment: s.attachment}
	request.Pagination.MaxRows = s.pageRows
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	r, err := n.request(ctx, http.MethodPost, "/v1/query")
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	s.set(r.Header)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return n.answer(r)
}

// lostError is the end of the answers about a statement that was running: the server may refuse to say more, because of
// a limit, a password that was changed or a balancer that asks another node, and still finish the statement.
type lostError struct{ cause error }

func (e *lostError) Error() string {
	return "the statement was running, and what became of it cannot be asked: " + e.cause.Error()
}

func (e *lostError) Unwrap() error { return e.cause }

// page asks for what comes next. Only the node that runs the query knows it, and a balancer may lie in between. An
// error of the statement itself is a serverError as from start, everything else a lostError.
func (n *node) page(ctx context.Context, last *queryPage) (*queryPage, error) {
	r, err := n.request(ctx, http.MethodGet, last.Next)
	if err != nil {
		return nil, &lostError{err}
	}
	if last.Node != "" {
		r.Header.Set("X-DATABEND-STICKY-NODE", last.Node)
	}
	next, err := n.answer(r)
	var ended *serverError
	switch {
	case errors.As(err, &ended) && ended.status == http.StatusOK:
		return nil, err
	case err != nil:
		return nil, &lostError{err}
	case next.Node == "":
		next.Node = last.Node
	}
	return next, nil
}

// answer sends a request of the query protocol. A statement that fails is a status 200 with an error inside.
func (n *node) answer(r *http.Request) (*queryPage, error) {
	answer, err := n.http.Do(r)
	if err != nil {
		return nil, err
	}
	page := new(queryPage)
	if err := read(answer, page); err != nil {
		return nil, err
	}
	if page.Error != nil {
		return nil, &serverError{status: http.StatusOK, code: page.Error.Code, message: page.Error.said()}
	}
	if page.State == "Failed" {
		return nil, &serverError{status: http.StatusOK, message: "the query failed, and the server does not say why"}
	}
	return page, nil
}

// read reads the JSON of an answer, or the error that it is.
func read(answer *httpload.Response, into any) error {
	if answer.Status != http.StatusOK {
		return refusal(answer)
	}
	if err := json.Unmarshal(answer.Body, into); err != nil {
		return &unreadableError{err}
	}
	return nil
}

// serverWords is how the server describes an error.
type serverWords struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// said is the message without the stack of the server's own functions, which its storage errors end with: forty lines
// that say nothing to whoever reads the others.
func (w serverWords) said() string {
	said, _, _ := strings.Cut(w.Message, "\n\nBacktrace:")
	return strings.TrimSpace(said)
}

// maxWords is how much of an answer an error repeats, in bytes.
const maxWords = 2000

// refusal is the error of an answer with another status than 200: {"error":{"code":…,"message":…}}, or anything at all
// when a proxy made it.
func refusal(r *httpload.Response) error {
	var body struct {
		Error serverWords `json:"error"`
	}
	e := &serverError{status: r.Status}
	if json.Unmarshal(r.Body, &body) == nil && body.Error.Message != "" {
		e.message = body.Error.said()
		if body.Error.Code != r.Status { // a streaming load repeats the status there
			e.code = body.Error.Code
		}
		return e
	}
	if e.message = strings.TrimSpace(string(r.Body)); len(e.message) > maxWords {
		e.message = strings.ToValidUTF8(e.message[:maxWords], "") + "…"
	}
	return e
}
