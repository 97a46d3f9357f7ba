package objstore

import (
	"bufio"
	"context"
	"errors"
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

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// What the SDK makes of a batch: one request, its payload unsigned and without checksums, no question before the body.
func TestRequest(t *testing.T) {
	credentials(t)
	t.Setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_supported")
	var asked requests
	server := fakeStore(t, func(_ http.ResponseWriter, r *http.Request) bool { asked.add(r); return false })
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

// Attempts are the engine's to count: whatever the environment says, the SDK makes one.
func TestFaults(t *testing.T) {
	rights := "s3:PutObject"
	for _, c := range []struct {
		status  int
		code    string
		header  [2]string
		want    loader.Verdict
		hint    string
		message string
	}{
		{
			status: 503, code: "SlowDown", hint: "fewer workers",
			want: loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassThrottled},
		},
		{
			status: 503, code: "SlowDown", header: [2]string{"Retry-After", "7"},
			want: loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassThrottled, After: 7 * time.Second},
		},
		{status: 400, code: "RequestLimitExceeded", want: loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassThrottled}},
		{status: 429, code: "Whatever", want: loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassThrottled}},
		{status: 503, code: "ServiceUnavailable", want: loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassThrottled}},
		{status: 500, code: "InternalError", want: loader.Verdict{Applied: loader.Unknown, Retry: true, Class: loader.ClassOther}},
		{status: 502, want: loader.Verdict{Applied: loader.Unknown, Retry: true, Class: loader.ClassOther}},
		{status: 400, code: "RequestTimeout", want: loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassTimeout}},
		{status: 400, code: "IncompleteBody", want: loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassConnection}},
		{status: 400, code: "ExpiredToken", hint: "have expired", want: loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{status: 403, code: "InvalidAccessKeyId", hint: "AWS_ACCESS_KEY_ID", want: loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{status: 404, code: "XAdminUserNotFound", hint: "AWS_ACCESS_KEY_ID", want: loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{status: 403, code: "SignatureDoesNotMatch", hint: "AWS_SECRET_ACCESS_KEY", want: loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{status: 403, code: "AccessDenied", hint: rights, want: loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{status: 403, hint: rights, want: loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{status: 403, code: "RequestTimeTooSkewed", hint: "clock", want: loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{
			status: 301, code: "PermanentRedirect", header: [2]string{"X-Amz-Bucket-Region", "eu-central-1"}, hint: "?region=eu-central-1",
			want: loader.Verdict{Applied: loader.No, Class: loader.ClassOther},
		},
		{
			status: 400, code: "AuthorizationHeaderMalformed", header: [2]string{"X-Amz-Bucket-Region", "eu-central-1"}, hint: "?region=eu-central-1",
			want: loader.Verdict{Applied: loader.No, Class: loader.ClassOther},
		},
		{status: 400, code: "AuthorizationHeaderMalformed", hint: "another region", want: loader.Verdict{Applied: loader.No, Class: loader.ClassOther}},
		{
			status: 307, code: "TemporaryRedirect", header: [2]string{"Location", "http://elsewhere.invalid/"}, hint: "another region",
			want: loader.Verdict{Applied: loader.No, Class: loader.ClassOther},
		},
		{status: 404, code: "NoSuchBucket", hint: "make the bucket", want: loader.Verdict{Applied: loader.No, Class: loader.ClassMissing}},
		{status: 400, code: "EntityTooLarge", hint: "--batch-bytes", want: loader.Verdict{Applied: loader.No, Class: loader.ClassTooLarge}},
		{status: 507, code: "XMinioStorageFull", hint: "make room", want: loader.Verdict{Applied: loader.No, Class: loader.ClassDiskFull}},
		{status: 400, code: "InvalidArgument", want: loader.Verdict{Applied: loader.No, Class: loader.ClassOther}},
	} {
		t.Run(fmt.Sprint(c.status, " ", c.code), func(t *testing.T) {
			credentials(t)
			t.Setenv("AWS_MAX_ATTEMPTS", "5")
			t.Setenv("AWS_RETRY_MODE", "adaptive")
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
			target := targetOf(t, "s3://bucket/p", server.URL)
			r := open(t, target).Run("run")

			broken.Store(true)
			err := put(t.Context(), t, r, newBatch("run", 0, "row\n"))
			check := func(err error) {
				var known *loader.Error
				require.ErrorAs(t, err, &known)
				assert.Contains(t, known.Hint, c.hint)
				assertNoSecret(t, err)
				if c.code != "" {
					assert.Contains(t, err.Error(), c.code+": words of the server")
				}
				got, ok := classify(err)
				assert.True(t, ok)
				assert.Equal(t, c.want, got)
			}
			check(err)
			assert.Len(t, asked.of(http.MethodPut), 1)

			_, err = Open(t.Context(), target, deps())
			check(err)
			assert.Contains(t, err.Error(), "open s3://bucket/p")

			broken.Store(false)
			require.NoError(t, put(t.Context(), t, r, newBatch("run", 0, "row\n")))
		})
	}
}

func assertNoSecret(t *testing.T, err error) {
	t.Helper()
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", err)} {
		assert.NotContains(t, text, testSecret)
		assert.NotContains(t, text, testToken)
	}
}

// A server may refuse while most of the body is still to come; then it closes, or just stops reading.
func TestAnswerInTheBody(t *testing.T) {
	for name, closes := range map[string]bool{"closes": true, "stops reading": false} {
		t.Run(name, func(t *testing.T) {
			credentials(t)
			done := make(chan struct{})
			defer close(done)
			address := rawStore(t, func(c net.Conn, in *bufio.Reader, r *http.Request) {
				_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
				text := "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
				fmt.Fprintf(c, "HTTP/1.1 503 Slow Down\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
				if !closes {
					<-done
				}
			})
			r := open(t, targetOf(t, "s3://bucket/p", "http://"+address)).Run("run")
			err := put(t.Context(), t, r, newBatch("run", 0, strings.Repeat("0123456789abcde\n", 1<<20)))
			v, ok := classify(err)
			assert.True(t, ok, "%v", err)
			assert.Equal(t, loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassThrottled}, v, "%v", err)
		})
	}
}

// The object is there and the answer is not: sending it again changes nothing.
func TestAnswerLost(t *testing.T) {
	credentials(t)
	var cut atomic.Bool
	server := fakeStore(t, nil)
	inner := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && cut.CompareAndSwap(true, false) {
			inner.ServeHTTP(httptest.NewRecorder(), r)
			c, _, err := w.(http.Hijacker).Hijack()
			require.NoError(t, err)
			c.Close()
			return
		}
		inner.ServeHTTP(w, r)
	})
	r := open(t, targetOf(t, "s3://bucket/p", server.URL)).Run("run")
	cut.Store(true)
	err := put(t.Context(), t, r, newBatch("run", 1, "row\n"))
	v, ok := classify(err)
	assert.True(t, ok)
	assert.Equal(t, loader.Verdict{Applied: loader.Unknown, Retry: true, Class: loader.ClassConnection}, v, "%v", err)
	holds, err := r.Holds(t.Context(), loader.Ref{ID: batch.ID{Number: 1}, First: 100, Rows: 100}, batch.CSV)
	require.NoError(t, err)
	assert.True(t, holds)
	require.NoError(t, put(t.Context(), t, r, newBatch("run", 1, "row\n")))
	assert.Len(t, names(t, r), 1)
}

func TestCancelledAndLate(t *testing.T) {
	credentials(t)
	began, done := make(chan struct{}, 2), make(chan struct{})
	defer close(done)
	address := rawStore(t, func(_ net.Conn, _ *bufio.Reader, _ *http.Request) {
		began <- struct{}{}
		<-done
	})
	r := open(t, targetOf(t, "s3://bucket/p", "http://"+address)).Run("run")

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-began
		cancel()
	}()
	v, ok := classify(put(ctx, t, r, newBatch("run", 0, strings.Repeat("0123456789abcde\n", 1<<20))))
	assert.True(t, ok)
	assert.Equal(t, loader.Verdict{Applied: loader.Unknown, Class: loader.ClassOther}, v)

	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	v, ok = classify(put(ctx, t, r, newBatch("run", 0, strings.Repeat("0123456789abcde\n", 1<<20))))
	assert.True(t, ok)
	assert.Equal(t, loader.Verdict{Applied: loader.Unknown, Retry: true, Class: loader.ClassTimeout}, v)
}

func TestNobodyThere(t *testing.T) {
	credentials(t)
	server := fakeStore(t, nil)
	target := targetOf(t, "s3://bucket/p", server.URL)
	s := open(t, target)
	server.Close()
	_ = s.Close()
	err := put(t.Context(), t, s.Run("run"), newBatch("run", 0, "row\n"))
	v, ok := classify(err)
	assert.True(t, ok)
	assert.Equal(t, loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassConnection}, v, "%v", err)
	assert.ErrorContains(t, err, "put p/run/000000000000.csv: dial tcp ")
	assert.ErrorContains(t, err, "connection refused (is the server up, and is this its port?)")
}

