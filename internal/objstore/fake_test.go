package objstore

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// The helpers of backendtest, by short names.
var fakeStore, targetOf, eachStore = backendtest.StoreAndKeys, backendtest.StoreTarget, backendtest.EachStore

func open(t testing.TB, target loader.Target) *Store {
	t.Helper()
	s, err := Open(t.Context(), target, backendtest.Deps())
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

// note is a store's first look at its requests.
func (q *requests) note(_ http.ResponseWriter, r *http.Request) bool { q.add(r); return false }

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
