package postgres_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

// fake is a server that speaks the protocol and knows no SQL: a function answers. It stands for what cannot be
// installed here.
type fake struct {
	listener net.Listener
	answer   func(c *fakeConn, sql string) (alive bool)

	mu   sync.Mutex
	said []string   // every query, in order
	with [][]string // the parameters of those that have some
}

// fakeConn answers one client.
type fakeConn struct {
	*pgproto3.Backend
	socket net.Conn
}

func newFake(t *testing.T, answer func(c *fakeConn, sql string) bool) *fake {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &fake{listener: l, answer: answer}
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			socket, err := l.Accept()
			if err != nil {
				return
			}
			clients.Go(func() { f.serve(socket) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		clients.Wait()
	})
	return f
}

func (f *fake) port() uint16 { return uint16(f.listener.Addr().(*net.TCPAddr).Port) }

// queries lists what clients said that contains the text.
func (f *fake) queries(containing string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []string
	for _, q := range f.said {
		if strings.Contains(q, containing) {
			found = append(found, q)
		}
	}
	return found
}

func (f *fake) serve(socket net.Conn) {
	defer func() { _ = socket.Close() }()
	c := &fakeConn{Backend: pgproto3.NewBackend(socket, socket), socket: socket}
	for {
		start, err := c.ReceiveStartupMessage()
		if err != nil {
			return
		}
		if _, is := start.(*pgproto3.StartupMessage); is {
			break
		}
		if _, err := socket.Write([]byte("N")); err != nil { // no TLS
			return
		}
	}
	c.Send(&pgproto3.AuthenticationOk{})
	c.Send(&pgproto3.ParameterStatus{Name: "server_version", Value: "15.2-YB-2024.2.0.0-b145"})
	c.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{1, 2, 3, 4}})
	c.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	if c.Flush() != nil {
		return
	}
	for {
		message, err := c.Receive()
		if err != nil {
			return
		}
		var sql string
		switch m := message.(type) {
		case *pgproto3.Query:
			sql = m.String
		case *pgproto3.Parse: // Bind, Describe, Execute and Sync follow
			sql = m.Query
			if !f.parameters(c) {
				return
			}
		default:
			return
		}
		f.mu.Lock()
		f.said = append(f.said, sql)
		f.mu.Unlock()
		if !f.answer(c, sql) {
			return
		}
		c.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if c.Flush() != nil {
			return
		}
	}
}

// parameters takes the rest of an extended query.
func (f *fake) parameters(c *fakeConn) bool {
	for {
		message, err := c.Receive()
		if err != nil {
			return false
		}
		switch m := message.(type) {
		case *pgproto3.Bind:
			var values []string
			for _, v := range m.Parameters {
				values = append(values, string(v))
			}
			f.mu.Lock()
			f.with = append(f.with, values)
			f.mu.Unlock()
			c.Send(&pgproto3.ParseComplete{})
			c.Send(&pgproto3.BindComplete{})
		case *pgproto3.Sync:
			return true
		}
	}
}

// rows answers with rows of text.
func (c *fakeConn) rows(rows ...[]string) {
	if len(rows) > 0 {
		var head pgproto3.RowDescription
		for range rows[0] {
			head.Fields = append(head.Fields, pgproto3.FieldDescription{Name: []byte("c"), DataTypeOID: 25})
		}
		c.Send(&head)
	}
	for _, row := range rows {
		var values [][]byte
		for _, v := range row {
			values = append(values, []byte(v))
		}
		c.Send(&pgproto3.DataRow{Values: values})
	}
	c.tag("SELECT")
}

func (c *fakeConn) tag(text string) {
	c.Send(&pgproto3.CommandComplete{CommandTag: []byte(text)})
}

func (c *fakeConn) fails(code, message string) {
	c.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: code, Message: message})
}

// copyIn takes a COPY stream.
func (c *fakeConn) copyIn() (body []byte) {
	c.Send(&pgproto3.CopyInResponse{OverallFormat: 1, ColumnFormatCodes: []uint16{1, 1}})
	if c.Flush() != nil {
		return nil
	}
	for {
		message, err := c.Receive()
		if err != nil {
			return body
		}
		data, more := message.(*pgproto3.CopyData)
		if !more {
			return body
		}
		body = append(body, data.Data...)
	}
}
