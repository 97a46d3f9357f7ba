// Package raw is a sink with as good as no protocol: eight bytes, big-endian, say how many follow, and eight bytes
// answer how many rows they were. A plain write loop into it is what every protocol is compared with. It has no TLS
// and no passwords, and closes the connection instead of answering a load that has to fail.
package raw

import (
	"encoding/binary"
	"errors"

	"github.com/terapush/terapush/internal/sink"
)

// Listen opens a sink on addr.
func Listen(addr string, o sink.Options) (*sink.Server, error) { return sink.Listen(addr, o, talk) }

func talk(_ uint32, stream *sink.Stream, count *sink.Counters) error {
	for {
		head, err := stream.Next(8)
		if err != nil {
			return err
		}
		size := int(binary.BigEndian.Uint64(head))
		if size < 0 {
			return errors.New("raw sink: negative size")
		}
		count.Statement()
		load := stream.Load(sink.NewDelimited(sink.Text{}))
		if err := load.Take(size); err != nil {
			return err
		}
		bytes, rows, err := load.End()
		if err != nil { // a load that has to fail: the protocol has no such answer
			return err
		}
		count.Loaded(bytes, rows)
		if _, err := stream.Write(binary.BigEndian.AppendUint64(nil, uint64(rows))); err != nil {
			return err
		}
	}
}
