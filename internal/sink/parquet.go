package sink

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// magic begins and ends a Parquet file.
const magic = "PAR1"

// maxFooter is how much of a Parquet file's end is kept, in bytes: that of a file with a thousand columns and a dozen
// row groups.
const maxFooter = 256 << 10

// Parquet counts the rows of a Parquet file by its footer. It does not look at the pages.
type Parquet struct{ tail []byte }

// Write takes in p.
func (c *Parquet) Write(p []byte) {
	const kept = maxFooter + 8
	p = p[max(0, len(p)-kept):]
	if len(c.tail)+len(p) > 2*kept {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-kept:]...)
	}
	c.tail = append(c.tail, p...)
}

var errFooter = errors.New("it does not end with a Parquet footer of at most 256 KiB")

// Rows returns the number of rows in the footer.
func (c *Parquet) Rows() (int64, error) {
	end := len(c.tail) - 8
	if end < 0 || string(c.tail[end+4:]) != magic {
		return 0, errFooter
	}
	length := int(binary.LittleEndian.Uint32(c.tail[end:]))
	if length > end || length > maxFooter {
		return 0, errFooter
	}

	var footer format.FileMetaData
	err := thrift.Unmarshal(new(thrift.CompactProtocol), c.tail[end-length:end], &footer)
	if err != nil || footer.NumRows < 0 {
		return 0, errFooter
	}
	return footer.NumRows, nil
}

// Sniffed counts the rows of a file whose format nobody declares: those in its footer if it begins as a Parquet file
// does, or else lines.
type Sniffed struct {
	head    []byte
	lines   int64
	open    bool // a line has begun and not ended
	parquet Parquet
}

// Write counts in p.
func (s *Sniffed) Write(p []byte) {
	if len(p) == 0 {
		return
	}
	s.head = append(s.head, p[:min(len(p), len(magic)-len(s.head))]...)
	if string(s.head) == magic[:len(s.head)] {
		s.parquet.Write(p)
	}
	s.lines += int64(bytes.Count(p, []byte{'\n'}))
	s.open = p[len(p)-1] != '\n'
}

// Rows returns the number of rows.
func (s *Sniffed) Rows() (int64, error) {
	if string(s.head) == magic {
		return s.parquet.Rows()
	}
	if s.open {
		return s.lines + 1, nil
	}
	return s.lines, nil
}
