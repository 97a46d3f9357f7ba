package databend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// streamingLoad sends the rows as the body of one request, once the server asks for them.
//
// A request whose connection breaks stays in the server's socket until it is read there. If that is after Resolve has
// looked at the running queries, nobody ends it, and it would commit the rows that it has, beside the next attempt. The
// server (43b24ec0, streaming_load.rs) lists a query before it reads a byte of the body, and hyper sends "100 Continue"
// when a body is first read. So no row is sent before its query is listed; and a head that arrives alone fails, since
// its form never begins. A server that takes longer than expectTimeout, and a proxy that asks for the body itself or
// swallows the question, lose this protection.
func (s *session) streamingLoad(ctx context.Context, b *batch.Batch, t tags) (rows int64, err error) {
	sending, done := s.killOnCancel(ctx, t)
	defer done()
	r, err := s.endpoint.request(sending, http.MethodPut, "/v1/streaming_load")
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-DATABEND-SQL", s.insertStreamed(b.Format))
	// Without it the database is "default", and there are no settings.
	r.Header.Set("X-DATABEND-QUERY-CONTEXT", string(s.endpoint.login.session))
	r.Header.Set("Expect", "100-continue")
	t.set(r.Header)
	attachForm(r, b.ID.Run+"-"+fileName(b.ID.Number, b.Format), b)
	answer, err := s.endpoint.http.Do(r)
	if ended := ctx.Err(); ended != nil {
		return 0, cancelled(ended, answer, err)
	}
	if err != nil {
		return 0, err
	}
	var body struct {
		Stats *struct {
			Rows int64 `json:"rows"`
		} `json:"stats"`
		Error json.RawMessage `json:"error"`
	}
	if err := parse(answer, &body); err != nil {
		return 0, err
	}
	if len(body.Error) > 0 && string(body.Error) != "null" {
		return 0, refusal(answer)
	}
	if body.Stats == nil {
		return 0, &unreadableError{errors.New("it does not say how many rows went in")}
	}
	return body.Stats.Rows, nil
}

// expectTimeout is how long the server may take to ask for the rows, once it has asked: long enough for a load that
// waits for its slot.
const expectTimeout = 5 * time.Second

// killTimeout bounds the attempt to kill a query before its connection is closed.
const killTimeout = 5 * time.Second

// killOnCancel returns the context to send with. When ctx ends, the query is killed before the connection is closed.
//
// The server (43b24ec0, streaming_load.rs) passes the rows to the statement through a channel. A connection that breaks
// closes the channel, which to the statement is the end of the rows: it commits those that have arrived. A query that
// is killed commits nothing.
func (s *session) killOnCancel(ctx context.Context, t tags) (sending context.Context, done func()) {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	answered := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer cancel()
		if t.queryID == "" {
			return
		}
		limit, release := context.WithTimeout(sending, min(killTimeout, s.owner.grace))
		defer release()
		if s.endpoint.kill(limit, t.queryID) == nil { // after an error Resolve tries again
			select { // a killed query answers, unless its client is gone
			case <-answered:
			case <-limit.Done():
			}
		}
	})
	return sending, func() {
		close(answered)
		stop()
		cancel()
	}
}

// cancelled is the error of a load whose context has ended, whatever its query has answered.
func cancelled(ended error, answer *httpload.Response, err error) error {
	switch {
	case err != nil:
		ended = fmt.Errorf("%w: %s", ended, loader.Explain(err)) // its class would hide that the context has ended
	case answer.Status == http.StatusOK:
		ended = fmt.Errorf("%w, while the server reported success", ended)
	default:
		ended = fmt.Errorf("%w: %s", ended, refusal(answer).Error())
	}
	return &loader.Error{Op: "load", Applied: loader.Unknown, Err: ended}
}

// probeStreaming sends a request without a statement. A server that has the route answers that the statement is
// missing.
func (l *opened) probeStreaming(ctx context.Context) error {
	r, err := l.hosts.Current().request(ctx, http.MethodPut, "/v1/streaming_load")
	if err != nil {
		return err
	}
	const noParts = "--terapush--\r\n"
	r.Header.Set("Content-Type", "multipart/form-data; boundary=terapush")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(noParts)), int64(len(noParts))
	answer, err := l.hosts.Current().http.Do(r)
	if err != nil {
		return err
	}
	switch answer.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return &loader.Error{Op: "look for /v1/streaming_load", Applied: loader.No,
			Err:  fmt.Errorf("this server (%s) has no streaming load: %w", l.server.Version, refusal(answer)),
			Hint: "it came with version 1.2.782; take --method " + methodInsertNoPresign + ", which every server has"}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return refusal(answer)
	}
	return nil
}
