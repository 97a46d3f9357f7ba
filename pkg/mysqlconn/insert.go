package mysqlconn

import (
	"context"
	"encoding/binary"
	"net"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
)

// A packet is the length of its data in three bytes, a number in one, and the data. A message as long as fullPacket
// goes on in another one (MySQL's source documentation, "MySQL Packets").
const (
	packetHeader = 4
	fullPacket   = 1<<24 - 1
)

// Insert sends a batch's rows in one statement behind its head.
//
// The driver takes a statement as a string, which it copies into a packet, and both would be garbage. So it sends the
// head alone, and the rows follow out of the ring. Not under TLS, which the driver begins above the connection, nor in
// several packets: the driver would expect the answer to be number 1.
func (c Conn) Insert(ctx context.Context, head string, b *batch.Batch) (rows int64, err error) {
	body := b.Open()
	defer func() { _ = body.Close() }()
	if c.wire.plain && 1+len(head)+int(body.Size()) < fullPacket { // the command is a byte
		c.wire.body = body
		// Nothing is sent if ctx has ended, and the rows must not follow the next statement.
		defer func() { c.wire.body = nil }()
		return c.Exec(ctx, head)
	}

	var text strings.Builder // its String makes no copy
	text.Grow(len(head) + int(body.Size()))
	text.WriteString(head)
	if _, err := body.WriteTo(&text); err != nil {
		return 0, err
	}
	return c.Exec(ctx, text.String())
}

// appender is a connection below the driver, which appends a body to a packet.
type appender struct {
	net.Conn
	plain bool        // the last Write was a packet, which neither TLS nor compression has changed
	body  *batch.Body // belongs to the packet that is written next; nil if that is whole
}

// Write writes p, and the body behind it.
func (a *appender) Write(p []byte) (n int, err error) {
	body := a.body
	a.body = nil
	a.plain = len(p) > packetHeader && binary.LittleEndian.Uint32(p)&fullPacket == uint32(len(p)-packetHeader)
	if body == nil {
		return a.Conn.Write(p)
	}
	size := len(p) - packetHeader + int(body.Size())
	p = append([]byte{byte(size), byte(size >> 8), byte(size >> 16)}, p[3:]...) // a Writer must not change p
	if n, err = a.Conn.Write(p); err == nil {
		_, err = body.WriteTo(a.Conn)
	}
	return n, err
}
