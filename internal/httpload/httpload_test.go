package httpload_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// patience is how long anything may take that must not hang.
const patience = 20 * time.Second

// script is a server made of plain TCP. It passes every request to answer, and closes the connection when it returns
// false.
type script struct {
	address     string
	connections atomic.Int64
}

func serve(t *testing.T, answer func(c net.Conn, r *http.Request) (keep bool)) *script {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serveOn(t, l, answer)
}

func serveOn(t *testing.T, l net.Listener, answer func(c net.Conn, r *http.Request) (keep bool)) *script {
	s := &script{address: l.Addr().String()}
	var tasks sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		tasks.Wait()
	})
	tasks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			tasks.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(patience))
				for in := bufio.NewReader(c); ; {
					if r, err := http.ReadRequest(in); err != nil || !answer(c, r) {
						return
					}
				}
			})
		}
	})
	return s
}

// say writes a head, and a body of a known length.
func say(c net.Conn, status, body string) {
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

func client(t *testing.T, connections int) *httpload.Client {
	c := httpload.NewClient(httpload.Options{Dial: new(net.Dialer).DialContext, Connections: connections, ExpectContinue: patience})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// guarded is a batch whose buffer is spoiled the moment it is given back, as the ring's next batch would spoil it. The
// race detector sees a read after that.
type guarded struct {
	*batch.Batch
	freed chan struct{}
}

func newGuarded(size int) *guarded {
	g := &guarded{freed: make(chan struct{})}
	g.Batch = &batch.Batch{Encoded: bytes.Repeat([]byte("0123456789abcde\n"), size/16), Rows: int64(size / 16)}
	g.Free = func() {
		clear(g.Encoded)
		close(g.freed)
	}
	g.Hold()
	return g
}

// released waits for the buffer to come back.
func (g *guarded) released(t *testing.T) {
	t.Helper()
	g.Release()
	select {
	case <-g.freed:
	case <-time.After(patience):
		t.Error("a body is still open")
	}
}

func put(t *testing.T, c *httpload.Client, address string, g *guarded) (*httpload.Response, error) {
	t.Helper()
	return c.Do(request(t.Context(), t, "http://"+address, g))
}

func request(ctx context.Context, t *testing.T, url string, g *guarded) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, url+"/load", nil)
	require.NoError(t, err)
	httpload.Attach(r, nil, g.Batch, nil)
	return r
}

const large = 16 << 20 // more than the kernel buffers

func TestBodiesArriveWhole(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil || int64(len(got)) != r.ContentLength {
			http.Error(w, fmt.Sprint(len(got), err), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(got)
	}))
	defer server.Close()
	secure := httptest.NewTLSServer(server.Config.Handler)
	defer secure.Close()
	trusting := secure.Client().Transport.(*http.Transport).TLSClientConfig

	for name, c := range map[string]struct {
		head, tail string
		size       int
	}{
		"plain":           {size: 4 << 20},
		"small":           {size: 160},
		"empty":           {},
		"multipart":       {head: "--x\r\n\r\n", tail: "\r\n--x--\r\n", size: 1 << 20},
		"long head":       {head: strings.Repeat("h", 10_000), size: 160},
		"head only":       {head: "head"},
		"tail only":       {tail: "tail"},
		"large with head": {head: "h", tail: "t", size: 8 << 20},
	} {
		for scheme, url := range map[string]string{"http": server.URL, "https": secure.URL} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				g := newGuarded(c.size)
				want := c.head + string(g.Encoded) + c.tail
				loads := httpload.NewClient(httpload.Options{Dial: new(net.Dialer).DialContext, TLS: trusting.Clone()})
				defer func() { _ = loads.Close() }()
				r, err := http.NewRequest(http.MethodPut, url, nil)
				require.NoError(t, err)
				httpload.Attach(r, []byte(c.head), g.Batch, []byte(c.tail))
				assert.EqualValues(t, len(want), r.ContentLength)
				answer, err := loads.Do(r)
				require.NoError(t, err)
				assert.Equal(t, http.StatusOK, answer.Status)
				assert.True(t, want == string(answer.Body), "%d bytes came back, want %d", len(answer.Body), len(want))
				assert.EqualValues(t, len(g.Encoded), g.Sent())
				g.released(t)
			})
		}
	}
}

