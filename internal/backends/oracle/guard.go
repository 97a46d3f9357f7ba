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

// guard is a connector for go-ora that makes four things safe at the one place all calls pass:
//
// When a context ends, the network connection is closed. go-ora would send a break and go on reading, for ever if the
// server is gone, and it does so on a goroutine that shares its buffers with the call; so it never sees a context that
// can end.
//
// A panic becomes an error and the end of the connection. go-ora panics on answers it does not expect, and package sql
// calls it on goroutines where nobody could recover.
//
// A connection that could not be set up is closed; go-ora leaves it open.
//
// A connection in the middle of a transaction is closed without a goodbye. go-ora's Close logs off, at which the server
// commits; of a connection that is gone it rolls back.
type guard struct {
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// connector makes go-ora's, which dials by what it is given.
	connector func(dial dialer) driver.Connector
	driver    driver.Driver
}

// dialer is how go-ora dials.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// DialContext implements go-ora's interface.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return d(ctx, network, address)
}

// goodbye bounds the last words of a connection.
const goodbye = 2 * time.Second

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
		// A listener may send the client to another address, by another connection: the last one counts.
		if last := c.socket.Swap(s); last != nil {
			_ = last.Close()
		}
		if ctx.Err() != nil { // ended between the two: nobody else would close this one
			c.hangUp()
		}
		return s, nil
	}
	err := c.call(ctx, func(ctx context.Context) (err error) {
		c.Conn, err = g.connector(dial).Connect(ctx)
		return err
	})
	if err != nil {
		c.hangUp()
		return nil, err
	}
	return c, nil
}

// guarded is one connection.
type guarded struct {
	driver.Conn
	socket atomic.Pointer[socket]
	broken atomic.Bool
	open   atomic.Bool // a transaction has begun, and no call has ended it without an error
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

// call runs f with a context that never ends. Where the network connection was closed for ctx, that is said first.
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
			c.hangUp()
			err = driverPanic{p}
		}
		if err != nil && c.broken.Load() && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	}()
	return f(context.WithoutCancel(ctx))
}

func (c *guarded) watch(ctx context.Context) (stop func()) {
	after := context.AfterFunc(ctx, c.hangUp)
	return func() { after() }
}

func (c *guarded) onAnswer(f func()) {
	if s := c.socket.Load(); s != nil {
		s.onAnswer(f)
	}
}

// hangUp closes the network connection under whoever uses it.
func (c *guarded) hangUp() {
	c.broken.Store(true)
	if s := c.socket.Load(); s != nil {
		_ = s.Close()
	}
}

// IsValid implements driver.Validator.
func (c *guarded) IsValid() bool { return !c.broken.Load() }

// CheckNamedValue takes all values as they are: package sql would refuse arrays and go-ora's own types.
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

func (c *guarded) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (r driver.Result, err error) {
	err = c.call(ctx, func(ctx context.Context) (err error) {
		r, err = counted(c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args))
		return err
	})
	return r, err
}

// QueryContext keeps its watch until the rows are closed: they are read by calls without a context.
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

// counted asks a result for its rows while panics are still caught, and refuses one that is none.
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

// Close says goodbye, but not for long.
func (c *guarded) Close() error {
	if c.open.Load() {
		c.hangUp()
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	err := c.call(ctx, func(context.Context) error { return c.Conn.Close() })
	c.hangUp()
	if errors.Is(err, driver.ErrBadConn) {
		return nil // was closed before
	}
	return err
}

type guardedTx struct {
	conn *guarded
	driver.Tx
}

// Commit and Rollback have no context; a session watches its own over them.
func (t guardedTx) Commit() error { return t.end(t.Tx.Commit) }

func (t guardedTx) Rollback() error { return t.end(t.Tx.Rollback) }

func (t guardedTx) end(how func() error) error {
	err := t.conn.call(context.Background(), func(context.Context) error { return how() })
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
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
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
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	return r.conn.call(ctx, func(context.Context) error { return r.Rows.Close() })
}
