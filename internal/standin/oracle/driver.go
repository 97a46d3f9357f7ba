package oracle

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"
	"time"
)

// request is what the driver sends, and response what the server answers.
type request struct {
	SQL      string
	Explicit bool
	Binds    []any
}

type response struct {
	Err   *Error
	Panic string
	Rows  int64
	Cells [][]any // string, []byte or nil
}

// numbers are eight bytes each on the wire, as in a batch: what cuts a connection in the middle of a batch's bytes cuts
// it in the middle of its body, however small the numbers are.
type numbers []byte

func init() {
	for _, v := range []any{numbers{}, [][]byte{}, []time.Time{}, time.Time{}} {
		gob.Register(v)
	}
}

// Connector returns a connector whose connections are dialed by dial. If watch is true calls end with their context even
// where the driver is like go-ora.
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

// conn is one connection. Package database/sql lets one goroutine use it at a time.
type conn struct {
	net     net.Conn
	enc     *gob.Encoder
	dec     *gob.Decoder
	watches bool
	tx      bool
	bad     atomic.Bool
}

var (
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)
)

// ask sends a request and reads its answer. Like go-ora it distinguishes a connection that was closed from one that broke.
func (c *conn) ask(ctx context.Context, sql string, args []driver.NamedValue) (*response, error) {
	if c.bad.Load() {
		return nil, driver.ErrBadConn
	}
	binds, err := bindsOf(args)
	if err != nil {
		return nil, err
	}
	if c.watches {
		defer context.AfterFunc(ctx, func() { _ = c.net.Close() })()
	}
	var a response
	if err = c.enc.Encode(request{sql, c.tx, binds}); err == nil {
		err = c.dec.Decode(&a)
	}
	switch {
	case err != nil:
		return nil, c.lost(ctx, err)
	case a.Panic != "":
		panic(a.Panic)
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

// bindsOf converts arguments. It refuses what go-ora or godror would misread silently: arrays of different lengths, of
// which the tail is dropped, and a scalar among arrays, which is NULL in all rows but the first.
func bindsOf(args []driver.NamedValue) (binds []any, err error) {
	length := -1
	for _, a := range args {
		n := 0
		switch v := a.Value.(type) {
		case int64, string, []byte, time.Time:
			binds = append(binds, v)
		case []int64:
			n = len(v)
			all, _ := binary.Append(nil, binary.BigEndian, v)
			binds = append(binds, numbers(all))
		case []string:
			n, binds = len(v), append(binds, v)
		case [][]byte:
			n, binds = len(v), append(binds, v)
		case []time.Time:
			n, binds = len(v), append(binds, v)
		default:
			return nil, fmt.Errorf("stand-in: a bind of type %T", v)
		}
		if length >= 0 && n != length {
			return nil, fmt.Errorf("stand-in: arrays of %d and of %d values", length, n)
		}
		length = n
	}
	return binds, nil
}

// received undoes what bindsOf does with numbers.
func received(binds []any) []any {
	binds = slices.Clone(binds)
	for i, b := range binds {
		if all, is := b.(numbers); is {
			v := make([]int64, len(all)/8)
			_, _ = binary.Decode(all, binary.BigEndian, v)
			binds[i] = v
		}
	}
	return binds
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

func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

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

func (c *conn) Prepare(sql string) (driver.Stmt, error) { return stmt{c, sql}, nil }

// PrepareContext sends nothing: both drivers parse with the first execution.
func (c *conn) PrepareContext(_ context.Context, sql string) (driver.Stmt, error) {
	return stmt{c, sql}, nil
}

type stmt struct {
	*conn
	sql string
}

func (s stmt) Close() error                               { return nil }
func (s stmt) NumInput() int                              { return -1 }
func (s stmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (s stmt) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }
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
