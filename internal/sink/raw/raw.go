// Package raw is a sink with almost no protocol: eight bytes, big-endian, say how many follow, and eight bytes answer
// how many rows they were. A plain write loop into it is what every protocol is compared with. It has no TLS, and
// closes the connection instead of answering a load that has to fail.
package raw

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/terapush/terapush/internal/sink"
)

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) { return sink.Listen(addr, o, serve) }

func serve(_ uint32, c *sink.Conn) error {
	var head [8]byte
	for {
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return err
		}
		size := int64(binary.BigEndian.Uint64(head[:]))
		if size < 0 {
			return errors.New("raw sink: negative size")
		}
		c.Statement()
		bytes, rows, err := c.Take(io.LimitReader(c, size), sink.Lines())
		if err == nil && bytes < size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil { // also of a load that has to fail: the protocol has no such answer
			return err
		}
		c.Loaded(bytes, rows)
		if _, err := c.Write(binary.BigEndian.AppendUint64(nil, uint64(rows))); err != nil {
			return err
		}
	}
}
