package netio_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/event"
)

// peer serves every connection with talk, which need not close it.
func peer(t testing.TB, net_, address string, talk func(net.Conn)) string {
	l, err := net.Listen(net_, address)
	require.NoError(t, err)
	var tasks sync.WaitGroup
	t.Cleanup(tasks.Wait)
	t.Cleanup(func() { _ = l.Close() })
	tasks.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tasks.Go(func() {
				defer c.Close()
				talk(c)
			})
		}
	})
	return l.Addr().String()
}

func connect(t testing.TB, d *netio.Dialer, net_, address string) net.Conn {
	c, err := d.DialContext(t.Context(), net_, address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAwaited(t *testing.T) {
	const thinks = 60 * time.Millisecond
	address := peer(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
		for question := make([]byte, 1); ; {
			if _, err := io.ReadFull(c, question); err != nil {
				return
			}
			if question[0] == 't' {
				time.Sleep(thinks)
			}
			_, _ = c.Write(question)
		}
	})
	var d netio.Dialer
	c := connect(t, &d, "tcp", address)
	dialled := d.Sockets()
	require.EqualValues(t, 1, dialled.Dialled)
	require.EqualValues(t, 1, dialled.Turns, "a dial is a round trip")

	answer := make([]byte, 1)
	for _, question := range []string{"q", "t", "t"} {
		_, err := c.Write([]byte(question))
		require.NoError(t, err)
		_, err = io.ReadFull(c, answer)
		require.NoError(t, err)
	}
	s := d.Sockets()
	require.EqualValues(t, 4, s.Turns)
	require.GreaterOrEqual(t, s.Awaited-dialled.Awaited, 2*thinks.Seconds())
	require.Less(t, s.RoundTrips, thinks.Seconds(), "the quick answer is the round trip")
	require.Zero(t, s.Blocked)
	require.EqualValues(t, 1, s.Open)

	// A question without an answer yet counts as far as it has come.
	_, err := c.Write([]byte("t"))
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.ReadFull(c, answer)
	}()
	require.Eventually(t, func() bool { return d.Sockets().Awaited-s.Awaited > thinks.Seconds()/4 }, 10*time.Second, time.Millisecond)
	<-done

	open := d.Sockets()
	require.NoError(t, c.Close())
	require.Error(t, c.Close())
	closed := d.Sockets()
	require.Zero(t, closed.Open)
	require.Equal(t, open.Turns, closed.Turns, "a closed connection stays in the account, once")
	require.InDelta(t, open.Awaited, closed.Awaited, 0.001)
}

// The kernel's clock has not moved on when a small question is answered at once. All of that wait came after it had gone out.
func TestQuickAnswers(t *testing.T) {
	address := peer(t, "tcp", "127.0.0.1:0", func(c net.Conn) { _, _ = io.Copy(struct{ io.Writer }{c}, c) })
	var d netio.Dialer
	c := connect(t, &d, "tcp", address)
	text := make([]byte, 1)
	for before := d.Sockets().Out; before < 0.001; { // ten to a hundred of them
		_, err := c.Write(text)
		require.NoError(t, err)
		_, err = io.ReadFull(c, text)
		require.NoError(t, err)
		now := d.Sockets().Out
		require.Greater(t, now, before)
		before = now
	}
}

