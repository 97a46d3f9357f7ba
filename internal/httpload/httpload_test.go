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

// script is a server made of plain TCP: talk is called for every connection, which is closed when it returns.
type script struct {
	address     string
	connections atomic.Int64
}

func serve(t *testing.T, talk func(c net.Conn, in *bufio.Reader)) *script {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &script{address: l.Addr().String()}
	var talks sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		talks.Wait()
	})
	talks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			talks.Go(func() {
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(patience))
				talk(c, bufio.NewReader(c))
			})
		}
	})
	return s
}

// head reads a request up to its body.
func head(in *bufio.Reader) (*http.Request, error) { return http.ReadRequest(in) }

func client(t *testing.T, connections int) *httpload.Client {
	c := httpload.NewClient(httpload.Options{Dial: new(net.Dialer).DialContext, Connections: connections})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// guarded is a batch whose buffer is spoiled the moment it is given back, as the ring's next batch would spoil it. The
// race detector sees whoever still reads it.
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
	return c.Do(request(t.Context(), t, address, g))
}

func request(ctx context.Context, t *testing.T, address string, g *guarded) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+address+"/load", nil)
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
		size, skip int
	}{
		"plain":           {size: 4 << 20},
		"small":           {size: 160},
		"empty":           {},
		"multipart":       {head: "--x\r\n\r\n", tail: "\r\n--x--\r\n", size: 1 << 20},
		"long head":       {head: string(bytes.Repeat([]byte("h"), 10_000)), size: 160},
		"head only":       {head: "head"},
		"tail only":       {tail: "tail"},
		"rows left out":   {size: 1600, skip: 7},
		"large with head": {head: "h", tail: "t", size: 8 << 20},
	} {
		for scheme, url := range map[string]string{"http": server.URL, "https": secure.URL} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				g := newGuarded(c.size)
				for i := range g.Rows {
					g.Starts = append(g.Starts, uint32(16*i))
				}
				g.Skip = int64(c.skip)
				want := c.head + string(g.Encoded[16*c.skip:]) + c.tail
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
				assert.EqualValues(t, len(g.Encoded)-16*c.skip, g.Sent())
				g.released(t)
			})
		}
	}
}

// A server that refuses the body answers and closes while most of it is still to come: its answer has to be found.
func TestRefusedEarly(t *testing.T) {
	s := serve(t, func(c net.Conn, in *bufio.Reader) {
		if _, err := head(in); err != nil {
			return
		}
		_, _ = io.CopyN(io.Discard, in, 1<<20)
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 15\r\nConnection: close\r\n\r\nlabel is taken\n")
		// Closing with unread data resets the connection.
	})
	c := client(t, 1)
	for range 5 {
		g := newGuarded(large)
		answer, err := put(t, c, s.address, g)
		g.released(t)
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, answer.Status)
		assert.Equal(t, "label is taken\n", string(answer.Body))
	}
}

// A server that answers and neither reads on nor closes: the answer counts, and the body is let go of.
func TestAnsweredEarlyAndSilent(t *testing.T) {
	done := make(chan struct{})
	s := serve(t, func(c net.Conn, in *bufio.Reader) {
		if _, err := head(in); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 503 Slow Down\r\nContent-Length: 5\r\n\r\nwait\n")
		<-done
	})
	defer close(done)
	g := newGuarded(large)
	answer, err := put(t, client(t, 1), s.address, g)
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, answer.Status)
	g.released(t) // the transport gives the connection up, since nobody reads it
}

// The answer is there and Do has returned while the transport is still writing: the buffer may not be filled anew.
func TestLateReads(t *testing.T) {
	read := make(chan struct{})
	var arrived bytes.Buffer
	finished := make(chan struct{})
	s := serve(t, func(c net.Conn, in *bufio.Reader) {
		defer close(finished)
		if _, err := head(in); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
		<-read
		_, _ = io.Copy(&arrived, in)
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

// Redirects are the caller's: where the body goes next, with which credentials and whether at all.
func TestRedirectNotFollowed(t *testing.T) {
	s := serve(t, func(c net.Conn, in *bufio.Reader) {
		if _, err := head(in); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://elsewhere.invalid/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	})
	g := newGuarded(large)
	answer, err := put(t, client(t, 1), s.address, g)
	g.released(t)
	require.NoError(t, err)
	assert.Equal(t, http.StatusTemporaryRedirect, answer.Status)
	assert.Equal(t, "http://elsewhere.invalid/", answer.Header.Get("Location"))
	assert.EqualValues(t, 1, s.connections.Load())
}

func TestExpectContinue(t *testing.T) {
	var sawBody atomic.Bool
	s := serve(t, func(c net.Conn, in *bufio.Reader) {
		if _, err := head(in); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://elsewhere.invalid/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		_, err := in.ReadByte()
		sawBody.Store(err == nil)
	})
	c := httpload.NewClient(httpload.Options{Dial: new(net.Dialer).DialContext, ExpectContinue: patience})
	g := newGuarded(large)
	r := request(t.Context(), t, s.address, g)
	r.Header.Set("Expect", "100-continue")
	answer, err := c.Do(r)
	require.NoError(t, err)
	assert.Equal(t, http.StatusTemporaryRedirect, answer.Status)
	g.released(t)
	require.NoError(t, c.Close())
	assert.False(t, sawBody.Load(), "the body is untouched")
	assert.Zero(t, g.Sent())
}

// Nothing reports whether a request whose answer is lost was carried out, and the transport does not try again by itself.
func TestAnswerLost(t *testing.T) {
	var requests atomic.Int64
	s := serve(t, func(_ net.Conn, in *bufio.Reader) {
		r, err := head(in)
		if err != nil {
			return
		}
		requests.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
	})
	g := newGuarded(1 << 20)
	_, err := put(t, client(t, 1), s.address, g)
	g.released(t)
	require.Error(t, err)
	assert.False(t, loader.NotSent(err), "%v", err)
	assert.True(t, httpload.Broken(err), "%v", err)
	assert.EqualValues(t, 1, requests.Load())
}

func TestAnswerCut(t *testing.T) {
	s := serve(t, func(c net.Conn, in *bufio.Reader) {
		if r, err := head(in); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"Status\": \"Succ")
		}
	})
	g := newGuarded(1 << 20)
	_, err := put(t, client(t, 1), s.address, g)
	g.released(t)
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.ErrorContains(t, err, "/load (status 200)")
	assert.True(t, httpload.Broken(err))
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
	hangUp := make(chan struct{})
	s := serve(t, func(c net.Conn, in *bufio.Reader) {
		if r, err := head(in); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			<-hangUp
		}
	})
	conn := &closing{closed: make(chan struct{})}
	c := httpload.NewClient(httpload.Options{Connections: 1, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		inner, err := new(net.Dialer).DialContext(ctx, network, address)
		conn.Conn = inner
		return conn, err
	}})
	first := newGuarded(100)
	_, err := put(t, c, s.address, first)
	require.NoError(t, err)
	first.released(t)

	reused := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		assert.True(t, i.Reused)
		close(hangUp)
		<-conn.closed
	}})
	second := newGuarded(100)
	_, err = c.Do(request(reused, t, s.address, second))
	second.released(t)
	require.ErrorContains(t, err, "server closed idle connection")
	assert.True(t, httpload.Broken(err))
	assert.False(t, loader.NotSent(err))
}

