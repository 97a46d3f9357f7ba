package faultproxy_test

import (
	"bufio"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/faultproxy"
)

// server answers every line with "ok <line>", in two pieces, and remembers what it was told.
type server struct {
	net.Listener
	mu    sync.Mutex
	lines []string
	bytes atomic.Int64
}

func serve(t testing.TB) *server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	s := &server{Listener: l}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.talk(c)
		}
	}()
	return s
}

func (s *server) talk(c net.Conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 1<<20)
	for {
		line, err := r.ReadString('\n')
		s.bytes.Add(int64(len(line)))
		if err != nil {
			return
		}
		s.mu.Lock()
		s.lines = append(s.lines, strings.TrimSpace(line[:min(len(line), 100)]))
		s.mu.Unlock()
		_, _ = io.WriteString(c, "ok ")
		_, _ = io.WriteString(c, line)
	}
}

func (s *server) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lines...)
}

func proxy(t testing.TB, s *server, faults ...*faultproxy.Fault) *faultproxy.Proxy {
	p, err := faultproxy.New(s.Addr().String(), faults...)
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(t testing.TB, p *faultproxy.Proxy) *client {
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(20*time.Second)))
	return &client{c, bufio.NewReader(c)}
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

// gone asserts that nobody is there: the reset may be faster than the dial, or come after it.
func gone(t *testing.T, p *faultproxy.Proxy) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err == nil {
		defer c.Close()
		_, err = (&client{c, bufio.NewReader(c)}).ask("hello?")
	}
	assert.Error(t, err)
}

func TestForwards(t *testing.T) {
	s := serve(t)
	p := proxy(t, s)
	c := dial(t, p)
	answered(t, c, "hello")
	big := strings.Repeat("x", 10<<20)
	answered(t, c, big)
	require.NoError(t, c.Conn.(*net.TCPConn).CloseWrite())
	_, err := c.in.ReadByte()
	assert.Equal(t, io.EOF, err, "an end is passed on as an end")
	assert.EqualValues(t, 1, p.Connections())
}

func TestCutAfterAnswer(t *testing.T) {
	s := serve(t)
	lost := &faultproxy.Fault{Action: faultproxy.CutAfterAnswer, Match: []byte("COMMIT"), Every: 2}
	p := proxy(t, s, lost)
	for range 3 {
		c := dial(t, p)
		answered(t, c, "COMMIT one")
		answered(t, c, "other")
		answer, err := c.ask("COMMIT two")
		assert.ErrorIs(t, err, syscall.ECONNRESET)
		assert.Empty(t, answer)
	}
	assert.EqualValues(t, 3, lost.Injected())
	round := []string{"COMMIT one", "other", "COMMIT two"}
	assert.Equal(t, slices.Concat(round, round, round), s.told(), "the server has done it")
}

func TestCutBefore(t *testing.T) {
	s := serve(t)
	cut := &faultproxy.Fault{Action: faultproxy.Cut, Match: []byte("COMMIT"), Times: 2}
	p := proxy(t, s, cut)
	for range 2 {
		c := dial(t, p)
		answered(t, c, "begin")
		// The match lies across several writes, and packets.
		for _, piece := range []string{"xx CO", "MM", "IT\n"} {
			_, err := io.WriteString(c, piece)
			require.NoError(t, err)
			time.Sleep(20 * time.Millisecond)
		}
		_, err := c.in.ReadByte()
		assert.ErrorIs(t, err, syscall.ECONNRESET)
	}
	assert.EqualValues(t, 2, cut.Injected())
	assert.NotContains(t, strings.Join(s.told(), "\n"), "COMMIT")
	answered(t, dial(t, p), "COMMIT, since only two were to be cut")
}

