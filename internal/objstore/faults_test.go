package objstore

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/loader"
)

// What the SDK makes of a batch: one request, its payload unsigned and without checksums, no question before the body.
func TestRequest(t *testing.T) {
	t.Setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_supported")
	var asked requests
	server := fakeStore(t, asked.note)
	target := targetOf(t, "s3://bucket/p?region=eu-west-9", server.URL)
	body := strings.Repeat("0123456789abcde\n", 4<<20/16) // large enough for "Expect: 100-continue"
	require.NoError(t, put(t.Context(), t, open(t, target).Run("run"), newBatch("run", 0, body)))
	puts := asked.of(http.MethodPut)
	require.Len(t, puts, 1)
	r := puts[0]
	assert.Equal(t, "/bucket/p/run/000000000000.csv", r.URL.Path)
	assert.EqualValues(t, len(body), r.ContentLength)
	assert.Empty(t, r.TransferEncoding)
	assert.Equal(t, "UNSIGNED-PAYLOAD", r.Header.Get("X-Amz-Content-Sha256"))
	assert.Equal(t, fmt.Sprintf("first=0,rows=100,bytes=%d", len(body)), r.Header.Get("X-Amz-Meta-Terapush"))
	assert.Contains(t, r.Header.Get("Authorization"), "/eu-west-9/s3/")
	for name := range r.Header {
		assert.NotContains(t, strings.ToLower(name), "checksum")
		assert.NotContains(t, strings.ToLower(name), "trailer")
	}
	assert.Empty(t, r.Header.Get("Expect"))
	assert.Empty(t, r.Header.Get("Content-Encoding"))
}

// What is read of an answer; what it then means for each code is in the golden file of TestVerdicts. Attempts are the
// engine's to count: whatever the environment says, the SDK makes one.
func TestFaults(t *testing.T) {
	no := func(c loader.Class) loader.Verdict { return loader.Verdict{Applied: loader.No, Class: c} }
	for _, c := range []struct {
		status int
		code   string
		header [2]string
		want   loader.Verdict
		hint   string
	}{
		{
			503, "SlowDown", [2]string{"Retry-After", "7"},
			loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassThrottled, After: 7 * time.Second}, "fewer workers",
		},
		{500, "InternalError", [2]string{}, loader.Verdict{Applied: loader.Unknown, Retry: true, Class: loader.ClassOther}, ""},
		{502, "", [2]string{}, loader.Verdict{Applied: loader.Unknown, Retry: true, Class: loader.ClassOther}, ""},
		{403, "", [2]string{}, no(loader.ClassPermission), "s3:PutObject"},
		{301, "PermanentRedirect", [2]string{"X-Amz-Bucket-Region", "eu-central-1"}, no(loader.ClassOther), "?region=eu-central-1"},
		{400, "AuthorizationHeaderMalformed", [2]string{"X-Amz-Bucket-Region", "eu-central-1"}, no(loader.ClassOther), "?region=eu-central-1"},
		{307, "TemporaryRedirect", [2]string{"Location", "http://elsewhere.invalid/"}, no(loader.ClassOther), "another region"},
	} {
		t.Run(fmt.Sprint(c.status, " ", c.code), func(t *testing.T) {
			var broken atomic.Bool
			var asked requests
			server := fakeStore(t, func(w http.ResponseWriter, r *http.Request) bool {
				if !broken.Load() {
					return false
				}
				asked.add(r)
				if c.header[0] != "" {
					w.Header().Set(c.header[0], c.header[1])
				}
				refuse(w, r, c.status, c.code, "words of the server")
				return true
			})
			t.Setenv("AWS_MAX_ATTEMPTS", "5")
			t.Setenv("AWS_RETRY_MODE", "adaptive")
			target := targetOf(t, "s3://bucket/p", server.URL)
			r := open(t, target).Run("run")

			broken.Store(true)
			err := put(t.Context(), t, r, newBatch("run", 0, "row\n"))
			assert.Len(t, asked.of(http.MethodPut), 1)
			_, opened := Open(t.Context(), target, backendtest.Deps())
			assert.ErrorContains(t, opened, "open s3://bucket/p")
			for _, err := range []error{err, opened} {
				var known *loader.Error
				require.ErrorAs(t, err, &known)
				assert.Contains(t, known.Hint, c.hint)
				for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
					assert.NotContains(t, text, backendtest.S3Secret)
					assert.NotContains(t, text, backendtest.S3Token)
				}
				if c.code != "" {
					assert.Contains(t, err.Error(), c.code+": words of the server")
				}
				assert.Equal(t, c.want, verdictOf(t, err))
			}
			broken.Store(false)
			require.NoError(t, put(t.Context(), t, r, newBatch("run", 0, "row\n")))
		})
	}
}

// verdictOf is the verdict of an error that an object store has made.
func verdictOf(t *testing.T, err error) loader.Verdict {
	t.Helper()
	v, ok := classify(err)
	assert.True(t, ok, "%v", err)
	return v
}

func TestCancelledAndLate(t *testing.T) {
	began, done := make(chan struct{}, 2), make(chan struct{})
	defer close(done)
	server := fakeStore(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			began <- struct{}{}
			<-done
		}
		return false
	})
	r := open(t, targetOf(t, "s3://bucket/p", server.URL)).Run("run")
	body := strings.Repeat("0123456789abcde\n", 1<<20) // more than the kernel buffers

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	assert.Equal(t, loader.Verdict{Applied: loader.Unknown, Class: loader.ClassOther}, verdictOf(t, put(ctx, t, r, newBatch("run", 0, body))))

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	late := loader.Verdict{Applied: loader.Unknown, Retry: true, Class: loader.ClassTimeout}
	assert.Equal(t, late, verdictOf(t, put(ctx, t, r, newBatch("run", 0, body))))
}

func TestNotAStore(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html>Welcome to nginx!</html>")
	}))
	defer server.Close()
	backendtest.Credentials(t)
	_, err := Open(t.Context(), targetOf(t, "s3://bucket/p", server.URL), backendtest.Deps())
	require.Contains(t, loader.Explain(err), "is the endpoint an S3 server?")
}

func TestNoCredentials(t *testing.T) {
	target := targetOf(t, "s3://bucket/p", fakeStore(t, nil).URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	for _, profile := range []string{"", "no-such-profile"} {
		t.Setenv("AWS_PROFILE", profile)
		_, err := Open(t.Context(), target, backendtest.Deps())
		var known *loader.Error
		require.ErrorAs(t, err, &known)
		assert.Contains(t, known.Hint, "AWS_ACCESS_KEY_ID")
		assert.Equal(t, loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassPermission}, verdictOf(t, err), "%v", err)
	}
}

// The pool keeps as many connections as there are workers.
func TestConnections(t *testing.T) {
	backendtest.Credentials(t)
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(backendtest.StoreHandler(t, nil))
	defer server.Close()
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	const workers = 32
	r := open(t, targetOf(t, "s3://bucket/p", server.URL)).Run("run")
	body := strings.Repeat("0123456789abcde\n", 4<<10)
	var all sync.WaitGroup
	for w := range int64(workers) {
		all.Go(func() {
			for n := range int64(10) {
				assert.NoError(t, put(t.Context(), t, r, newBatch("run", 10*w+n, body)))
			}
		})
	}
	all.Wait()
	assert.LessOrEqual(t, opened.Load(), int64(2*workers))
}
