package loadertest_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// echo answers every byte with itself and tells when a client is gone.
func echo(t *testing.T) (faults *loadertest.Faults, dial func() net.Conn, gone <-chan int64) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	received := make(chan int64, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				n, _ := io.Copy(c, c)
				received <- n
				_ = c.Close()
			}()
		}
	}()
	faults = loadertest.NewFaults(new(net.Dialer).DialContext)
	t.Cleanup(faults.Close)
	return faults, func() net.Conn {
		c, err := faults.Dial(context.Background(), "tcp", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}, received
}

func works(t *testing.T, c net.Conn) {
	t.Helper()
	p := []byte("hello")
	_, err := c.Write(p)
	require.NoError(t, err)
	_, err = io.ReadFull(c, p)
	require.NoError(t, err)
	require.Equal(t, "hello", string(p))
}

func TestCutAfter(t *testing.T) {
	faults, dial, gone := echo(t)
	a, b := dial(), dial()
	works(t, a)
	hit := faults.CutAfter(7)
	works(t, a)
	n, err := b.Write(bytes.Repeat([]byte("x"), 20)) // another connection counts for itself
	require.Equal(t, 7, n)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	<-hit
	require.EqualValues(t, 7, <-gone)
	works(t, a) // one fault hits once
	works(t, a)
}

// recorder is a connection to nowhere that keeps what is written.
type recorder struct {
	net.Conn
	strings.Builder
}

func (r *recorder) Write(p []byte) (int, error)     { return r.Builder.Write(p) }
func (r *recorder) Read([]byte) (int, error)        { return 0, io.EOF }
func (r *recorder) Close() error                    { return nil }
func (r *recorder) SetReadDeadline(time.Time) error { return nil }

// A fault counts over all connections. After an error the next write is on another one.
func TestFaultsCount(t *testing.T) {
	for name, c := range map[string]struct {
		fault  *loadertest.ConnFault
		writes string
		want   string // what each connection has written
	}{
		"each time":         {&loadertest.ConnFault{Bytes: 4}, "abc d efg hijkl mnop q", "abcd|hijk|mnop"},
		"twice":             {&loadertest.ConnFault{Bytes: 2, Times: 2}, "abc def ghi jkl", "ab|de|ghijkl"},
		"every third":       {&loadertest.ConnFault{Bytes: 2, Every: 3}, "abcdefgh ij abc", "abcdef|ijabc"},
		"at once":           {&loadertest.ConnFault{Times: 1}, "abc def", "|def"},
		"one after another": {&loadertest.ConnFault{Bytes: 2, Every: 2, Times: 1}, "abcde fgh ijklmn", "abcd|fghijklmn"},
	} {
		t.Run(name, func(t *testing.T) {
			var all []*recorder
			faults := loadertest.NewFaults(func(context.Context, string, string) (net.Conn, error) {
				all = append(all, new(recorder))
				return all[len(all)-1], nil
			}, c.fault)
			conn, injected := net.Conn(nil), int64(0)
			for _, w := range strings.Fields(c.writes) {
				if conn == nil {
					conn, _ = faults.Dial(t.Context(), "", "")
				}
				if _, err := conn.Write([]byte(w)); err != nil {
					conn, injected = nil, injected+1
				}
			}
			var got []string
			for _, r := range all {
				got = append(got, r.String())
			}
			require.Equal(t, c.want, strings.Join(got, "|"))
			require.Equal(t, injected, c.fault.Injected())
		})
	}
}

// The answers to what is written behind the marker are lost with its own; what was asked before it is not. The marker
// may lie across writes.
func TestCutAnswer(t *testing.T) {
	faults, dial, gone := echo(t)
	c := dial()
	faults.CutAnswer("COMMIT")
	works(t, c)
	for _, w := range []string{"-- COM", "M"} {
		_, err := c.Write([]byte(w))
		require.NoError(t, err)
		_, err = io.ReadFull(c, make([]byte, len(w)))
		require.NoError(t, err)
	}
	_, err := c.Write([]byte("IT; x"))
	require.NoError(t, err)
	n, err := c.Read(make([]byte, 1))
	require.Zero(t, n)
	require.ErrorIs(t, err, syscall.ECONNRESET)
	require.EqualValues(t, 5+7+5, <-gone)
	works(t, dial()) // one fault hits once
}

// The server answers before it has read all of the write, so a Read has the answer while the write still lasts: it is
// lost all the same, and the server gets the rest.
func TestCutAnswerThatIsFast(t *testing.T) {
	client, server := net.Pipe() // no buffer: a write lasts until all of it is read
	faults := loadertest.NewFaults(func(context.Context, string, string) (net.Conn, error) { return client, nil })
	c, err := faults.Dial(t.Context(), "", "")
	require.NoError(t, err)
	hit := faults.CutAnswer("COMMIT")
	received := make(chan string, 1)
	go func() {
		begin := make([]byte, 3)
		_, _ = io.ReadFull(server, begin)
		_, _ = server.Write([]byte("ok")) // returns when the client's Read has it
		rest, _ := io.ReadAll(server)
		received <- string(begin) + string(rest)
	}()
	read := make(chan error, 1)
	go func() {
		n, err := c.Read(make([]byte, 10))
		assert.Zero(t, n, "of the answer")
		read <- err
	}()
	n, err := c.Write([]byte("COMMIT"))
	require.NoError(t, err)
	require.Equal(t, 6, n)
	<-hit
	require.ErrorIs(t, <-read, syscall.ECONNRESET)
	require.Equal(t, "COMMIT", <-received)
}

func TestStallAfter(t *testing.T) {
	faults, dial, gone := echo(t)
	c := dial()
	hit := faults.StallAfter(3)
	go func() {
		<-hit
		_ = c.SetDeadline(time.Now().Add(20 * time.Millisecond))
	}()
	n, err := c.Write([]byte("hello"))
	require.Equal(t, 3, n)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	n, err = c.Read(make([]byte, 10))
	require.Zero(t, n)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	_ = c.Close()
	<-gone
}

func TestVanishAfter(t *testing.T) {
	faults, dial, gone := echo(t)
	c := dial()
	read := make(chan error)
	go func() { // waits in the socket when the fault strikes
		_, err := c.Read(make([]byte, 10))
		read <- err
	}()
	hit := faults.VanishAfter(0)
	go func() {
		<-hit
		_ = c.Close()
	}()
	_, err := c.Write([]byte("hello"))
	require.Error(t, err)
	require.Error(t, <-read)
	select {
	case <-gone:
		t.Error("the server was told")
	case <-time.After(50 * time.Millisecond):
	}
	faults.Close()
	<-gone
}