// A server that refuses the body answers and closes while most of it is still to come: its answer has to be found.
func TestRefusedEarly(t *testing.T) {
	certified := httptest.NewTLSServer(nil)
	defer certified.Close()
	for scheme, config := range map[string]*tls.Config{"http": nil, "https": certified.TLS} {
		t.Run(scheme, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			if config != nil {
				l = tls.NewListener(l, config)
			}
			s := serveOn(t, l, func(c net.Conn, r *http.Request) bool {
				_, _ = io.CopyN(io.Discard, r.Body, 1<<20)
				say(c, "400 Bad Request\r\nConnection: close", "label is taken\n")
				return false // closing with unread data resets the connection
			})
			c := httpload.NewClient(httpload.Options{Dial: new(net.Dialer).DialContext, TLS: &tls.Config{InsecureSkipVerify: true}})
			defer func() { _ = c.Close() }()
			for range 5 {
				g := newGuarded(large)
				answer, err := c.Do(request(t.Context(), t, scheme+"://"+s.address, g))
				g.released(t)
				require.NoError(t, err)
				assert.Equal(t, http.StatusBadRequest, answer.Status)
				assert.Equal(t, "label is taken\n", string(answer.Body))
			}
		})
	}
}

// A server that answers and neither reads on nor closes: the answer counts, and the body is released.
func TestAnsweredEarlyAndSilent(t *testing.T) {
	done := make(chan struct{})
	s := serve(t, func(c net.Conn, _ *http.Request) bool {
		say(c, "503 Slow Down", "wait\n")
		<-done
		return false
	})
	defer close(done)
	g := newGuarded(large)
	answer, err := put(t, client(t, 1), s.address, g)
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, answer.Status)
	g.released(t) // the transport gives up the connection, which the server does not read
}

// The answer is there and Do has returned while the transport is still writing: the buffer must not be filled again.
func TestLateReads(t *testing.T) {
	read, finished := make(chan struct{}), make(chan struct{})
	var arrived bytes.Buffer
	s := serve(t, func(c net.Conn, r *http.Request) bool {
		defer close(finished)
		say(c, "200 OK", "")
		<-read
		_, _ = io.Copy(&arrived, r.Body)
		return false
	})
	g := newGuarded(large)
	answer, err := put(t, client(t, 1), s.address, g)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, answer.Status)
	close(read)
	g.released(t)
	<-finished
	assert.NotContains(t, arrived.String(), "\x00", "bytes of the next batch were sent")
}

// Redirects are the caller's: where the body goes next, with which credentials and whether at all. A server that is asked
// before gets no body.
func TestRedirect(t *testing.T) {
	for _, expect := range []string{"", "100-continue"} {
		var sawBody atomic.Bool
		s := serve(t, func(c net.Conn, r *http.Request) bool {
			say(c, "307 Temporary Redirect\r\nLocation: http://elsewhere.invalid/\r\nConnection: close", "")
			_, err := r.Body.Read(make([]byte, 1))
			sawBody.Store(err == nil)
			return false
		})
		c, g := client(t, 1), newGuarded(large)
		r := request(t.Context(), t, "http://"+s.address, g)
		r.Header.Set("Expect", expect)
		answer, err := c.Do(r)
		require.NoError(t, err)
		assert.Equal(t, http.StatusTemporaryRedirect, answer.Status)
		assert.Equal(t, "http://elsewhere.invalid/", answer.Header.Get("Location"))
		g.released(t)
		require.NoError(t, c.Close())
		assert.EqualValues(t, 1, s.connections.Load())
		if expect != "" {
			assert.False(t, sawBody.Load())
			assert.Zero(t, g.Sent())
		}
	}
}

// Nothing tells whether a request without a whole answer was carried out, and the transport does not send it again.
func TestNoWholeAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		answer, want string
		broken       bool
	}{
		"lost":     {want: "EOF", broken: true},
		"cut":      {answer: "Content-Length: 100\r\n\r\n{\"Status\": \"Succ", want: "/load (status 200): unexpected EOF", broken: true},
		"too long": {answer: "\r\n" + strings.Repeat("x", httpload.MaxAnswer+2), want: "the answer is longer than 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(conn net.Conn, r *http.Request) bool {
				_, _ = io.Copy(io.Discard, r.Body)
				if c.answer != "" {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"+c.answer)
				}
				return false
			})
			g := newGuarded(1 << 20)
			_, err := put(t, client(t, 1), s.address, g)
			g.released(t)
			require.ErrorContains(t, err, c.want)
			assert.False(t, loader.NotSent(err))
			assert.Equal(t, c.broken, httpload.Broken(err))
			assert.EqualValues(t, 1, s.connections.Load())
		})
	}
}