func TestNotAStore(t *testing.T) {
	credentials(t)
	for name, text := range map[string]string{"html": "<html>Welcome to nginx!</html>", "nothing of it": "SSH-2.0"} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
			defer server.Close()
			_, err := Open(t.Context(), targetOf(t, "s3://bucket/p", server.URL), deps())
			require.ErrorContains(t, err, "is the endpoint an S3 server?")
		})
	}
}

func TestNoCredentials(t *testing.T) {
	credentials(t)
	server := fakeStore(t, nil)
	target := targetOf(t, "s3://bucket/p", server.URL)
	for name, set := range map[string][2]string{
		"none anywhere":   {"AWS_ACCESS_KEY_ID", ""},
		"no such profile": {"AWS_PROFILE", "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv(set[0], set[1])
			_, err := Open(t.Context(), target, deps())
			var known *loader.Error
			require.ErrorAs(t, err, &known)
			assert.Contains(t, known.Hint, "AWS_ACCESS_KEY_ID")
			v, ok := classify(err)
			assert.True(t, ok)
			assert.Equal(t, loader.ClassPermission, v.Class, "%v", err)
			assert.Equal(t, loader.No, v.Applied)
		})
	}
}

func TestForeignErrors(t *testing.T) {
	_, ok := classify(errors.New("something else"))
	assert.False(t, ok)
	_, ok = classify(&loader.Error{Op: "load", Err: io.EOF})
	assert.False(t, ok)
}

// The bytes of all connections count, and the pool keeps as many as there are workers.
func TestConnections(t *testing.T) {
	credentials(t)
	var opened atomic.Int64
	server := stoppedStore(t, nil)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	dialer := new(netio.Dialer)
	d := deps()
	d.Dial = dialer.DialContext
	const workers = 32
	s, err := Open(t.Context(), targetOf(t, "s3://bucket/p", server.URL), d)
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	r := s.Run("run")
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
	sent := dialer.Sent()
	assert.Greater(t, sent, int64(320*len(body)))
	assert.Less(t, sent, int64(320*len(body)+320*2048))
}

// rawStore answers listings, and hands everything else over with its connection.
func rawStore(t *testing.T, talk func(c net.Conn, in *bufio.Reader, r *http.Request)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					if !isListing(r) {
						talk(c, in, r)
						return
					}
					text := "<ListBucketResult><Name>bucket</Name><IsTruncated>false</IsTruncated></ListBucketResult>"
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
				}
			}()
		}
	}()
	return l.Addr().String()
}
