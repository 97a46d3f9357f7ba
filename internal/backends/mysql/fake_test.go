package mysql

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// fakeServer speaks as much of MySQL's protocol (MySQL internals manual, "Client/Server Protocol") as a load needs: it
// lets everybody in, answers queries by a script, and takes and discards what LOAD DATA LOCAL sends. It stands in for
// the flavours that cannot be had here, and for a server that costs nothing.
type fakeServer struct {
	vars map[string]string // SHOW VARIABLES
	// answer is asked first about every query; nil means: decide as usual.
	answer func(query string) *fakeAnswer

	mu    sync.Mutex
	heard []string
}

// fakeAnswer is rows, an error, or else OK.
type fakeAnswer struct {
	rows     [][]string
	affected uint64
	err      *mysql.MySQLError
}

// start serves on a loopback port and returns the target that leads there.
func (s *fakeServer) start(t testing.TB, scheme string) loader.Target {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go s.serve(listener)
	return loader.Target{
		Scheme: scheme, Hosts: []string{listener.Addr().String()}, User: "root", Database: "db", Table: "documents",
		Method: loadData, TLS: loader.TLSOff,
	}
}

func (s *fakeServer) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { _ = c.Close() }()
			_ = s.converse(&fakeConn{in: bufio.NewReaderSize(c, 1<<18), out: c})
		}()
	}
}

// statements are the queries heard so far, without the question for the variables.
func (s *fakeServer) statements() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.heard...)
}

func (s *fakeServer) converse(c *fakeConn) error {
	if err := c.greet(); err != nil {
		return err
	}
	for {
		packet, err := c.read()
		if err != nil || packet[0] == 1 { // COM_QUIT
			return err
		}
		if packet[0] != 3 { // COM_QUERY
			err = c.ok(0)
		} else {
			err = s.query(c, string(packet[1:]))
		}
		if err != nil {
			return err
		}
	}
}

func (s *fakeServer) query(c *fakeConn, query string) error {
	if query == "SHOW VARIABLES" {
		var rows [][]string
		for name, value := range s.vars {
			rows = append(rows, []string{name, value})
		}
		return c.rows(rows, 2)
	}
	s.mu.Lock()
	s.heard = append(s.heard, query)
	s.mu.Unlock()
	if s.answer != nil {
		if a := s.answer(query); a != nil {
			return c.answer(*a)
		}
	}
	switch {
	case strings.Contains(query, "LOAD DATA LOCAL"):
		_, name, _ := strings.Cut(query, "INFILE '")
		name, _, _ = strings.Cut(name, "'")
		lines, err := c.take(name)
		if err != nil {
			return err
		}
		return c.ok(lines)
	case query == "SELECT CONNECTION_ID()", strings.Contains(query, "COUNT("):
		return c.rows([][]string{{"0"}}, 1)
	case query == "SHOW WARNINGS":
		return c.rows(nil, 3)
	case strings.HasPrefix(query, "SELECT"):
		return c.rows(nil, 1)
	}
	return c.ok(0)
}

// fakeConn frames packets: three bytes of length, one of sequence.
type fakeConn struct {
	in       *bufio.Reader
	out      io.Writer
	sequence byte
}

func (c *fakeConn) read() ([]byte, error) {
	var header [4]byte
	if _, err := io.ReadFull(c.in, header[:]); err != nil {
		return nil, err
	}
	c.sequence = header[3] + 1
	p := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
	_, err := io.ReadFull(c.in, p)
	if err == nil && len(p) == 0 {
		err = errors.New("an empty packet where a command was due")
	}
	return p, err
}

func (c *fakeConn) write(p []byte) error {
	n := len(p)
	_, err := c.out.Write(append([]byte{byte(n), byte(n >> 8), byte(n >> 16), c.sequence}, p...))
	c.sequence++
	return err
}

func (c *fakeConn) greet() error {
	const capabilities = 1<<3 | 1<<7 | 1<<9 | 1<<13 | 1<<15 | 1<<19 // with database, local files, 4.1, transactions, secure, plugins
	p := append([]byte{10}, "8.0.0-fake\x00"...)
	p = append(p, 1, 0, 0, 0)        // connection id
	p = append(p, "12345678\x00"...) // salt, first part
	p = binary.LittleEndian.AppendUint16(p, capabilities&0xffff)
	p = append(p, 45, 2, 0) // utf8mb4, autocommit
	p = binary.LittleEndian.AppendUint16(p, capabilities>>16)
	p = append(p, 21) // length of the salt
	p = append(p, make([]byte, 10)...)
	p = append(p, "123456789012\x00mysql_native_password\x00"...)
	if err := c.write(p); err != nil {
		return err
	}
	if _, err := c.read(); err != nil {
		return err
	}
	return c.ok(0)
}

func (c *fakeConn) ok(affected uint64) error {
	p := appendLength([]byte{0}, affected)
	return c.write(append(p, 0, 2, 0, 0, 0)) // no insert id, autocommit, no warnings
}

func (c *fakeConn) answer(a fakeAnswer) error {
	switch {
	case a.err != nil:
		p := binary.LittleEndian.AppendUint16([]byte{0xff}, a.err.Number)
		return c.write(append(p, "#HY000"+a.err.Message...))
	case a.rows != nil:
		return c.rows(a.rows, len(a.rows[0]))
	}
	return c.ok(a.affected)
}

// rows sends a result set of strings.
func (c *fakeConn) rows(rows [][]string, columns int) error {
	eof := []byte{0xfe, 0, 0, 2, 0}
	packets := [][]byte{{byte(columns)}}
	for range columns {
		p := append([]byte{3}, "def\x00\x00\x00\x01c\x00"...)
		p = append(p, 12, 45, 0, 0, 4, 0, 0, 253, 0, 0, 0, 0, 0) // utf8mb4, VAR_STRING
		packets = append(packets, p)
	}
	packets = append(packets, eof)
	for _, row := range rows {
		var p []byte
		for _, v := range row {
			p = append(appendLength(p, uint64(len(v))), v...)
		}
		packets = append(packets, p)
	}
	for _, p := range append(packets, eof) {
		if err := c.write(p); err != nil {
			return err
		}
	}
	return nil
}

// take asks for a file, discards it and counts its lines.
func (c *fakeConn) take(name string) (lines uint64, err error) {
	if err := c.write(append([]byte{0xfb}, name...)); err != nil {
		return 0, err
	}
	for {
		var header [4]byte
		if _, err := io.ReadFull(c.in, header[:]); err != nil {
			return 0, err
		}
		c.sequence = header[3] + 1
		n := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
		if n == 0 {
			return lines, nil
		}
		for n > 0 {
			p, err := c.in.Peek(min(n, max(c.in.Buffered(), 1)))
			if err != nil {
				return 0, err
			}
			lines += uint64(bytes.Count(p, []byte{10}))
			_, _ = c.in.Discard(len(p))
			n -= len(p)
		}
	}
}

// appendLength writes a length-encoded integer.
func appendLength(p []byte, n uint64) []byte {
	switch {
	case n < 251:
		return append(p, byte(n))
	case n < 1<<16:
		return binary.LittleEndian.AppendUint16(append(p, 0xfc), uint16(n))
	}
	return binary.LittleEndian.AppendUint64(append(p, 0xfe), n)
}

// documentsColumns answers for a table that takes documents.
func documentsColumns() *fakeAnswer {
	return &fakeAnswer{rows: [][]string{{"document_id", "bigint(20)", "", "0", "0"}, {"payload", "longblob", "", "4294967295", "0"}}}
}
