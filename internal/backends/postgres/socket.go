package postgres

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/sqlload"
)

// socket keeps the error that broke it. pgconn 5.12 loses that error: if a connection breaks while it waits for an
// answer, Exec returns "conn closed", the error of a connection that was closed before, and calls it safe to retry
// although the statement was sent (MultiResultReader.NextResult drops the error of its peekMessage).
type socket struct {
	net.Conn
	broken atomic.Pointer[error] // the first error
}

func (s *socket) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	s.note(err)
	return n, err
}

func (s *socket) Write(p []byte) (int, error) {
	n, err := s.Conn.Write(p)
	s.note(err)
	return n, err
}

// WriteBuffers is sqlload.WriteBuffers.
func (s *socket) WriteBuffers(b *net.Buffers) (int64, error) {
	n, err := sqlload.WriteBuffers(s.Conn, b)
	s.note(err)
	return n, err
}

func (s *socket) note(err error) {
	if err != nil {
		first := err // &err would move err to the heap in every call: an allocation for every record of TLS
		s.broken.CompareAndSwap(nil, &first)
	}
}

// socketOf returns the socket below a connection.
func socketOf(c *pgconn.PgConn) *socket {
	below := c.Conn()
	if encrypted, is := below.(*tls.Conn); is {
		below = encrypted.NetConn()
	}
	s, _ := below.(*socket)
	return s
}

// closeSocket closes the socket at once. Without it pgconn keeps the socket of a cancelled COPY open for up to 15 s,
// and the server the claim.
func closeSocket(c *pgconn.PgConn) {
	if s := socketOf(c); s != nil {
		_ = s.Close()
	}
}

// cause returns the server's error with all of its parts, or the socket's error in place of "conn closed". The result
// must not say that it is safe to retry.
func cause(c *pgconn.PgConn, err error) error {
	server := (*pgconn.PgError)(nil)
	switch {
	case errors.As(err, &server):
		return serverError{server}
	case !errors.Is(err, pgconn.ErrConnClosed):
		return err
	}
	broken := net.ErrClosed
	if s := socketOf(c); s != nil && s.broken.Load() != nil {
		broken = *s.broken.Load()
	}
	return fmt.Errorf("connection lost: %w", broken)
}
