package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/datafuselabs/databend-go" // the client that looks at what terapush did
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
)

const databend kind = "databend"

// databendMethods are all of them, the default first.
func databendMethods() []string {
	return []string{"streaming-load", "insert", "insert-no-presign", "stage-load"}
}

// engineSlots bounds how many tests use the engine at a time: it is one process, and its front end has one core.
var engineSlots = make(chan struct{}, 3)

// newEngine makes a database in the real engine, which scripts/servers puts behind an HTTP front end.
func newEngine(t testing.TB) *database {
	t.Helper()
	text := backendtest.Server(t, "TERAPUSH_TEST_DATABEND")
	engineSlots <- struct{}{}
	t.Cleanup(func() { <-engineSlots })
	u, err := url.Parse(text)
	require.NoError(t, err)
	name := "e2e_" + strings.ToLower(rand.Text()[:10])
	admin := databendClient(t, u)
	require.NoError(t, admin.exec("CREATE DATABASE "+name))
	t.Cleanup(func() { assert.NoError(t, admin.exec("DROP DATABASE "+name)) })
	u.Path = "/" + name
	return &database{kind: databend, url: u, client: databendClient(t, u), state: filepath.Join(t.TempDir(), "state")}
}

func databendClient(t testing.TB, u *url.URL) client {
	t.Helper()
	db, err := sql.Open("databend", u.String())
	require.NoError(t, err)
	c := sqlClient{db}
	t.Cleanup(c.close)
	return c
}

// stage makes a stage in the folder, which has presigned URLs, and gives its name.
func (d *database) stage(t testing.TB, f *folder) string {
	t.Helper()
	name := "presigned_" + strings.ToLower(rand.Text()[:10])
	d.must(t, fmt.Sprintf("CREATE STAGE %s URL = 's3://%s/%s/' CONNECTION = (endpoint_url = '%s', region = 'us-east-1', "+
		"access_key_id = '%s', secret_access_key = '%s')",
		name, f.bucket, f.prefix, f.endpoint, os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")))
	t.Cleanup(func() { assert.NoError(t, d.exec("DROP STAGE IF EXISTS "+name)) })
	return name
}

// nothingLeft asserts that of the only run no object, no file and no stage is there.
func (d *database) nothingLeft(t *testing.T, f *folder) {
	t.Helper()
	assert.Empty(t, f.list(t), "objects in the store")
	stage := "terapush_" + strings.ReplaceAll(d.run(t), "-", "_")
	assert.Zero(t, d.number(t, "SELECT COUNT(*) FROM system.stages WHERE name = '"+stage+"'"), "the run's stage, with its credentials")
	assert.NoError(t, d.query("LIST @~/terapush/"+d.run(t)+"/", func(func(...any) error) error {
		return fmt.Errorf("a file is left in the user's stage")
	}))
}

// front forwards requests to the engine and notes them.
type front struct {
	*database
	*httptest.Server

	mu   sync.Mutex
	seen []asked
}

// asked is a request: the end of its path, and what its head and its statement say.
type asked struct{ route, label, queryID, folder, sql string }

// newFront is newEngine behind a front. It calls before before it forwards a request, and after before it answers;
// what was asked is done also where the client is gone.
func newFront(t *testing.T, before, after func(asked)) *front {
	t.Helper()
	f := &front{database: newEngine(t)}
	to := &url.URL{Scheme: "http", Host: f.url.Host}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := readAsked(r)
		f.mu.Lock()
		f.seen = append(f.seen, a)
		f.mu.Unlock()
		before(a)
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer cancel()
		engine := &httputil.ReverseProxy{
			Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(to) },
			ModifyResponse: func(*http.Response) error { after(a); return nil },
			ErrorLog:       log.New(io.Discard, "", 0),
		}
		engine.ServeHTTP(w, r.WithContext(ctx))
	}))
	t.Cleanup(f.Close)
	f.url.Host = f.Listener.Addr().String()
	return f
}

func readAsked(r *http.Request) asked {
	a := asked{
		route: path.Base(r.URL.Path), sql: r.Header.Get("X-DATABEND-SQL"),
		label: r.Header.Get("X-DATABEND-DEDUPLICATE-LABEL"), queryID: r.Header.Get("X-DATABEND-QUERY-ID"),
		folder: r.Header.Get("X-DATABEND-RELATIVE-PATH"),
	}
	if a.route == "query" {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		var sent struct{ SQL string }
		_ = json.Unmarshal(body, &sent)
		a.sql = sent.SQL
	}
	return a
}

// requests are those so far.
func (f *front) requests() []asked {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.seen)
}
