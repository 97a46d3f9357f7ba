package postgres

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// socket remembers why it broke. pgconn 5.12 forgets it: where a connection breaks while an answer is awaited, Exec
// returns "conn closed", the error of a connection that was closed before, which moreover calls itself safe to retry
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

// WriteBuffers is Write for several buffers at once, where the connection below can.
func (s *socket) WriteBuffers(b *net.Buffers) (n int64, err error) {
	if below, ok := s.Conn.(vectored); ok {
		n, err = below.WriteBuffers(b)
	} else {
		n, err = b.WriteTo(s.Conn)
	}
	s.note(err)
	return n, err
}

func (s *socket) note(err error) {
	if err != nil {
		s.broken.CompareAndSwap(nil, &err)
	}
}

// socketOf finds the socket below a connection.
func socketOf(c *pgconn.PgConn) *socket {
	below := c.Conn()
	if encrypted, is := below.(*tls.Conn); is {
		below = encrypted.NetConn()
	}
	s, _ := below.(*socket)
	return s
}

// hangUp closes the socket at once. Without it pgconn keeps the socket of a cancelled COPY open for up to 15 s, and
// the server the claim.
func hangUp(c *pgconn.PgConn) {
	if s := socketOf(c); s != nil {
		_ = s.Close()
	}
}

// readOnlyHint tells a standby from a read-only user, which the same SQLSTATE stands for. Servers before PostgreSQL 14 do
// not say which of the two they are, and get the SQLSTATE's hint.
func readOnlyHint(c *pgconn.PgConn, code string) string {
	if code != readOnly {
		return ""
	}
	switch c.ParameterStatus("in_hot_standby") {
	case "on":
		return "this server is a standby: name the primary"
	case "off":
		return "transactions of this user are read-only: --set default_transaction_read_only=off"
	}
	return ""
}

// cause is what really happened: the server's error with all of its words, and the socket's in place of "conn closed".
// What remains must not say that it is safe to retry.
func cause(c *pgconn.PgConn, err error) error {
	said := (*pgconn.PgError)(nil)
	switch {
	case errors.As(err, &said):
		return spoken{said, readOnlyHint(c, said.Code)}
	case !errors.Is(err, pgconn.ErrConnClosed):
		return err
	}
	broken := net.ErrClosed
	if s := socketOf(c); s != nil && s.broken.Load() != nil {
		broken = *s.broken.Load()
	}
	return fmt.Errorf("connection lost: %w", broken)
}
