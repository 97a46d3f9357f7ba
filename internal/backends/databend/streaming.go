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
// A request whose connection breaks lies in the server's socket until somebody reads it there. If that is after Resolve
// has looked at what is at work, nobody ends it: it would commit the part of the rows that it has, beside the attempt
// that followed. The server (43b24ec0, streaming_load.rs) lists a query before it reads a byte of the body, and hyper
// sends "100 Continue" when a body is first read. So no row is sent before its query is listed; and a head that comes
// alone fails, since the form never begins. What takes longer than expectPatience, or a proxy that asks for the body by
// itself, is as it was.
func (s *session) streamingLoad(ctx context.Context, b *batch.Batch, m marks) (rows int64, err error) {
	sending, done := s.endFirst(ctx, m)
	defer done()
	r, err := s.node.request(sending, http.MethodPut, "/v1/streaming_load")
	if err != nil {
		return 0, err
	}
	r.Header.Set("X-DATABEND-SQL", s.insertStreamed(b.Format))
	// Without it the database is "default", and there are no settings.
	r.Header.Set("X-DATABEND-QUERY-CONTEXT", string(s.node.login.session))
	r.Header.Set("Expect", "100-continue")
	m.set(r.Header)
	attachForm(r, b.ID.Run+"-"+fileName(b.ID.Number, b.Format), b)
	answer, err := s.node.http.Do(r)
	if ended := ctx.Err(); ended != nil {
		return 0, gaveUp(ended, answer, err)
	}
	if err != nil {
		return 0, err
	}
	return streamed(answer)
}

// streamed reads the answer to a streaming load.
func streamed(answer *httpload.Response) (rows int64, err error) {
	var body struct {
		Stats *struct {
			Rows int64 `json:"rows"`
		} `json:"stats"`
		Error json.RawMessage `json:"error"`
	}
	if err := read(answer, &body); err != nil {
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

// expectPatience is how long the server may take to ask for the rows. It keeps who waits for a slot waiting, which is
// listed then, and must end since a proxy may swallow the question.
const expectPatience = 5 * time.Second

// killPatience bounds the attempt to end a query before its connection is closed.
const killPatience = 5 * time.Second

// endFirst returns the context to send with. When ctx ends, the query is ended before the connection is.
//
// The server (43b24ec0, streaming_load.rs) hands the rows from the connection to the statement through a channel, and a
// connection that breaks closes it, which to the statement is the end of the rows: it commits what has come. A query
// that is killed commits nothing.
func (s *session) endFirst(ctx context.Context, m marks) (sending context.Context, done func()) {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	answered := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer cancel()
		if m.queryID == "" {
			return
		}
		limit, enough := context.WithTimeout(sending, min(killPatience, s.owner.grace))
		defer enough()
		// Resolve does it again, and says when it cannot.
		if s.node.kill(limit, []string{m.queryID}) == nil {
			select { // a killed query answers, unless its client can no longer be heard
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

// gaveUp is the error of a load whose time was over: whatever the server said to the end of its query.
func gaveUp(ended error, answer *httpload.Response, err error) error {
	switch {
	case err != nil:
		ended = fmt.Errorf("%w: %s", ended, err.Error()) // its own class would hide that time was over
	case answer.Status == http.StatusOK:
		ended = fmt.Errorf("%w, while the server said that it was done", ended)
	default:
		ended = fmt.Errorf("%w: %s", ended, refusal(answer).Error())
	}
	return &loader.Error{Op: "load", Applied: loader.Unknown, Err: ended}
}

// probeStreaming asks for the route with a request that has no statement. A server that knows it misses the statement.
func (l *opened) probeStreaming(ctx context.Context) error {
	r, err := l.host().request(ctx, http.MethodPut, "/v1/streaming_load")
	if err != nil {
		return err
	}
	const noParts = "--terapush--\r\n"
	r.Header.Set("Content-Type", "multipart/form-data; boundary=terapush")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(noParts)), int64(len(noParts))
	answer, err := l.host().http.Do(r)
	if err != nil {
		return err
	}
	switch answer.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return &loader.Error{Op: "look for /v1/streaming_load", Applied: loader.No,
			Err:  fmt.Errorf("this server (%s) has no streaming load: %w", l.server.Version, refusal(answer)),
			Hint: "it came with version 1.2.782; take --method " + insertNoPresign + ", which every server has"}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return refusal(answer)
	}
	return nil
}
