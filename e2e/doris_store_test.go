package e2e_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/standin/doris"
)

// isCommit reports whether a request loads a commit group.
func isCommit(r doris.Request) bool {
	return r.Kind == doris.Statement && strings.Contains(r.SQL, "FROM S3(")
}

// puts is an HTTP server before the store, which counts the uploads whose answer was good, by key.
type puts struct {
	*httptest.Server
	mu    sync.Mutex
	acked map[string]int
}

func newPuts(t *testing.T, f *folder) *puts {
	t.Helper()
	to, err := url.Parse(f.endpoint)
	require.NoError(t, err)
	p := &puts{acked: map[string]int{}}
	p.Server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it is part of what is signed
		},
		ModifyResponse: func(r *http.Response) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if r.Request.Method == http.MethodPut && r.StatusCode == http.StatusOK {
				p.acked[r.Request.URL.Path]++
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// soFar copies what was acknowledged.
func (p *puts) soFar() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.acked)
}

// kill -9 between the last PUT and the commit, whether or not the statement still takes effect: what is stored is not
// uploaded again, every row is there once, and no object is left.
func TestDorisKillBeforeTheCommit(t *testing.T) {
	t.Parallel()
	for name, takesEffect := range map[string]bool{"never happens": false, "happens late": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolder(t)
			seen := newPuts(t, f)
			held := make(chan struct{})
			var killed atomic.Bool
			s := newCluster(t, doris.Options{Script: func(r doris.Request) doris.Fault {
				if !isCommit(r) || killed.Load() {
					return doris.Fault{}
				}
				return doris.Fault{Hold: held, Cut: !takesEffect}
			}})
			via := f.target(with("endpoint", seen.URL))
			l := peopleLoad(4000, 100)
			p := s.push(l.flags("--method", "s3-load", "--staging", via, "--commit-batches", "5", "--workers", "4")...).start(t)
			// Uploads run ahead of the commits up to a bound, and then wait for them. The journal is at most 100 ms behind.
			last, since := -1, time.Now()
			p.until(t, "uploads that wait for commits", func() bool {
				if n := len(seen.soFar()); n != last {
					last, since = n, time.Now()
				}
				return slices.ContainsFunc(s.Requests(), isCommit) && time.Since(since) > 500*time.Millisecond
			})
			p.kill(t)
			killed.Store(true)
			assert.Zero(t, s.Rows("people"))
			assert.Len(t, f.list(t), len(seen.soFar()))
			close(held)
			if takesEffect {
				require.Eventually(t, func() bool { return s.Rows("people") > 0 }, time.Minute, 5*time.Millisecond)
			}

			r := s.resume(t, "--verify", "full").run(t).ends(t, 0)
			assert.Equal(t, l.rows, reportOf(t, r).Result.Rows)
			stored := seen.soFar()
			assert.Len(t, stored, int(l.batches()))
			for key, n := range stored {
				assert.Equal(t, 1, n, "%s was stored, and sent again", key)
			}
			s.isExact(t, l, r)
			assert.Empty(t, f.list(t))
			s.keepsSecrets(t, r.all())
		})
	}
}
