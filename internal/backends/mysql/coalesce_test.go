package mysql

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is a connection that notes its writes and answers reads from a buffer.
type recorder struct {
	net.Conn
	mu     sync.Mutex
	writes [][]byte
	closed bool
	fails  error // of the writes …
	after  int   // … behind so many
	reads  bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fails != nil && len(r.writes) >= r.after {
		return 0, r.fails
	}
	r.writes = append(r.writes, bytes.Clone(p))
	return len(p), nil
}

func (r *recorder) Read(p []byte) (int, error)       { return r.reads.Read(p) }
func (r *recorder) Close() error                     { r.closed = true; return nil }
func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

func over(t *testing.T, inner net.Conn) *coalescer {
	c, err := coalesced(func(context.Context, string, string) (net.Conn, error) { return inner, nil })(t.Context(), "tcp", "x")
	require.NoError(t, err)
	return c.(*coalescer)
}

func TestCoalescerGathers(t *testing.T) {
	inner := &recorder{}
	inner.reads.WriteString("answer")
	c := over(t, inner)
	packet := bytes.Repeat([]byte("x"), 16<<10+4)
	var sent []byte
	for i := range 100 {
		packet[0] = byte(i)
		n, err := c.Write(packet)
		require.NoError(t, err)
		require.Equal(t, len(packet), n)
		sent = append(sent, packet...)
	}
	assert.Len(t, inner.writes, 6, "15 packets a write")
	answer := make([]byte, 6)
	_, err := c.Read(answer)
	require.NoError(t, err)
	assert.Equal(t, "answer", string(answer))
	assert.Equal(t, sent, bytes.Join(inner.writes, nil), "all is sent, in order, before anything is read")

	large := make([]byte, 2*coalesceBytes)
	_, err = c.Write([]byte("small"))
	require.NoError(t, err)
	_, err = c.Write(large)
	require.NoError(t, err)
	assert.Equal(t, []byte("small"), inner.writes[len(inner.writes)-2])
	assert.Len(t, inner.writes[len(inner.writes)-1], len(large))
}

func TestCoalescerFails(t *testing.T) {
	inner := &recorder{fails: io.ErrClosedPipe}
	c := over(t, inner)
	_, err := c.Write([]byte("lost"))
	require.NoError(t, err, "nobody has tried yet")
	_, err = c.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.ErrClosedPipe)
}

func TestCoalescerCloses(t *testing.T) {
	inner := &recorder{}
	c := over(t, inner)
	_, _ = c.Write([]byte{1, 0, 0, 0, 1}) // COM_QUIT
	require.NoError(t, c.Close())
	assert.True(t, inner.closed)
	assert.Len(t, inner.writes, 1, "a farewell is sent")

	inner = &recorder{}
	c = over(t, inner)
	_, _ = c.Write(make([]byte, 1000))
	require.NoError(t, c.Close())
	assert.Empty(t, inner.writes, "half a statement is not")
}

// To give up a load is to close its connection while a Write hangs.
func TestCoalescerClosesUnderHangingWrite(t *testing.T) {
	near, far := net.Pipe()
	defer func() { _ = far.Close() }()
	c := over(t, near)
	failed := make(chan error)
	go func() {
		_, err := c.Write(make([]byte, 2*coalesceBytes)) // nobody reads
		failed <- err
	}()
	time.Sleep(10 * time.Millisecond)
	require.NoError(t, c.Close())
	select {
	case err := <-failed:
		assert.Error(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the write still hangs")
	}
}
