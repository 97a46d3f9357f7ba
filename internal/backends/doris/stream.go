package doris

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// streamSession is one worker of stream-load. Its connections are the client's.
type streamSession struct {
	*opened
	text   statements
	labels bool // batches have labels
	first  int  // the frontend that is asked first
	dead   bool

	backend *url.URL  // that took the last load, or nil
	named   time.Time // when a frontend has named it
}

// Load sends the batch, under its label if it has one.
func (s *streamSession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if s.dead {
		return loader.Ack{}, failed("load", errDead)
	}
	ref := loader.RefOf(b)
	want := sent{rows: b.Rows, group: s.options.group}
	if s.labels {
		want.label = s.name.label(ref, false)
	}
	ack, err := s.once(ctx, ref, want.label, func() (loader.Ack, error) { return s.send(ctx, b, want) })
	if err != nil {
		s.doubted.Store(true)
		err = failed("load", err)
		s.dead = verdict(err).SessionDead
	}
	return ack, err
}

// send finds a backend, sends it the batch once, and judges its answer. The request for a backend has no label: a
// backend that gets it by mistake would load no rows under the label.
func (s *streamSession) send(ctx context.Context, b *batch.Batch, want sent) (loader.Ack, error) {
	headers := s.options.headers(s.text, b.Format)
	if deadline, bounded := ctx.Deadline(); bounded {
		headers["timeout"] = strconv.Itoa(loadSeconds(time.Until(deadline)))
	}
	route, err := s.route(ctx, headers)
	if err != nil {
		return loader.Ack{}, err
	}
	s.backend = nil // until it has taken the load
	if want.label != "" {
		headers["label"] = want.label
	}
	answer, be, err := s.follow(ctx, http.MethodPut, route, headers, b)
	if err != nil {
		return loader.Ack{}, s.dialError(be, err)
	}
	ack, err := want.judge(answer.Status, answer.Body)
	if err == nil && route.RawQuery == "" { // parameters may be meant for one load
		s.backend = route
	}
	if refused := (*refusal)(nil); errors.As(err, &refused) && refused.url != "" && refused.rows == "" {
		refused.rows = s.errorRows(ctx, be, refused.url)
	}
	return ack, err
}

// backendTime is how long a session goes on with a backend that takes its loads before it asks a frontend again, which
// spreads loads and knows which backends are there.
const backendTime = 5 * time.Second

// route returns the backend of the last load, or finds one.
func (s *streamSession) route(ctx context.Context, headers map[string]string) (*url.URL, error) {
	if s.backend != nil && time.Since(s.named) < s.backendTime {
		return s.backend, nil
	}
	s.named = time.Now()
	return s.findBackend(ctx, s.first, headers)
}

// findBackend returns a backend for a load: of --backend-hosts, or by asking a frontend, beginning with the first. An
// error means that no row was sent.
func (l *opened) findBackend(ctx context.Context, first int, headers map[string]string) (be *url.URL, err error) {
	if direct := l.options.direct; len(direct) > 0 {
		// The turn is the loader's: the session that replaces one with a dead backend must not begin there again.
		be := direct[(l.loads.Add(1)-1)%uint64(len(direct))]
		return url.Parse(l.hosts.List[0].http.Scheme + "://" + be + l.name.loadPath())
	}
	err = l.hosts.From(ctx, first, func(ctx context.Context, fe endpoint) error {
		answer, at, err := l.follow(ctx, http.MethodPut, fe.at(l.name.loadPath(), ""), headers, nil)
		if err == nil && answer != nil { // no redirect, but a server that takes loads itself may say success
			_, err = parseLoad(answer.Status, answer.Body)
		}
		be = at
		return fe.failed(err)
	})
	if err != nil {
		return nil, &loader.Error{Op: "ask for a backend", Applied: loader.No, Err: err, Hint: hint(err)}
	}
	return be, nil
}

// loadSeconds returns how long the server may work on a load: as long as the client waits, within the server's bounds.
func loadSeconds(d time.Duration) int {
	return int(min(max(math.Ceil(d.Seconds()), 30), 259200))
}

// headers returns those of a load that follow from the options. Defaults are given too: the server's may be others.
func (o options) headers(s statements, f batch.Format) map[string]string {
	h := map[string]string{
		"columns":          s.Columns(s.Schema),
		"max_filter_ratio": "0",
		"strict_mode":      "true",
		"timezone":         "UTC",
		"group_commit":     string(o.group), // releases of 2026 drop the label of some loads without it
	}
	switch f {
	case batch.NDJSON:
		h["format"], h["read_json_by_line"] = "json", "true"
	case batch.Parquet:
		h["format"] = "parquet"
	default:
		h["format"], h["column_separator"], h["line_delimiter"] = "csv", `\x01`, `\x02`
		if _, how := f.Compression(); how != "" {
			h["compress_type"] = how // of CSV alone, and no zstd
		}
	}
	if o.RedirectPolicy != "" {
		h["redirect-policy"] = o.RedirectPolicy
	}
	return h
}

// Close implements loader.Session.
func (s *streamSession) Close() error {
	s.dead = true
	return nil
}
