//go:build !godror

package oracle

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// guard is a connector over go-ora's. All calls pass through it, and it makes four things safe:
//
// When a context ends, the network connection is closed. go-ora would send a break and go on reading, forever if the
// server is gone, on a goroutine that shares its buffers with the call; so go-ora never sees a context that can end.
//
// A panic becomes an error and the end of the connection. go-ora panics on answers that it does not expect, and package
// sql calls it on goroutines of its own.
//
// A connection that could not be set up is closed; go-ora leaves it open.
//
// A connection with an open transaction is closed without a logoff. go-ora's Close logs off, at which the server
// commits; it rolls back when a connection breaks.
type guard struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// connector returns go-ora's connector, which dials with dial.
	connector func(dial dialer) driver.Connector
	driver    driver.Driver
}

// dialer is how go-ora dials.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// DialContext implements go-ora's interface.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// closeTimeout bounds closing statements, rows and connections.
const closeTimeout = 2 * time.Second

func (g guard) Driver() driver.Driver { return g.driver }

// Connect implements driver.Connector.
func (g guard) Connect(ctx context.Context) (driver.Conn, error) {
	c := &guarded{}
	dial := func(_ context.Context, network, address string) (net.Conn, error) {
		conn, err := g.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		s := &socket{Conn: conn}
		// A listener may redirect the client: the last connection counts.
		if last := c.socket.Swap(s); last != nil {
			_ = last.Close()
		}
		if ctx.Err() != nil { // it ended before Swap, and closed another connection
			c.closeSocket()
		}
		return s, nil
	}
	err := c.call(ctx, func(ctx context.Context) (err error) {
		c.Conn, err = g.connector(dial).Connect(ctx)
		return err
	})
	if err != nil {
		c.closeSocket()
		return nil, err
	}
	return c, nil
}

// guarded is one connection.
type guarded struct {
	driver.Conn
	socket atomic.Pointer[socket]
	broken atomic.Bool
	open   atomic.Bool // a transaction has begun, and has not ended without an error
}

var (
	_ driver.ConnBeginTx        = (*guarded)(nil)
	_ driver.ConnPrepareContext = (*guarded)(nil)
	_ driver.ExecerContext      = (*guarded)(nil)
	_ driver.QueryerContext     = (*guarded)(nil)
	_ driver.NamedValueChecker  = (*guarded)(nil)
	_ driver.Validator          = (*guarded)(nil)
	_ watcher                   = (*guarded)(nil)
)

