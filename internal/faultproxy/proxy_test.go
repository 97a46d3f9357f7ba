package faultproxy_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/faultproxy"
)

// serve answers every line with "ok <line>". What each connection has sent is told when it ends.
func serve(t *testing.T) (address string, told <-chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	ended := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				var all strings.Builder
				r := bufio.NewReader(io.TeeReader(c, &all))
				for {
					line, err := r.ReadString('\n')
					if err != nil {
						ended <- all.String()
						return
					}
					_, _ = io.WriteString(c, "ok "+line)
				}
			}()
		}
	}()
	return l.Addr().String(), ended
}

type client struct {
	*net.TCPConn
	in *bufio.Reader
}

// dial connects through a proxy in front of the target.
func dial(t *testing.T, p *faultproxy.Proxy, err error) *client {
	t.Helper()
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return &client{c.(*net.TCPConn), bufio.NewReader(c)}
}

func (c *client) ask(line string) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	answer, err := c.in.ReadString('\n')
	return strings.TrimSpace(answer), err
}

// answered asserts that all is well.
func answered(t *testing.T, c *client, line string) {
	t.Helper()
	answer, err := c.ask(line)
	require.NoError(t, err)
	assert.Equal(t, "ok "+line, answer)
}

// A slow way may hold less than is sent, and must keep it in order.
func TestForwards(t *testing.T) {
	late := faultproxy.Way{Latency: 20 * time.Millisecond}
	for name, way := range map[string]faultproxy.Way{"at once": {}, "late": late} {
		t.Run(name, func(t *testing.T) {
			target, told := serve(t)
			p, err := faultproxy.NewSlow(target, way, way)
			c := dial(t, p, err)
			began := time.Now()
			answered(t, c, "hello")
			assert.GreaterOrEqual(t, time.Since(began), 2*way.Latency)
			big := strings.Repeat("0123456789", 1<<17) // several chunks
			answered(t, c, big)
			require.NoError(t, c.CloseWrite())
			assert.Equal(t, "hello\n"+big+"\n", <-told, "an end is passed on as an end")
			_, err = c.in.ReadByte()
			assert.Equal(t, io.EOF, err)
		})
	}
}

func TestCuts(t *testing.T) {
	for name, c := range map[string]struct {
		fault *faultproxy.Fault
		told  string
	}{
		"in a body":            {&faultproxy.Fault{Action: faultproxy.Cut, Bytes: 10}, "begin\nCOMM"},
		"instead of an answer": {&faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Match: []byte("COMMIT")}, "begin\nCOMMIT\n"},
	} {
		t.Run(name, func(t *testing.T) {
			target, told := serve(t)
			p, err := faultproxy.New(target, c.fault)
			client := dial(t, p, err)
			answered(t, client, "begin")
			answer, err := client.ask("COMMIT")
			assert.ErrorIs(t, err, syscall.ECONNRESET)
			assert.Empty(t, answer)
			assert.Equal(t, c.told, <-told)
			assert.EqualValues(t, 1, c.fault.Injected())
		})
	}
}

func TestReset(t *testing.T) {
	target, _ := serve(t)
	p, err := faultproxy.New(target)
	c := dial(t, p, err)
	answered(t, c, "hello")
	p.Reset()
	_, err = c.in.ReadByte()
	assert.ErrorIs(t, err, syscall.ECONNRESET)
	answered(t, dial(t, p, nil), "new ones are welcome")
}
