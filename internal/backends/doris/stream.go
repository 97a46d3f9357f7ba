package doris

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// streamSession is one worker of stream-load. Its connections are the client's; what it holds is which frontend is its first.
type streamSession struct {
	db     *database
	text   statements
	labels bool // batches go in under labels
	first  int  // the frontend that is asked first
	dead   bool
}

// Load sends the batch, under its label if there is one.
func (s *streamSession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	ack, err := s.load(ctx, b)
	if err != nil {
		s.db.doubted.Store(true)
		err = failed("load", err)
		s.dead = s.dead || New().Classify(err).SessionDead
	}
	return ack, err
}

func (s *streamSession) load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	want := sent{rows: b.Wanted(), group: s.db.options.group}
	if s.labels {
		want.label = s.db.name.label(loader.RefOf(b), false)
	}
	if s.dead {
		return loader.Ack{}, errDead
	}
	return s.db.once(ctx, s.text, loader.RefOf(b), want.label, func() (loader.Ack, error) { return s.send(ctx, b, want) })
}

// send asks for a backend and sends it the batch once.
func (s *streamSession) send(ctx context.Context, b *batch.Batch, want sent) (loader.Ack, error) {
	headers := s.headers(ctx, b, want.label)
	be, err := s.route(ctx, headers)
	if err != nil {
		return loader.Ack{}, err
	}
	answered, err := s.put(ctx, be, headers, b)
	if err != nil {
		return loader.Ack{}, s.db.unreachable(be, err)
	}
	a, err := readAnswer(answered.Status, answered.Body)
	if err != nil {
		return loader.Ack{}, err
	}
	ack, err := want.judge(a)
	return ack, s.db.explained(ctx, be, err)
}

// put sends the rows, and follows a backend that sends them on to another with a body of its own for each.
func (s *streamSession) put(ctx context.Context, be *url.URL, headers http.Header, b *batch.Batch) (*httpload.Response, error) {
	for range maxHops {
		answer, err := s.db.do(ctx, http.MethodPut, be, headers, b)
		if err != nil {
			return nil, err
		}
		next, err := s.db.redirected(be, answer.Status, answer.Header)
		if err != nil || next == nil {
			return answer, err
		}
		be = s.db.mapped(next)
	}
	return nil, &refusal{http: http.StatusTemporaryRedirect, message: "redirects without end"}
}

// explained fetches the rows that the server could not read.
func (db *database) explained(ctx context.Context, be *url.URL, err error) error {
	var refused *refusal
	if errors.As(err, &refused) && refused.url != "" && refused.rows == "" {
		refused.rows = db.errorRows(ctx, be, refused.url)
	}
	return err
}

// headers are those of a load, under the names that Doris' manual gives them. Every one is said, also where it is the
// default: defaults are settings of the server.
func (s *streamSession) headers(ctx context.Context, b *batch.Batch, label string) http.Header {
	h := http.Header{}
	for name, value := range s.db.options.headers(s.text, b.Format, label) {
		h[name] = []string{value}
	}
	if deadline, bounded := ctx.Deadline(); bounded {
		h["timeout"] = []string{strconv.Itoa(loadSeconds(time.Until(deadline)))}
	}
	return h
}

// loadSeconds is how long the server may work on a load: no longer than anybody waits for it, and within its bounds.
func loadSeconds(d time.Duration) int {
	return int(min(max(math.Ceil(d.Seconds()), 30), 259200))
}

// headers are those that follow from the options.
func (o options) headers(s statements, f batch.Format, label string) map[string]string {
	h := map[string]string{
		"columns":          s.Columns(s.Schema),
		"max_filter_ratio": "0",
		"strict_mode":      "true",
		"timezone":         "UTC",
		// Releases of 2026 drop the label of some loads that do not say this.
		"group_commit": string(o.group),
	}
	if label != "" {
		h["label"] = label
	}
	switch f {
	case batch.NDJSON:
		h["format"], h["read_json_by_line"] = "json", "true"
	case batch.Parquet:
		h["format"] = "parquet"
	default:
		h["format"], h["column_separator"], h["line_delimiter"] = "csv", `\x01`, `\x02`
	}
	if o.redirectPolicy != "" {
		h["redirect-policy"] = o.redirectPolicy
	}
	return h
}

// Close ends the session; its connections are the client's.
func (s *streamSession) Close() error {
	s.dead = true
	return nil
}
