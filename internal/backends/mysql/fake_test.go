package mysql

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"testing"

	protocol "github.com/go-mysql-org/go-mysql/mysql"
	fakes "github.com/go-mysql-org/go-mysql/server"
	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// fakeServer is a scripted server in place of the flavours that cannot be installed here. It lets every client in, and
// takes what LOAD DATA LOCAL sends.
type fakeServer struct {
	vars map[string]string // SHOW VARIABLES
	// answer is asked first about every query; nil leaves the query to the defaults.
	answer func(query string) *fakeAnswer
	tls    *tls.Config // nil: it has none

	mu   sync.Mutex
	said []string
	file []byte // the last one that LOAD DATA LOCAL has sent to its end
	cut  []int  // how long its packets were
}

// fakeAnswer is rows, an error, or else OK.
type fakeAnswer struct {
	rows [][]string
	err  *mysql.MySQLError
}

func rowsOf(rows ...[]string) *fakeAnswer { return &fakeAnswer{rows: rows} }

// start serves on a loopback port and returns the target that leads there.
func (s *fakeServer) start(t testing.TB, scheme string) loader.Target {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	conf := fakes.NewServer("8.0.0-fake", protocol.DEFAULT_COLLATION_ID, protocol.AUTH_NATIVE_PASSWORD, nil, s.tls)
	go func() {
		for {
			socket, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = socket.Close() }()
				c := &fakeConn{server: s}
				if c.Conn, err = conf.NewConn(socket, "root", "", c); err != nil {
					return
				}
				for c.HandleCommand() == nil {
				}
			}()
		}
	}()
	return loader.Target{
		Scheme: scheme, Hosts: []string{listener.Addr().String()}, User: "root", Database: "db", Table: "documents",
		Method: methodLoadData, TLS: loader.TLSOff,
	}
}

// statements returns the queries so far, without SHOW VARIABLES.
func (s *fakeServer) statements() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.said...)
}

// count counts the queries that begin with a text.
func (s *fakeServer) count(prefix string) (n int) {
	for _, q := range s.statements() {
		if strings.HasPrefix(q, prefix) {
			n++
		}
	}
	return n
}

func (s *fakeServer) variables() *fakeAnswer {
	var rows [][]string
	for name, value := range s.vars {
		rows = append(rows, []string{name, value})
	}
	return &fakeAnswer{rows: rows}
}

// decide returns the answer to a query that is no LOAD DATA LOCAL.
func (s *fakeServer) decide(query string) *fakeAnswer {
	if query == "SHOW VARIABLES" {
		return s.variables()
	}
	s.mu.Lock()
	s.said = append(s.said, query)
	s.mu.Unlock()
	if s.answer != nil {
		if a := s.answer(query); a != nil {
			return a
		}
	}
	switch {
	case query == "SELECT CONNECTION_ID()", strings.Contains(query, "COUNT("):
		return rowsOf([]string{"0"})
	case strings.HasPrefix(query, "SELECT 1 FROM") && strings.Contains(query, "terapush_runs"):
		return rowsOf([]string{"1"}) // the run is this process's
	case query == "SHOW WARNINGS", strings.HasPrefix(query, "SELECT"):
		return &fakeAnswer{rows: [][]string{}}
	}
	return &fakeAnswer{}
}

// fakeConn is one connection.
type fakeConn struct {
	fakes.EmptyHandler
	*fakes.Conn
	server *fakeServer
}

func (c *fakeConn) UseDB(string) error { return nil }

// HandleQuery implements fakes.Handler.
func (c *fakeConn) HandleQuery(query string) (*protocol.Result, error) {
	query = strings.Clone(query) // it lies in the connection's buffer
	a := c.server.decide(query)
	switch _, name, isLoad := strings.Cut(query, "LOAD DATA LOCAL INFILE '"); {
	case a.err != nil:
		return nil, &protocol.MyError{Code: a.err.Number, State: "HY000", Message: a.err.Message}
	case isLoad:
		name, _, _ = strings.Cut(name, "'")
		lines, err := c.take(name)
		return &protocol.Result{AffectedRows: lines}, err
	case a.rows == nil:
		return &protocol.Result{AffectedRows: 1}, nil
	}
	columns := 1
	if len(a.rows) > 0 {
		columns = len(a.rows[0])
	}
	set := protocol.NewResultset(columns)
	for i := range set.Fields {
		set.Fields[i] = &protocol.Field{Name: []byte("c"), Charset: 45, Type: protocol.MYSQL_TYPE_VAR_STRING}
	}
	for _, row := range a.rows {
		var line []byte
		for _, v := range row {
			line = append(line, protocol.PutLengthEncodedString([]byte(v))...)
		}
		set.RowDatas = append(set.RowDatas, line)
	}
	return &protocol.Result{Resultset: set}, nil
}

// take asks for a file, keeps it and counts its lines. Packets out of order are an error.
func (c *fakeConn) take(name string) (lines uint64, err error) {
	if err := c.WritePacket(append([]byte{0, 0, 0, 0, 0xfb}, name...)); err != nil {
		return 0, err
	}
	var file []byte
	var cut []int
	for {
		p, err := c.ReadPacket()
		if err != nil {
			c.Close() // the client may not be done
			return 0, err
		}
		if len(p) == 0 {
			break
		}
		file, cut = append(file, p...), append(cut, len(p))
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.server.file, c.server.cut = file, cut
	return uint64(bytes.Count(file, []byte{'\n'})), nil
}

// documentsColumns answers for a table that takes documents.
func documentsColumns() *fakeAnswer {
	return rowsOf(
		[]string{"document_id", "bigint(20)", "NO", "", "", "", "", "", "0"},
		[]string{"payload", "longblob", "NO", "", "", "", "", "", "4294967295"},
	)
}
