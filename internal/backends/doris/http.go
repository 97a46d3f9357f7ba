package doris

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// do sends one request with our own credentials, and the batch as its body if there is one.
func (db *database) do(ctx context.Context, method string, to *url.URL, headers http.Header, b *batch.Batch) (*httpload.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, to.String(), nil)
	if err != nil {
		return nil, err
	}
	if headers != nil {
		r.Header = headers.Clone()
	}
	r.SetBasicAuth(db.target.User, db.target.Password.Reveal())
	if b != nil {
		httpload.Attach(r, nil, b, nil)
	} else if method == http.MethodPut {
		// A frontend refuses a load without the header. Go sends the head at once where there is no body to hold back.
		r.Header.Set("Expect", "100-continue")
	}
	answer, err := db.http.Do(r)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // what became of the connection is our own doing
	}
	return answer, err
}

// frontendTime is how long a frontend may take to answer where there is another one to ask: a quarter of the least time
// that the engine gives a question.
const frontendTime = 15 * time.Second

// get asks a frontend and follows redirects: only the master knows labels. It begins with the one that answered the last
// question. What is asked may be asked twice.
func (db *database) get(ctx context.Context, method, path string, query url.Values) (a answer, err error) {
	i, err := db.anyFrontend(ctx, int(db.spoke.Load()), func(ctx context.Context, to url.URL) (err error) {
		to.RawPath = path
		to.Path, _ = url.PathUnescape(path)
		to.RawQuery = query.Encode()
		a, err = db.follow(ctx, method, &to)
		return err
	})
	if err == nil {
		db.spoke.Store(uint64(i))
	}
	return a, err
}

// anyFrontend calls f with one frontend after the other, from the first on, until one has spoken, and tells which. One that
// hangs, or has nothing to say but that it cannot, is passed over; a refusal is what another one would say too.
func (db *database) anyFrontend(ctx context.Context, first int, f func(ctx context.Context, to url.URL) error) (i int, all error) {
	for n := range db.frontends {
		i = (first + n) % len(db.frontends)
		fe := db.frontends[i].http
		err := db.bounded(ctx, n == len(db.frontends)-1, func(ctx context.Context) error { return f(ctx, fe) })
		if err == nil {
			return i, nil
		}
		all = and(all, fmt.Errorf("frontend %s: %w", fe.Host, err))
		known := verdict(err).Class
		if ctx.Err() != nil || known != loader.ClassConnection && known != loader.ClassTimeout && known != loader.ClassShutdown {
			break
		}
	}
	return i, all
}

// bounded leaves the last frontend all the time there is.
func (db *database) bounded(ctx context.Context, last bool, f func(context.Context) error) error {
	if last {
		return f(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, db.bound)
	defer cancel()
	return f(ctx)
}

func (db *database) follow(ctx context.Context, method string, to *url.URL) (a answer, err error) {
	for range maxHops {
		got, err := db.do(ctx, method, to, nil, nil)
		if err != nil {
			return a, err
		}
		next, err := db.redirected(to, got.Status, got.Header)
		if err != nil {
			return a, err
		}
		if next == nil {
			return readReply(got.Status, got.Body)
		}
		to = next
	}
	return a, &refusal{http: http.StatusTemporaryRedirect, message: "redirects without end"}
}