func TestCutAfterBytes(t *testing.T) {
	s := serve(t)
	cut := &faultproxy.Fault{Action: faultproxy.Cut, Bytes: 1_000_000, Every: 2}
	p := proxy(t, s, cut)
	c := dial(t, p)
	_, err := c.ask(strings.Repeat("x", 1_500_000))
	require.NoError(t, err, "the first million passes")
	_, err = c.ask(strings.Repeat("y", 1_500_000))
	require.Error(t, err)
	assert.EqualValues(t, 1, cut.Injected())
	assert.Eventually(t, func() bool { n := s.bytes.Load(); return n > 1_500_000 && n <= 2_000_000 }, 5*time.Second, time.Millisecond,
		"the server has seen the beginning")
}

func TestStall(t *testing.T) {
	s := serve(t)
	stall := &faultproxy.Fault{Action: faultproxy.Stall, Match: []byte("wait"), For: 300 * time.Millisecond}
	p := proxy(t, s, stall)
	stuck, other := dial(t, p), dial(t, p)
	answered(t, stuck, "go")
	start := time.Now()
	done := make(chan time.Duration)
	go func() {
		_, _ = stuck.ask("wait")
		done <- time.Since(start)
	}()
	answered(t, other, "others go on")
	assert.GreaterOrEqual(t, <-done, 300*time.Millisecond)
	assert.EqualValues(t, 1, stall.Injected())
	answered(t, stuck, "and so does it")
}

func TestCloseEndsAStall(t *testing.T) {
	p := proxy(t, serve(t), &faultproxy.Fault{Action: faultproxy.Stall, Match: []byte("wait"), For: time.Hour})
	c := dial(t, p)
	_, err := io.WriteString(c, "wait\n")
	require.NoError(t, err)
	time.Sleep(20 * time.Millisecond)
	require.NoError(t, p.Close())
	_, err = c.in.ReadByte()
	assert.Error(t, err)
}

func TestDownAndUp(t *testing.T) {
	p := proxy(t, serve(t))
	before := dial(t, p)
	answered(t, before, "hello")
	p.Down()
	_, err := before.ask("still there?")
	assert.Error(t, err)
	gone(t, p)
	p.Up()
	again := dial(t, p)
	answered(t, again, "back")
	p.Reset()
	_, err = again.ask("still there?")
	assert.Error(t, err)
	answered(t, dial(t, p), "new ones are welcome")
}

func TestTargetMissing(t *testing.T) {
	s := serve(t)
	p := proxy(t, s)
	s.Close()
	gone(t, p)
}

func TestSlowWay(t *testing.T) {
	s := serve(t)
	up := faultproxy.Way{Latency: 50 * time.Millisecond, Rate: 10 << 20}
	p, err := faultproxy.NewSlow(s.Addr().String(), up, faultproxy.Way{Latency: 50 * time.Millisecond})
	require.NoError(t, err)
	defer p.Close()
	c := dial(t, p)
	start := time.Now()
	answered(t, c, "hello")
	assert.GreaterOrEqual(t, time.Since(start), 100*time.Millisecond)
	start = time.Now()
	answered(t, c, strings.Repeat("x", 4<<20))
	took := time.Since(start)
	assert.GreaterOrEqual(t, took, 400*time.Millisecond)
	assert.Less(t, took, 3*time.Second, "a latency is not paid for every chunk")
}

func TestFaultsAreCheckedForSense(t *testing.T) {
	_, err := faultproxy.New("127.0.0.1:1", &faultproxy.Fault{Action: faultproxy.Cut})
	assert.Error(t, err)
}

func BenchmarkForward(b *testing.B) {
	for name, faults := range map[string][]*faultproxy.Fault{
		"blind":      nil,
		"two faults": {{Match: []byte("COMMIT")}, {Action: faultproxy.Stall, Match: []byte("LOAD DATA")}},
	} {
		b.Run(name, func(b *testing.B) { forward(b, faults) })
	}
}

func forward(b *testing.B, faults []*faultproxy.Fault) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	p, err := faultproxy.New(l.Addr().String(), faults...)
	require.NoError(b, err)
	defer p.Close()
	c := dial(b, p)
	data := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data) // never fails
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := c.Write(data); err != nil {
			b.Fatal(err)
		}
	}
}