// A wait without an answer still counts: otherwise the sum over all connections would fall.
func TestAwaitedWithoutAnswer(t *testing.T) {
	const patience = 60 * time.Millisecond
	answer := make([]byte, 1)
	for name, c := range map[string]struct {
		talk func(net.Conn)
		give func(net.Conn)
		want error
	}{
		"the server closes": {
			talk: func(c net.Conn) { _, _ = io.ReadFull(c, make([]byte, 1)); time.Sleep(patience) },
			give: func(net.Conn) {}, want: io.EOF,
		},
		"a deadline": {
			talk: func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
			give: func(c net.Conn) { _ = c.SetReadDeadline(time.Now().Add(patience)) }, want: os.ErrDeadlineExceeded,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var d netio.Dialer
			conn := connect(t, &d, "tcp", peer(t, "tcp", "127.0.0.1:0", c.talk))
			defer conn.Close() // before the peer is waited for
			before := d.Sockets()
			_, err := conn.Write([]byte("q"))
			require.NoError(t, err)
			c.give(conn)
			_, err = conn.Read(answer)
			require.ErrorIs(t, err, c.want)
			after := d.Sockets()
			require.GreaterOrEqual(t, after.Awaited-before.Awaited, patience.Seconds()/2)
			require.LessOrEqual(t, after.Out, after.Awaited)
			require.Equal(t, before.Turns, after.Turns, "no answer")
			require.Equal(t, before.RoundTrips, after.RoundTrips, "and no round trip")
		})
	}
	t.Run("without a question", func(t *testing.T) {
		var d netio.Dialer
		conn := connect(t, &d, "tcp", peer(t, "tcp", "127.0.0.1:0", func(net.Conn) { time.Sleep(patience) }))
		before := d.Sockets()
		_, err := conn.Read(answer)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, before.Awaited, d.Sockets().Awaited)
	})
}

// A transport always reads; without a question it does not wait.
func TestIdleConnectionsAwaitNothing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(20 * time.Millisecond)
	}))
	defer server.Close()
	var d netio.Dialer
	transport := &http.Transport{DialContext: d.DialContext}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	ask := func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, server.URL, bytes.NewReader(make([]byte, 1<<20)))
		require.NoError(t, err)
		answer, err := client.Do(r)
		require.NoError(t, err)
		_, _ = io.Copy(io.Discard, answer.Body)
		require.NoError(t, answer.Body.Close())
	}
	ask()
	before := d.Sockets()
	time.Sleep(100 * time.Millisecond)
	require.Equal(t, before.Awaited, d.Sockets().Awaited)
	asked := time.Now()
	ask()
	took := time.Since(asked)
	after := d.Sockets()
	require.EqualValues(t, 1, after.Turns-before.Turns)
	require.GreaterOrEqual(t, after.Awaited-before.Awaited, 0.020)
	require.LessOrEqual(t, after.Awaited-before.Awaited, took.Seconds(), "the pause does not count")
}

// stuck accepts and reads nothing until it may.
func stuck(t testing.TB, net_, address string) (at string, mayRead chan struct{}, sum func() [32]byte) {
	mayRead = make(chan struct{})
	sums := make(chan [32]byte, 1)
	at = peer(t, net_, address, func(c net.Conn) {
		<-mayRead
		h := sha256.New()
		_, _ = io.Copy(h, c)
		select {
		case sums <- [32]byte(h.Sum(nil)):
		default:
		}
	})
	return at, mayRead, func() [32]byte { return <-sums }
}

func TestBlocked(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells when a write waits")
	}
	data := make([]byte, 64<<20) // more than any buffers hold
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	want := sha256.Sum256(data)
	write := func(c net.Conn) (int64, error) { n, err := c.Write(data); return int64(n), err }
	buffers := func(c net.Conn) (int64, error) {
		var all net.Buffers
		for rest, n := data, 0; len(rest) > 0; n++ {
			size := min(n%3*10_000, len(rest)) // empty ones, too, and more than one call takes
			all, rest = append(all, rest[:size]), rest[size:]
		}
		return c.(interface {
			WriteBuffers(b *net.Buffers) (int64, error)
		}).WriteBuffers(&all)
	}
	for name, c := range map[string]struct {
		net, address string
		write        func(net.Conn) (int64, error)
	}{
		"tcp": {"tcp", "127.0.0.1:0", write}, "unix": {"unix", filepath.Join(t.TempDir(), "socket"), write},
		"buffers": {"tcp", "127.0.0.1:0", buffers},
	} {
		t.Run(name, func(t *testing.T) {
			address, mayRead, sum := stuck(t, c.net, c.address)
			var d netio.Dialer
			conn := connect(t, &d, c.net, address)
			written := make(chan error, 1)
			go func() {
				n, err := c.write(conn)
				if err == nil && n != int64(len(data)) {
					err = io.ErrShortWrite
				}
				_ = conn.Close()
				written <- err
			}()
			require.Eventually(t, func() bool { return d.Sockets().Blocked > 0.02 }, 10*time.Second, time.Millisecond,
				"a wait counts as long as it goes on")
			close(mayRead)
			require.NoError(t, <-written)
			require.Equal(t, want, sum())
			s := d.Sockets()
			require.EqualValues(t, len(data), d.Sent())
			require.Equal(t, c.net == "tcp", s.Kernel)
			if c.net == "tcp" {
				require.Greater(t, s.RwndLimited, 0.01, "the receiver's window was full")
				require.GreaterOrEqual(t, s.Busy, s.RwndLimited)
				require.Positive(t, s.MinRTT)
				require.Positive(t, s.Segments)
			}
		})
	}
}