func TestAnswerTooLong(t *testing.T) {
	s := serve(t, func(c net.Conn, in *bufio.Reader) {
		if r, err := head(in); err == nil {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
			_, _ = c.Write(make([]byte, httpload.MaxAnswer+2))
		}
	})
	g := newGuarded(1 << 20)
	_, err := put(t, client(t, 1), s.address, g)
	g.released(t)
	assert.ErrorContains(t, err, "longer than")
}

func TestSlowServer(t *testing.T) {
	s := serve(t, func(c net.Conn, in *bufio.Reader) {
		r, err := head(in)
		if err != nil {
			return
		}
		piece := make([]byte, 64<<10)
		for range 50 {
			n, _ := in.Read(piece)
			r.ContentLength -= int64(n)
			time.Sleep(time.Millisecond)
		}
		_, _ = io.CopyN(io.Discard, in, r.ContentLength)
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	g := newGuarded(large)
	answer, err := put(t, client(t, 1), s.address, g)
	require.NoError(t, err)
	assert.Equal(t, "ok", string(answer.Body))
	g.released(t)
}

// 64 workers use 64 connections for any number of requests.
func TestConnectionsAreKept(t *testing.T) {
	const workers, requests = 64, 20
	s := serve(t, func(c net.Conn, in *bufio.Reader) {
		for {
			r, err := head(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
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
	// At the start a request may get the connection that another one has just let go of, while its own is still being
	// made: that one is kept for later.
	assert.LessOrEqual(t, s.connections.Load(), int64(2*workers))
}

// Cancelling closes the connection, which is what the server sees, and gives the buffer back.
func TestCancelClosesTheConnection(t *testing.T) {
	for _, when := range []string{"in the body", "before the answer"} {
		t.Run(when, func(t *testing.T) {
			began, ended := make(chan struct{}), make(chan error, 1)
			resume := make(chan struct{})
			s := serve(t, func(_ net.Conn, in *bufio.Reader) {
				r, err := head(in)
				if err != nil {
					return
				}
				if when == "before the answer" {
					_, _ = io.Copy(io.Discard, r.Body)
				}
				close(began)
				<-resume
				_, err = io.Copy(io.Discard, in)
				ended <- err
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-began
				cancel()
			}()
			g := newGuarded(large)
			_, err := client(t, 1).Do(request(ctx, t, s.address, g))
			assert.ErrorIs(t, err, context.Canceled)
			assert.False(t, loader.NotSent(err))
			assert.False(t, httpload.Broken(err))
			g.released(t)
			close(resume)
			<-ended // the end of the connection, or its reset
		})
	}
}

func TestNotSent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refused := l.Addr().String()
	l.Close()
	plain := serve(t, func(c net.Conn, _ *bufio.Reader) { _, _ = io.WriteString(c, "SSH-2.0-nobody\r\n") })
	strange := httptest.NewTLSServer(http.NotFoundHandler())
	defer strange.Close()

	for name, url := range map[string]string{
		"refused":              "http://" + refused,
		"no such name":         "http://host.invalid",
		"no TLS there":         "https://" + plain.address,
		"unknown certificate":  strange.URL,
		"refused before TLS":   "https://" + refused,
		"name without address": "http://localhost.invalid:1",
	} {
		t.Run(name, func(t *testing.T) {
			c := httpload.NewClient(httpload.Options{Dial: new(net.Dialer).DialContext, TLS: &tls.Config{}})
			g := newGuarded(160)
			r, err := http.NewRequest(http.MethodPut, url, nil)
			require.NoError(t, err)
			httpload.Attach(r, nil, g.Batch, nil)
			_, err = c.Do(r)
			g.released(t)
			require.Error(t, err)
			assert.True(t, loader.NotSent(err), "%v", err)
		})
	}
	assert.False(t, loader.NotSent(errors.New("anything")))
	assert.False(t, httpload.Broken(errors.New("anything")))
}
