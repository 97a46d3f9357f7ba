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
	tags
	attachment *attachment
	pageRows   int64 // most rows in one answer; 0: the server's default of 10,000
}

// queryRequest is the part of the protocol that is used here.
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

// sessionState is sent with every request: the server keeps none.
type sessionState struct {
	Database       string            `json:"database"`
	Role           string            `json:"role,omitempty"`
	SecondaryRoles *[]string         `json:"secondary_roles,omitempty"` // empty: only Role
	Settings       map[string]string `json:"settings"`
}

// queryPage is one answer about a statement.
type queryPage struct {
	Node  string      `json:"node_id"`
	State string      `json:"state"`
	Error *wireError  `json:"error"`
	Data  [][]*string `json:"data"` // nil is NULL
	Stats struct {
		Written struct {
			Rows int64 `json:"rows"`
		} `json:"write_progress"`
	} `json:"stats"`
	Next  string `json:"next_uri"`
	Final string `json:"final_uri"`
}

// run sends a statement, calls each for every row of the result until it returns an error, and returns the number of
// rows that the server has written. A nil value is NULL; each may be nil.
func (n *endpoint) run(ctx context.Context, s statement, each func(row [][]byte) error) (written int64, err error) {
	page, err := n.start(ctx, s)
	for {
		if err != nil {
			return written, err
		}
		written = max(written, page.Stats.Written.Rows)
		for _, values := range page.Data {
			if each == nil {
				break
			}
			row := make([][]byte, len(values))
			for i, v := range values {
				if v != nil {
					row[i] = []byte(*v)
				}
			}
			if err := each(row); err != nil {
				return written, err
			}
		}
		if page.Next == "" || strings.HasSuffix(page.Next, "/final") {
			break
		}
		page, err = n.nextPage(ctx, page)
	}
	if page.Final != "" { // the server frees the result now, not after a minute; its answer means nothing
		if r, err := n.request(ctx, http.MethodGet, page.Final); err == nil {
			_, _ = n.http.Do(r)
		}
	}
	return written, nil
}

func (n *endpoint) start(ctx context.Context, s statement) (*queryPage, error) {
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
	return n.query(r)
}

// lostError says that a running statement cannot be followed: the server refuses to answer, because of a limit, a
// changed password or a balancer that asks another node, and may still finish the statement.
type lostError struct{ cause error }

func (e *lostError) Error() string {
	return "the statement was running, and its outcome cannot be asked for: " + e.cause.Error()
}

func (e *lostError) Unwrap() error { return e.cause }

// nextPage returns the next answer, from the node that runs the query, which a balancer may hide. An error of the
// statement is a serverError, as from start; every other error is a lostError.
func (n *endpoint) nextPage(ctx context.Context, last *queryPage) (*queryPage, error) {
	r, err := n.request(ctx, http.MethodGet, last.Next)
	if err != nil {
		return nil, &lostError{err}
	}
	if last.Node != "" {
		r.Header.Set("X-DATABEND-STICKY-NODE", last.Node)
	}
	next, err := n.query(r)
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

// query sends a request of the query protocol. A failed statement is a status 200 with an error inside.
func (n *endpoint) query(r *http.Request) (*queryPage, error) {
	answer, err := n.http.Do(r)
	if err != nil {
		return nil, err
	}
	page := new(queryPage)
	if err := parse(answer, page); err != nil {
		return nil, err
	}
	if page.Error != nil {
		return nil, &serverError{status: http.StatusOK, code: page.Error.Code, message: page.Error.text()}
	}
	if page.State == "Failed" {
		return nil, &serverError{status: http.StatusOK, message: "the query failed, and the server does not say why"}
	}
	return page, nil
}

// parse reads the JSON of an answer with status 200; any other answer is an error.
func parse(answer *httpload.Response, into any) error {
	if answer.Status != http.StatusOK {
		return refusal(answer)
	}
	if err := json.Unmarshal(answer.Body, into); err != nil {
		return &unreadableError{err}
	}
	return nil
}

// wireError is an error in an answer.
type wireError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// text is the message without the forty lines of backtrace that storage errors end with.
func (e wireError) text() string {
	text, _, _ := strings.Cut(e.Message, "\n\nBacktrace:")
	return strings.TrimSpace(text)
}

// maxErrorText is how much of an answer an error repeats, in bytes.
const maxErrorText = 2000

// refusal is the error of an answer with another status than 200: {"error":{"code":…,"message":…}}, or anything that a
// proxy sends.
func refusal(r *httpload.Response) error {
	var body struct {
		Error wireError `json:"error"`
	}
	e := &serverError{status: r.Status}
	if json.Unmarshal(r.Body, &body) == nil && body.Error.Message != "" {
		e.message = body.Error.text()
		if body.Error.Code != r.Status { // streaming loads repeat the status there
			e.code = body.Error.Code
		}
		return e
	}
	if e.message = strings.TrimSpace(string(r.Body)); len(e.message) > maxErrorText {
		e.message = strings.ToValidUTF8(e.message[:maxErrorText], "") + "…"
	}
	return e
}
