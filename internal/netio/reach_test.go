package netio_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/netio"
)

// listen starts a server for the length of a test.
func listen(t *testing.T, serve func(net.Conn)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// A client that speaks first, one that waits for the server, and servers that each wait for something else.
func TestReach(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	servers := map[string]string{
		"this is a MySQL server": listen(t, func(c net.Conn) {
			_, _ = c.Write([]byte("\x0f\x00\x00\x00\x0a8.0.32\x00abcdefgh"))
			_, _ = io.Copy(io.Discard, c)
		}),
		"this is a PostgreSQL server": listen(t, func(c net.Conn) {
			head := make([]byte, 8)
			if _, err := io.ReadFull(c, head); err == nil && head[4] == 4 {
				_, _ = c.Write([]byte("N"))
				_, _ = io.Copy(io.Discard, c)
			}
		}),
		"this is an HTTP server": web.Listener.Addr().String(),
		"silence":                listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }),
	}
	dial := new(netio.Dialer).DialContext
	silence := errors.New("silence")
	clients := map[netio.Protocol]func(context.Context, net.Conn) error{
		netio.Oracle: func(_ context.Context, c net.Conn) error { // says something, and does not understand the answer
			_, _ = c.Write([]byte("hello\r\n\r\n"))
			return silence
		},
		netio.MySQL: func(ctx context.Context, c net.Conn) error { // waits
			defer context.AfterFunc(ctx, func() { _ = c.Close() })()
			_, err := bufio.NewReader(c).ReadByte()
			if err == nil || ctx.Err() == nil {
				err = silence
			}
			return err
		},
	}
	for want, address := range servers {
		for protocol, client := range clients {
			if want == "silence" && protocol == netio.MySQL { // for as long as its context allows
				continue
			}
			t.Run(want+" for "+string(protocol), func(t *testing.T) {
				t.Parallel() // they wait
				err := netio.Reach(t.Context(), dial, address, protocol, func(error) bool { return false }, func(ctx context.Context) error {
					c, err := dial(ctx, "tcp", address)
					if err != nil {
						return err
					}
					defer func() { _ = c.Close() }()
					return client(ctx, c)
				})
				if want == "this is a MySQL server" && protocol == netio.MySQL {
					require.ErrorIs(t, err, silence, "it is the right server, and the error its own")
					return
				}
				require.ErrorContains(t, err, want)
			})
		}
	}
}

// Nobody is asked about a server that has answered.
func TestReachTheRightOne(t *testing.T) {
	nobody := func(context.Context, string, string) (net.Conn, error) {
		t.Error("asked")
		return nil, io.EOF
	}
	answer := errors.New("wrong password")
	err := netio.Reach(t.Context(), nobody, "h:1", netio.MySQL, func(err error) bool { return errors.Is(err, answer) },
		func(context.Context) error { return answer })
	require.ErrorIs(t, err, answer)
}
