package netio_test

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/netio"
)

// What the account costs a turn: a small question and its answer, over a connection of the dialer and over a plain one.
// A question beyond 4 KiB is one more: of it the kernel is asked when it went out.
func BenchmarkTurn(b *testing.B) {
	address := peer(b, "tcp", "127.0.0.1:0", func(c net.Conn) {
		for head := make([]byte, 4); ; { // says how long the rest is
			if _, err := io.ReadFull(c, head); err != nil {
				return
			}
			_, _ = io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(head)))
			_, _ = c.Write(head)
		}
	})
	for _, of := range []struct {
		name string
		dial func(b *testing.B) (net.Conn, error)
	}{
		{"plain", func(*testing.B) (net.Conn, error) { return net.Dial("tcp", address) }},
		{"account", func(b *testing.B) (net.Conn, error) {
			return new(netio.Dialer).DialContext(b.Context(), "tcp", address)
		}},
	} {
		for _, size := range []int{100, 8 << 10} {
			b.Run(of.name+"/"+strconv.Itoa(size), func(b *testing.B) {
				c, err := of.dial(b)
				require.NoError(b, err)
				defer c.Close()
				question, answer := make([]byte, size), make([]byte, 4)
				binary.BigEndian.PutUint32(question, uint32(size-len(answer)))
				b.ReportAllocs()
				for b.Loop() {
					_, err := c.Write(question)
					require.NoError(b, err)
					_, err = io.ReadFull(c, answer)
					require.NoError(b, err)
				}
			})
		}
	}
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