// Drivers give a load up by a deadline in the past or by closing the connection, and tell errors by their kind.
func TestWritesEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(net.Conn)
		want error
		open int64
	}{
		"by a deadline": {func(c net.Conn) { _ = c.SetWriteDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded, 1},
		"by closing":    {func(c net.Conn) { _ = c.Close() }, net.ErrClosed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			address, mayRead, _ := stuck(t, "tcp", "127.0.0.1:0")
			defer close(mayRead)
			var d netio.Dialer
			conn := connect(t, &d, "tcp", address)
			written := make(chan error, 1)
			go func() {
				_, err := conn.Write(make([]byte, 64<<20))
				written <- err
			}()
			require.Eventually(t, func() bool { return d.Sent() > 0 || d.Sockets().Busy > 0 }, 10*time.Second, time.Millisecond)
			c.end(conn)
			err := <-written
			require.ErrorIs(t, err, c.want)
			require.True(t, strings.HasPrefix(err.Error(), "write tcp "), err)
			require.Equal(t, c.open, d.Sockets().Open)
		})
	}
	t.Run("by the other side", func(t *testing.T) {
		address := peer(t, "tcp", "127.0.0.1:0", func(net.Conn) {})
		var d netio.Dialer
		conn := connect(t, &d, "tcp", address)
		var err error
		require.Eventually(t, func() bool {
			_, err = conn.Write(make([]byte, 1<<20))
			return err != nil
		}, 10*time.Second, time.Millisecond)
		var call *os.SyscallError
		require.ErrorAs(t, err, &call)
		require.Contains(t, []error{syscall.EPIPE, syscall.ECONNRESET}, call.Err)
	})
}

// What fails to connect has waited, too, and leaves nothing behind.
func TestFailedDials(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	var d netio.Dialer
	_, err = d.DialContext(t.Context(), "tcp", l.Addr().String())
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.DialContext(ended, "tcp", l.Addr().String())
	require.ErrorIs(t, err, context.Canceled)
	s := d.Sockets()
	require.Positive(t, s.Awaited)
	s.Awaited, s.RoundTrips, s.Turns = 0, 0, 0
	require.Equal(t, event.Sockets{}, s)
}

func TestSocketsAreSafeForConcurrentUse(t *testing.T) {
	address := peer(t, "tcp", "127.0.0.1:0", func(c net.Conn) { _, _ = io.Copy(c, c) })
	var d netio.Dialer
	var users sync.WaitGroup
	for range 8 {
		users.Go(func() {
			for range 20 {
				c, err := d.DialContext(t.Context(), "tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				var both sync.WaitGroup
				both.Go(func() { _, _ = c.Write(make([]byte, 10_000)) })
				both.Go(func() { _, _ = io.ReadFull(c, make([]byte, 10_000)) })
				both.Go(func() { d.Sockets() })
				both.Wait()
				_ = c.Close()
			}
		})
	}
	users.Wait()
	s := d.Sockets()
	require.Zero(t, s.Open)
	require.EqualValues(t, 8*20, s.Dialled)
	require.EqualValues(t, 2*8*20, s.Turns)
}
