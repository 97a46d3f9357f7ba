package mysql

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/terapush/terapush/internal/sink"
)

// maxPacket is the length that says: this message goes on in the next packet.
const maxPacket = 1<<24 - 1

// maxMessage bounds a command, in bytes, as max_allowed_packet does on a real server.
const maxMessage = 256 << 20

const (
	statusAutocommit = 2
	utf8mb4          = 45
	typeVarString    = 0xfd
)

var (
	errQuit      = errors.New("mysql sink: the client has left")
	errMalformed = errors.New("mysql sink: malformed packet")
	errOversized = errors.New("mysql sink: an oversized message")
)

// wire is the packet layer of one connection.
type wire struct {
	conn *sink.Conn
	in   *bufio.Reader // of conn
	seq  byte
}

// header reads a packet's header and returns the length of what follows. The sequence number is not checked, only
// answered: half of the clients let it run through.
func (w *wire) header() (int, error) {
	var h [4]byte
	if _, err := io.ReadFull(w.in, h[:]); err != nil {
		return 0, err
	}
	w.seq = h[3] + 1
	return int(h[0]) | int(h[1])<<8 | int(h[2])<<16, nil
}

// receive reads one message of one packet or more, which has at most so many bytes.
func (w *wire) receive(most int) (message []byte, err error) {
	for {
		n, err := w.header()
		if err != nil {
			return nil, err
		}
		if len(message)+n > most {
			return nil, errOversized
		}
		message = append(message, make([]byte, n)...)
		if _, err := io.ReadFull(w.in, message[len(message)-n:]); err != nil || n < maxPacket {
			return message, err
		}
	}
}

// send writes messages, each below maxPacket, in one go.
func (w *wire) send(messages ...[]byte) error {
	var out []byte
	for _, m := range messages {
		out = append(out, byte(len(m)), byte(len(m)>>8), byte(len(m)>>16), w.seq)
		out = append(out, m...)
		w.seq++
	}
	_, err := w.conn.Write(out)
	return err
}

func (w *wire) ok(affected int64, info string) error {
	p := appendLength([]byte{0}, uint64(affected))
	p = append(p, 0, statusAutocommit, 0, 0, 0) // insert id, status, warnings
	if info != "" {
		p = appendText(p, info) // not, as the documentation says, up to the packet's end
	}
	return w.send(p)
}

func (w *wire) fail(number uint16, message string) error {
	p := binary.LittleEndian.AppendUint16([]byte{0xff}, number)
	p = append(p, "#HY000"...) // the state, which says nothing
	return w.send(append(p, message...))
}

// rows sends the result of a query, every column as text.
func (w *wire) rows(columns []string, rows ...[]string) error {
	end := []byte{0xfe, 0, 0, statusAutocommit, 0}
	out := [][]byte{appendLength(nil, uint64(len(columns)))}
	for _, c := range columns {
		out = append(out, column(c))
	}
	out = append(out, end)
	for _, r := range rows {
		var p []byte
		for _, value := range r {
			p = appendText(p, value)
		}
		out = append(out, p)
	}
	return w.send(append(out, end)...)
}

func column(name string) []byte {
	p := appendText(nil, "def")
	p = append(p, 0, 0, 0) // schema, table, original table
	p = appendText(p, name)
	p = append(p, 0, 12) // original name, length of what follows
	p = binary.LittleEndian.AppendUint16(p, utf8mb4)
	p = binary.LittleEndian.AppendUint32(p, 1<<16-1) // display width
	return append(p, typeVarString, 0, 0, 0, 0, 0)   // type, flags, decimals, filler
}

func appendText(p []byte, s string) []byte {
	return append(appendLength(p, uint64(len(s))), s...)
}

// appendLength appends a length-encoded integer.
func appendLength(p []byte, n uint64) []byte {
	switch {
	case n < 251:
		return append(p, byte(n))
	case n < 1<<16:
		return append(p, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(p, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(p, 0xfe), n)
}
