package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader"
)

// spareFor is how long a spare connection may wait: firewalls forget one that is idle for minutes, and then the ping of
// take would wait for nothing.
const spareFor = 10 * time.Second

// spare is the connection that has asked last. A push asks a dozen times before its first row and after its last, and
// each connection costs three round trips, or five with TLS, and the server ten milliseconds.
type spare struct {
	mu    sync.Mutex
	conn  *pgconn.PgConn // nil: none
	since time.Time
}

// take returns the connection if it still answers, or else nil.
func (s *spare) take(ctx context.Context) *pgconn.PgConn {
	s.mu.Lock()
	c, age := s.conn, time.Since(s.since)
	s.conn = nil
	s.mu.Unlock()
	if c == nil {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, loader.ConnectTimeout)
	defer cancel()
	if age < spareFor && c.Ping(ctx) == nil {
		return c
	}
	_ = closeConn(c)
	return nil
}

// keep takes a connection over that nobody needs any more. It closes the one that it has, and one with a transaction.
func (s *spare) keep(c *pgconn.PgConn) error {
	if c.IsClosed() || c.IsBusy() || c.TxStatus() != 'I' {
		return closeConn(c)
	}

	s.mu.Lock()
	c, s.conn, s.since = s.conn, c, time.Now()
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	return closeConn(c)
}

// drop closes the connection.
func (s *spare) drop() error {
	s.mu.Lock()
	c := s.conn
	s.conn = nil
	s.mu.Unlock()
	if c == nil {
		return nil
	}
	return closeConn(c)
}
