package mysql

import (
	"encoding/binary"
	"io"
	"net"

	"github.com/terapush/terapush/pkg/batch"
)

const (
	headerBytes = 4
	// numbers is how many packets bring the number of the next one back to where it was: it has one byte.
	numbers = 256
	// largestPacket is the most data that an upload puts into a packet, in bytes, unless max_allowed_packet is less.
	// The default batch makes 256 of them.
	largestPacket = 64 << 10
	// smallestPacket is the least, and as much as the driver puts in: every packet costs the server a read or two.
	smallestPacket = 16 << 10
)

// upload is the file of a LOAD DATA LOCAL: the driver reads its first packet and sends it; then the upload sends the
// others itself, out of the ring's memory, and says that the file has ended. The driver would copy every byte into a
// packet and the coalescer would copy it again, before the kernel does: measured over loopback, 7 % of the client's
// CPU.
//
// A file is any number of packets of any length but 0, and then an empty one. A packet is the length of its data in
// three bytes, a number in one, which goes up by one from packet to packet and wraps around, and the data (MySQL's
// source documentation, "MySQL Packets" and "LOCAL INFILE Data"). The driver knows only of the packets that it has
// sent, and the server checks the numbers. So what goes past the driver is a multiple of 256 packets, after which
// the number is again the one that the driver gives to its next packet, the empty one.
//
// The first packet tells that number. It also tells that neither TLS nor compression lies between the driver and the
// coalescer: either would have changed the header or the length. Then the driver sends all of the file, as it does
// where the file is too small for 256 packets.
type upload struct {
	body    *batch.Body
	conn    *coalescer // nil once it is settled that the driver sends the rest
	largest int64      // bytes of data in a packet
	first   int        // bytes of data in the driver's first packet; 0 before it
}

// Read never fails, or the driver would end the file where it is, and the server commit that. After an error of the
// connection the coalescer sends nothing more: the driver gets the error when it writes the empty packet.
func (u *upload) Read(p []byte) (int, error) {
	if u.first > 0 && u.conn != nil {
		if number, plain := u.conn.packet(u.first); plain && u.sendRest(number+1) {
			return 0, io.EOF
		}
		u.conn = nil
	}
	n, err := u.body.Read(p)
	if u.first == 0 {
		u.first = n
	}
	return n, err
}

// Close implements io.Closer for the driver, which calls it when the server has answered.
func (u *upload) Close() error { return u.body.Close() }

// sendRest reports whether it has sent the rest of the body, or failed to; otherwise that is too small.
func (u *upload) sendRest(next byte) bool {
	rest := u.body.Size() - int64(u.first)
	if rest < numbers*smallestPacket {
		return false
	}
	rounds := (rest + numbers*u.largest - 1) / (numbers * u.largest)
	// The coalescer keeps the error.
	_, _ = u.body.WriteTo(&packets{to: u.conn, next: next, count: rounds * numbers, rest: rest})
	return true
}

// packets writes data as a given number of packets of almost the same length.
type packets struct {
	to    *coalescer
	next  byte  // the number of the next packet
	count int64 // packets that have not begun …
	rest  int64 // … and the bytes of data in them
	open  int   // bytes of data that are missing in the one that has

	headers []byte
	pieces  net.Buffers
}

// Write sends p, which may begin and end within a packet.
func (w *packets) Write(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		data := p[sent:min(sent+coalesceBytes, len(p))]
		if err := w.to.WriteBuffers(w.cut(data)); err != nil {
			return sent, err
		}
		sent += len(data)
	}
	return sent, nil
}

// cut puts headers in front of the packets that begin in data. What it returns is good until the next call.
func (w *packets) cut(data []byte) net.Buffers {
	w.headers, w.pieces = w.headers[:0], w.pieces[:0]
	for len(data) > 0 {
		if w.open == 0 {
			w.open = int(w.rest / w.count)
			w.rest -= int64(w.open)
			w.count--
			w.headers = appendHeader(w.headers, w.next, w.open)
			w.next++
			w.pieces = append(w.pieces, w.headers[len(w.headers)-headerBytes:])
		}
		n := min(w.open, len(data))
		w.pieces = append(w.pieces, data[:n])
		data = data[n:]
		w.open -= n
	}
	return w.pieces
}

func appendHeader(p []byte, number byte, size int) []byte {
	return binary.LittleEndian.AppendUint32(p, uint32(number)<<24|uint32(size))
}

func parseHeader(p []byte) (number byte, size int) {
	header := binary.LittleEndian.Uint32(p)
	return byte(header >> 24), int(header & (1<<24 - 1))
}