// closing tells when net/http has noticed the end of a connection and closes it.
type closing struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *closing) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A server that closes an idle connection just when a request takes it: net/http's error has no type and no cause.
func TestIdleConnectionClosedUnderARequest(t *testing.T) {
	end := make(chan struct{})
	s := serve(t, func(c net.Conn, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		say(c, "200 OK", "")
		<-end
		return false
	})
	conn := &closing{closed: make(chan struct{})}
	c := httpload.NewClient(httpload.Options{Connections: 1, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		inner, err := new(net.Dialer).DialContext(ctx, network, address)
		conn.Conn = inner
		return conn, err
	}})
	first, second := newGuarded(100), newGuarded(100)
	_, err := put(t, c, s.address, first)
	require.NoError(t, err)
	first.released(t)

	reused := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		assert.True(t, i.Reused)
		close(end)
		<-conn.closed
	}})
	_, err = c.Do(request(reused, t, "http://"+s.address, second))
	second.released(t)
	require.ErrorContains(t, err, "server closed idle connection")
	assert.True(t, httpload.Broken(err))
	assert.False(t, loader.NotSent(err))
}

// 32 workers use 32 connections for any number of requests.
func TestConnectionsAreKept(t *testing.T) {
	const workers, requests = 32, 10
	s := serve(t, func(c net.Conn, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		say(c, "200 OK", "ok")
		return true
	})
	c := client(t, workers)
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range requests {
				g := newGuarded(64 << 10)
				_, err := put(t, c, s.address, g)
				assert.NoError(t, err)
				g.released(t)
			}
		})
	}
	all.Wait()
	// At the start a request may get the connection that another one has just returned, while its own is still being
	// made: that one is kept for later.
	assert.LessOrEqual(t, s.connections.Load(), int64(2*workers))
}

// Cancelling closes the connection, which is what the server sees, and gives the buffer back.
func TestCancelClosesTheConnection(t *testing.T) {
	for _, when := range []string{"in the body", "before the answer"} {
		t.Run(when, func(t *testing.T) {
			began, resume, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
			s := serve(t, func(c net.Conn, r *http.Request) bool {
				if when == "before the answer" {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				close(began)
				<-resume
				_, _ = io.Copy(io.Discard, c) // to the end of the connection, or its reset
				close(ended)
				return false
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-began
				cancel()
			}()
			g := newGuarded(large)
			_, err := client(t, 1).Do(request(ctx, t, "http://"+s.address, g))
			assert.ErrorIs(t, err, context.Canceled)
			assert.False(t, loader.NotSent(err))
			assert.False(t, httpload.Broken(err))
			g.released(t)
			close(resume)
			<-ended
		})
	}
}

func TestNotSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refused := l.Addr().String()
	_ = l.Close()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer plain.Close()
	go func() {
		if c, err := plain.Accept(); err == nil {
			_, _ = c.Read(make([]byte, 64<<10))
			_, _ = io.WriteString(c, "SSH-2.0-other\r\n")
			_ = c.Close()
		}
	}()
	unknown := httptest.NewTLSServer(http.NotFoundHandler())
	defer unknown.Close()
	for name, url := range map[string]string{
		"refused": "http://" + refused, "no such name": "http://host.invalid", "no TLS there": "https://" + plain.Addr().String(),
		"unknown certificate": unknown.URL,
	} {
		t.Run(name, func(t *testing.T) {
			c := httpload.NewClient(httpload.Options{Dial: new(net.Dialer).DialContext, TLS: &tls.Config{}})
			g := newGuarded(160)
			_, err = c.Do(request(t.Context(), t, url, g))
			g.released(t)
			require.Error(t, err)
			assert.True(t, loader.NotSent(err), "%v", err)
		})
	}
	assert.False(t, loader.NotSent(errors.New("anything")))
	assert.False(t, httpload.Broken(errors.New("anything")))
}
