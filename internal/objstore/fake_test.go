package objstore

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

const (
	testKey    = "AKIDTERAPUSH"
	testSecret = "sEcReT/tErApUsH"
	testToken  = "tOkEn//tErApUsH"
)

// credentials are set for the test and found nowhere else.
func credentials(t testing.TB) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": testKey, "AWS_SECRET_ACCESS_KEY": testSecret, "AWS_SESSION_TOKEN": testToken,
	} {
		t.Setenv(name, value)
	}
	noOthers(t)
}

func noOthers(t testing.TB) {
	for name, value := range map[string]string{
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
		"AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
	} {
		t.Setenv(name, value)
	}
}

// eachStore runs the test on a store in this process, and on a real one if there is any.
func eachStore(t *testing.T, test func(t *testing.T, target loader.Target)) {
	t.Run("fake", func(t *testing.T) {
		credentials(t)
		server := fakeStore(t, nil)
		test(t, targetOf(t, "s3://bucket/some/prefix", server.URL))
	})
	t.Run("real", func(t *testing.T) {
		text := os.Getenv("TERAPUSH_TEST_S3")
		if text == "" && os.Getenv("CI") == "true" {
			t.Fatal("TERAPUSH_TEST_S3 is not set, and CI must test a real server")
		}
		if text == "" {
			t.Skip("TERAPUSH_TEST_S3 is not set: run scripts/servers up and eval \"$(scripts/servers env)\"")
		}
		target, err := loader.ParseTarget(text)
		require.NoError(t, err)
		target.Database = strings.Trim(target.Database, "/") + "/objstore-" + strings.ToLower(rand.Text())
		test(t, target)
	})
}

// fakeStore serves a bucket named "bucket". before sees every request first and may answer it.
func fakeStore(t testing.TB, before func(w http.ResponseWriter, r *http.Request) (answered bool)) *httptest.Server {
	server := stoppedStore(t, before)
	server.Start()
	return server
}

// stoppedStore is a fakeStore that is yet to be started, so that its configuration can be changed.
func stoppedStore(t testing.TB, before func(w http.ResponseWriter, r *http.Request) (answered bool)) *httptest.Server {
	backend := s3mem.New()
	require.NoError(t, backend.CreateBucket("bucket"))
	store := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before == nil || !before(w, r) {
			store.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func targetOf(t testing.TB, text, endpoint string) loader.Target {
	target, err := loader.ParseTarget(text)
	require.NoError(t, err)
	if endpoint != "" {
		target.Params.Set("endpoint", endpoint)
	}
	return target
}

func deps() loader.Deps {
	return loader.Deps{Dial: new(netio.Dialer).DialContext, TLS: netio.Trust{}.TLS, Log: slog.New(slog.DiscardHandler)}
}

func open(t testing.TB, target loader.Target) *Store {
	t.Helper()
	s, err := Open(t.Context(), target, deps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// testBatch is a batch whose buffer is spoiled when it is given back, as the next batch would spoil it.
type testBatch struct {
	*batch.Batch
	freed chan struct{}
}

func newBatch(run string, number int64, body string) testBatch {
	b := testBatch{freed: make(chan struct{})}
	b.Batch = &batch.Batch{
		ID: batch.ID{Run: run, Number: number}, Format: batch.CSV, First: 100 * number, Rows: 100, Encoded: []byte(body),
		Free: func() {
			clear(b.Encoded)
			close(b.freed)
		},
	}
	b.Hold()
	return b
}

// put sends the batch, and waits until nobody reads it any more.
func put(ctx context.Context, t testing.TB, r *Run, b testBatch) error {
	t.Helper()
	err := r.Put(ctx, b.Batch)
	b.Release()
	select {
	case <-b.freed:
	case <-time.After(20 * time.Second):
		t.Error("a body is still open")
	}
	return err
}

func putAll(t testing.TB, r *Run, run string, numbers ...int64) {
	t.Helper()
	for _, n := range numbers {
		require.NoError(t, put(t.Context(), t, r, newBatch(run, n, bodyOf(n))))
	}
}

func bodyOf(n int64) string { return strings.Repeat("row\n", int(n%7)+1) }

func names(t testing.TB, r *Run) (all []string) {
	t.Helper()
	require.NoError(t, r.List(t.Context(), func(o Object) error {
		all = append(all, o.Name)
		return nil
	}))
	return all
}

// requests records what a server was asked, without bodies.
type requests struct {
	mu  sync.Mutex
	all []*http.Request
}

func (q *requests) add(r *http.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.all = append(q.all, r.Clone(context.Background()))
}

// of lists the requests of a method.
func (q *requests) of(method string) (some []*http.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.all {
		if r.Method == method {
			some = append(some, r)
		}
	}
	return some
}

// refuse answers as S3 does.
func refuse(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("X-Amz-Request-Id", "REQ1")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, "<?xml version=\"1.0\"?><Error><Code>"+code+"</Code><Message>"+message+"</Message></Error>")
	}
}

func isListing(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2"
}

func isBulkDelete(r *http.Request) bool {
	return r.Method == http.MethodPost && hasKey(r.URL.Query(), "delete")
}

func hasKey(q url.Values, name string) bool { _, has := q[name]; return has }
