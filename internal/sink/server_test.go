package sink_test

import (
	"bufio"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/mysql"
	"github.com/terapush/terapush/internal/sink/postgres"
	"github.com/terapush/terapush/internal/sink/raw"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

func rawSink(t testing.TB, o sink.Options) *sink.Server { return sinktest.Open(t, raw.Listen, o) }

func dial(t testing.TB, s *sink.Server) net.Conn {
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// load sends rows to a raw sink and returns how many it counted.
func load(t testing.TB, c net.Conn, rows string) int64 {
	_, err := c.Write(append(binary.BigEndian.AppendUint64(nil, uint64(len(rows))), rows...))
	require.NoError(t, err)
	var answer [8]byte
	_, err = io.ReadFull(c, answer[:])
	require.NoError(t, err)
	return int64(binary.BigEndian.Uint64(answer[:]))
}

func TestRaw(t *testing.T) {
	counting, dropping := rawSink(t, sink.Options{CRC: true}), rawSink(t, sink.Options{NoCount: true, RowBytes: 3})
	a, b := dial(t, counting), dial(t, dropping)
	for range 3 {
		assert.EqualValues(t, 300_000, load(t, a, strings.Repeat("xy\n", 300_000)))
		assert.EqualValues(t, 300_000, load(t, b, strings.Repeat("xyz", 300_000)))
		assert.EqualValues(t, 2, load(t, a, "a\nb"))
	}
	assert.EqualValues(t, 900_006, counting.Stats().Rows)
	assert.Equal(t, sink.Stats{Connections: 1, Statements: 3, Bytes: 2_700_000, Rows: 900_000}, dropping.Stats())
	want := crc32.Checksum([]byte("a\nb"), crc32.MakeTable(crc32.Castagnoli)) ^
		crc32.Checksum([]byte(strings.Repeat("xy\n", 300_000)), crc32.MakeTable(crc32.Castagnoli))
	assert.Equal(t, fmt.Sprintf("%08x", want), counting.Stats().CRC, "of three equal loads two cancel each other")
	assert.Positive(t, counting.Busy())
}

func TestRawHangsUpWhenToldToFail(t *testing.T) {
	s := rawSink(t, sink.Options{Fail: 2})
	c := dial(t, s)
	assert.EqualValues(t, 1, load(t, c, "a\n"))
	_, err := c.Write([]byte("\x00\x00\x00\x00\x00\x00\x00\x02b\n"))
	require.NoError(t, err)
	_, err = c.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF)
	assert.EqualValues(t, 1, load(t, dial(t, s), "c\n"))
	assert.EqualValues(t, 2, s.Stats().Rows)
	assert.EqualValues(t, 1, s.Stats().Failed)
}

// A connection is read no faster and answered no sooner than it should be, whether its data is counted or dropped. That
// it is not much slower depends on the machine, and is not for a test.
func TestSlowness(t *testing.T) {
	for _, c := range []struct {
		options sink.Options
		atLeast time.Duration
	}{
		{sink.Options{ReadRate: 1 << 20}, 450 * time.Millisecond}, // half a MiB at one MiB a second
		{sink.Options{ReadRate: 1 << 20, NoCount: true}, 450 * time.Millisecond},
		{sink.Options{AckDelay: 50 * time.Millisecond}, 50 * time.Millisecond},
	} {
		conn, start := dial(t, rawSink(t, c.options)), time.Now()
		load(t, conn, strings.Repeat("x", 1<<19))
		assert.GreaterOrEqual(t, time.Since(start), c.atLeast, "%+v", c.options)
	}
}

// Who waits for an answer that the sink was told to delay does not keep it from closing, nor does a slow reading.
func TestCloseDoesNotWait(t *testing.T) {
	for _, o := range []sink.Options{{AckDelay: time.Hour}, {ReadRate: 1}} {
		s := rawSink(t, o)
		c := dial(t, s)
		_, err := c.Write(append(binary.BigEndian.AppendUint64(nil, 1<<20), make([]byte, 1<<20)...))
		require.NoError(t, err)
		require.NoError(t, s.Close())
		_, err = io.ReadAll(c)
		require.True(t, err == nil || strings.Contains(err.Error(), "reset"), "%v", err)
	}
}

// That rows come over both on one port is in the tests of the protocols.
func TestCertificate(t *testing.T) {
	own, err := sink.SelfSigned("example.test", "192.0.2.7")
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(own.Certificates[0].Certificate[0])
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	trusted.AddCert(leaf)
	open := func(addr string, o sink.Options) (*sink.Server, error) {
		return sink.ListenHTTP(addr, o, func(*sink.Conn, *http.Request) sink.Answer { return sink.Answer{Status: http.StatusOK} })
	}
	s := sinktest.Open(t, open, sink.Options{TLS: own})
	for _, name := range []string{"localhost", "127.0.0.1", "::1", "example.test", "192.0.2.7"} {
		c := tls.Client(dial(t, s), &tls.Config{RootCAs: trusted, ServerName: name, NextProtos: []string{"h2", "http/1.1"}})
		require.NoError(t, c.Handshake(), name)
		assert.Equal(t, "http/1.1", c.ConnectionState().NegotiatedProtocol)
	}
	s = sinktest.Open(t, open, sink.Options{})
	require.Error(t, tls.Client(dial(t, s), &tls.Config{InsecureSkipVerify: true}).Handshake(), "it has no certificate") //nolint:gosec // a test
}

// Connections that say nothing, after their greeting or before, take a bounded amount of memory each, and others are
// served beside them.
// A client that was asked for its body is sending when the answer is known, and reads it later.
func TestBodyThatWasAskedForIsRead(t *testing.T) {
	s := sinktest.Open(t, func(addr string, o sink.Options) (*sink.Server, error) {
		return sink.ListenHTTP(addr, o, func(_ *sink.Conn, r *http.Request) sink.Answer {
			_, _ = r.Body.Read(make([]byte, 1))
			return sink.Answer{Status: http.StatusTeapot}
		})
	}, sink.Options{})
	const size = 16 << 20 // more than sockets take unread
	c := dial(t, s)
	_, err := fmt.Fprintf(c, "PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", size)
	require.NoError(t, err)
	in := bufio.NewReader(c)
	for _, status := range []int{http.StatusContinue, http.StatusTeapot} {
		answer, err := http.ReadResponse(in, nil)
		require.NoError(t, err)
		require.Equal(t, status, answer.StatusCode)
		require.NoError(t, answer.Body.Close())
		if status == http.StatusContinue {
			_, err = c.Write(make([]byte, size))
			require.NoError(t, err)
		}
	}
}

func TestSilentConnections(t *testing.T) {
	const connections, perConnection = 400, 48 << 10 // bytes, both ends' Go memory: a buffer, two stacks, and what net keeps
	encrypted := sink.Options{TLS: sinktest.TLS(t)}
	all := []*sink.Server{sinktest.Open(t, mysql.Listen, encrypted), sinktest.Open(t, postgres.Listen, encrypted), rawSink(t, sink.Options{})}
	before := inUse()
	for i := range connections {
		dial(t, all[i%len(all)])
	}
	accepted := func() (n int64) {
		for _, s := range all {
			n += s.Stats().Connections
		}
		return n
	}
	require.Eventually(t, func() bool { return accepted() == connections }, time.Minute, 10*time.Millisecond)
	assert.Less(t, inUse()-before, int64(connections*perConnection))
	assert.EqualValues(t, 1, load(t, dial(t, all[2]), "still there\n"))
}

// inUse returns the memory of heap and stacks.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// What loads is given a big buffer, and gives it back.
func TestLoadsShareBuffers(t *testing.T) {
	s := rawSink(t, sink.Options{})
	const connections = 200
	var all []net.Conn
	for range connections {
		all = append(all, dial(t, s))
	}
	load(t, all[0], "a\n")
	before := inUse()
	for _, c := range all {
		load(t, c, strings.Repeat("x\n", 100_000))
	}
	assert.Less(t, inUse()-before, int64(connections*64<<10), "a quarter of their buffers together")
}

func TestGarbageOnRaw(t *testing.T) {
	s := rawSink(t, sink.Options{})
	garbage := make([]byte, 1<<20)
	_, _ = rand.Read(garbage) // never fails
	for _, said := range []string{"\xff\xff\xff\xff\xff\xff\xff\xff", string(garbage)} {
		assert.Empty(t, sinktest.Say(t, s, said))
	}
	assert.EqualValues(t, 1, load(t, dial(t, s), "a\n"))
}
