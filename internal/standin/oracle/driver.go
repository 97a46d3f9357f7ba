package oracle

import (
	"context"
	"database/sql/driver"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"sync/atomic"
)

// request is what the driver sends. Padding makes it as long as the batch: what cuts a connection in the middle of a
// batch's bytes cuts it in the middle of its request.
type request struct {
	SQL      string
	Explicit bool
	Binds    []any
	Padding  []byte
}

// response is what the server answers.
type response struct {
	Err   *Error
	Rows  int64
	Cells [][]any // string, []byte or nil
}

// Connector returns a connector whose connections are dialed by dial. If watch is true calls end with their context
// even where the driver is like go-ora.
func (s *Server) Connector(watch bool, dial func(context.Context) (net.Conn, error)) driver.Connector {
	return connector{dial, watch || s.options.Native}
}

type connector struct {
	dial    func(context.Context) (net.Conn, error)
	watches bool
}

func (connector) Driver() driver.Driver { return nil }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	n, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = n.Close() })() // as with both drivers
	k := &conn{net: n, enc: gob.NewEncoder(n), dec: gob.NewDecoder(n), watches: c.watches}
	if _, err := k.ask(ctx, Connect, nil); err != nil {
		_ = n.Close()
		return nil, err
	}
	return k, nil
}

// conn is one connection. Package database/sql lets one goroutine use it at a time, and calls no method without a
// context.
type conn struct {
	driver.Conn
	net     net.Conn
	enc     *gob.Encoder
	dec     *gob.Decoder
	watches bool
	tx      bool
	bad     atomic.Bool
}

// ask sends a request and reads its answer. Like go-ora it distinguishes a connection that was closed from one that
// broke.
func (c *conn) ask(ctx context.Context, sql string, args []driver.NamedValue) (*response, error) {
	if c.bad.Load() {
		return nil, driver.ErrBadConn
	}
	r := request{SQL: sql, Explicit: c.tx}
	for _, arg := range args {
		r.Binds = append(r.Binds, arg.Value)
		if n := elements(arg.Value); n != elements(args[0].Value) {
			// go-ora would drop the tail of the longer ones, and godror take a scalar for the first row's.
			return nil, fmt.Errorf("stand-in: arrays of %d and of %d values", elements(args[0].Value), n)
		}
	}
	if len(args) > 0 {
		r.Padding = make([]byte, 8*len(args)*elements(args[0].Value))
	}
	if c.watches {
		defer context.AfterFunc(ctx, func() { _ = c.net.Close() })()
	}
	var a response
	err := c.enc.Encode(r)
	if err == nil {
		err = c.dec.Decode(&a)
	}
	switch {
	case err != nil:
		return nil, c.lost(ctx, err)
	case a.Err != nil:
		return nil, a.Err
	}
	return &a, nil
}

func (c *conn) lost(ctx context.Context, err error) error {
	c.bad.Store(true)
	_ = c.net.Close()
	switch {
	case c.watches && ctx.Err() != nil:
		return Ora(1013)
	case errors.Is(err, io.EOF):
		return driver.ErrBadConn
	}
	return err
}

// elements returns how many values an array has; 1 for a scalar.
func elements(bind any) int {
	if v := reflect.ValueOf(bind); v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8 {
		return v.Len()
	}
	return 1
}

// element returns the n-th value of an array, or the scalar.
func element(bind any, n int) any {
	if v := reflect.ValueOf(bind); v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8 {
		return v.Index(n).Interface()
	}
	return bind
}

// Close logs off, as go-ora does whatever is open. godror rolls back first, which the end of the connection does too.
func (c *conn) Close() error {
	if !c.tx || !c.watches {
		_, _ = c.ask(context.Background(), LogOff, nil)
	}
	c.bad.Store(true)
	return c.net.Close()
}

func (c *conn) IsValid() bool { return !c.bad.Load() }

// CheckNamedValue accepts everything, as both drivers do.
func (c *conn) CheckNamedValue(*driver.NamedValue) error { return nil }

// BeginTx sends nothing: a transaction begins with its first statement.
func (c *conn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	if c.bad.Load() {
		return nil, driver.ErrBadConn
	}
	c.tx = true
	return tx{c}, nil
}

type tx struct{ c *conn }

func (t tx) Commit() error   { return t.end(Commit) }
func (t tx) Rollback() error { return t.end(Rollback) }

func (t tx) end(how string) error {
	_, err := t.c.ask(context.Background(), how, nil)
	t.c.tx = err != nil && t.c.watches // a transaction that may still be open is not left to a logoff
	return err
}

func (c *conn) ExecContext(ctx context.Context, sql string, args []driver.NamedValue) (driver.Result, error) {
	a, err := c.ask(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(a.Rows), nil
}

func (c *conn) QueryContext(ctx context.Context, sql string, args []driver.NamedValue) (driver.Rows, error) {
	a, err := c.ask(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return &found{a.Cells}, nil
}

// PrepareContext sends nothing: both drivers parse with the first execution.
func (c *conn) PrepareContext(_ context.Context, sql string) (driver.Stmt, error) {
	return stmt{conn: c, sql: sql}, nil
}

type stmt struct {
	driver.Stmt
	conn *conn
	sql  string
}

func (s stmt) Close() error                             { return nil }
func (s stmt) NumInput() int                            { return -1 }
func (s stmt) CheckNamedValue(*driver.NamedValue) error { return nil }
func (s stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, s.sql, args)
}

// found is the rows of an answer.
type found struct{ cells [][]any }

func (f *found) Close() error { return nil }

// Columns returns names that mean nothing.
func (f *found) Columns() []string {
	if len(f.cells) == 0 {
		return nil
	}
	return make([]string, len(f.cells[0]))
}

func (f *found) Next(to []driver.Value) error {
	if len(f.cells) == 0 {
		return io.EOF
	}
	for i, v := range f.cells[0] {
		to[i] = v
	}
	f.cells = f.cells[1:]
	return nil
}