// call runs f with a context that never ends. The error begins with that of ctx if its end closed the connection.
func (c *guarded) call(ctx context.Context, f func(context.Context) error) (err error) {
	if c.broken.Load() {
		return driver.ErrBadConn // nothing was sent
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	stop := c.watch(ctx)
	defer func() {
		stop()
		if p := recover(); p != nil {
			c.closeSocket()
			err = driverPanic{p}
		}
		if err != nil && c.broken.Load() && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}()
	return f(context.WithoutCancel(ctx))
}

func (c *guarded) watch(ctx context.Context) (stop func()) {
	after := context.AfterFunc(ctx, c.closeSocket)
	return func() { after() }
}

func (c *guarded) onAnswer(f func()) {
	if s := c.socket.Load(); s != nil {
		s.onAnswer(f)
	}
}

// closeSocket closes the network connection. It may be called during a call.
func (c *guarded) closeSocket() {
	c.broken.Store(true)
	if s := c.socket.Load(); s != nil {
		_ = s.Close()
	}
}

// IsValid implements driver.Validator.
func (c *guarded) IsValid() bool { return !c.broken.Load() }

// CheckNamedValue accepts all values: package sql would refuse arrays and go-ora's own types.
func (c *guarded) CheckNamedValue(*driver.NamedValue) error { return nil }

func (c *guarded) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	var tx driver.Tx
	err := c.call(ctx, func(ctx context.Context) (err error) {
		tx, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	c.open.Store(true)
	return guardedTx{c, tx}, nil
}

func (c *guarded) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s := &guardedStmt{conn: c}
	err := c.call(ctx, func(ctx context.Context) (err error) {
		s.Stmt, err = c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (c *guarded) ExecContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (r driver.Result, err error) {
	err = c.call(ctx, func(ctx context.Context) (err error) {
		r, err = counted(c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args))
		return err
	})
	return r, err
}

// QueryContext watches ctx until the rows are closed, since reading them takes no context.
func (c *guarded) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r := &guardedRows{conn: c, stop: c.watch(ctx)}
	err := c.call(ctx, func(ctx context.Context) (err error) {
		r.Rows, err = c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
		return err
	})
	if err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// counted reads the number of rows while panics are still recovered, and refuses a nil result.
func counted(r driver.Result, err error) (driver.Result, error) {
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, errNoResult
	}
	n, err := r.RowsAffected()
	return driver.RowsAffected(n), err
}

// Close logs off, for at most closeTimeout.
func (c *guarded) Close() error {
	if c.open.Load() {
		c.closeSocket()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := c.call(ctx, func(context.Context) error { return c.Conn.Close() })
	c.closeSocket()
	if errors.Is(err, driver.ErrBadConn) {
		return nil // it was closed before
	}
	return err
}

type guardedTx struct {
	conn *guarded
	driver.Tx
}

// Commit takes no context; a session calls watch with its own.
func (t guardedTx) Commit() error { return t.end(t.Tx.Commit) }

func (t guardedTx) Rollback() error { return t.end(t.Tx.Rollback) }

func (t guardedTx) end(f func() error) error {
	err := t.conn.call(context.Background(), func(context.Context) error { return f() })
	if err == nil {
		t.conn.open.Store(false)
	}
	return err
}

type guardedStmt struct {
	driver.Stmt
	conn *guarded
}

func (s *guardedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (r driver.Result, err error) {
	err = s.conn.call(ctx, func(ctx context.Context) (err error) {
		r, err = counted(s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args))
		return err
	})
	return r, err
}

func (s *guardedStmt) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return s.conn.call(ctx, func(context.Context) error { return s.Stmt.Close() })
}

type guardedRows struct {
	driver.Rows
	conn *guarded
	stop func()
}

func (r *guardedRows) Next(to []driver.Value) error {
	return r.conn.call(context.Background(), func(context.Context) error { return r.Rows.Next(to) })
}

func (r *guardedRows) Close() error {
	defer r.stop()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return r.conn.call(ctx, func(context.Context) error { return r.Rows.Close() })
}

// socket is go-ora's network connection. One goroutine at a time reads and writes; any may close it.
type socket struct {
	net.Conn
	wrote  bool
	answer func() // called once, at the first read after a write; nil

	received int  // bytes, up to lengthBytes
	high     byte // the first one
}

// errNoTNS is the error of an answer that is no packet of Oracle's protocol.
var errNoTNS = errors.New("the server does not speak Oracle's protocol")

func (s *socket) Write(p []byte) (int, error) {
	s.wrote = true
	return s.Conn.Write(p)
}

func (s *socket) Read(p []byte) (int, error) {
	if f := s.answer; f != nil && s.wrote {
		s.answer = nil
		f()
	}
	n, err := s.Conn.Read(p)
	if s.received < lengthBytes && !s.validStart(p[:n]) {
		return 0, errNoTNS
	}
	return n, err
}

// A packet begins with its length, header included, in two bytes until both sides have agreed on a version.
const (
	lengthBytes = 2
	headerBytes = 8
)

// validStart checks the length of the first packet: one that is shorter than the header, as HTTP/2 sends it, makes
// go-ora allocate 4 GiB. Later packets are not checked: where their length is depends on the version, and TLS hides it.
func (s *socket) validStart(p []byte) bool {
	for _, b := range p {
		if s.received++; s.received == 1 {
			s.high = b
			continue
		}
		return int(s.high)<<8|int(b) >= headerBytes
	}
	return true
}

// onAnswer waits for the next write.
func (s *socket) onAnswer(f func()) { s.wrote, s.answer = false, f }
