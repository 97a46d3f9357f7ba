package oracle

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"sync/atomic"
	"time"
)

// Connector makes connections to the server that dial leads to; how it behaves follows from the Server's options.
func (s *Server) Connector(dial func(ctx context.Context) (net.Conn, error)) driver.Connector {
	return connector{dial, s.options.Cancels}
}

type connector struct {
	dial    func(ctx context.Context) (net.Conn, error)
	cancels bool
}

// Watching is Connector with a driver that ends calls whose context ends, whatever the options say.
func (s *Server) Watching(dial func(ctx context.Context) (net.Conn, error)) driver.Connector {
	return connector{dial, true}
}

func (c connector) Driver() driver.Driver { return noDriver{} }

type noDriver struct{}

func (noDriver) Open(string) (driver.Conn, error) {
	return nil, errors.New("stand-in: open it by its connector")
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	n, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = n.Close() }) // both drivers' dialing ends with its context
	defer stop()
	k := &conn{net: n, enc: newEncoder(n), dec: gob.NewDecoder(n), cancels: c.cancels}
	if _, err := k.ask(ctx, request{Kind: Connect}); err != nil {
		_ = n.Close()
		return nil, err
	}
	return k, nil
}

// conn is one connection. Package database/sql lets one goroutine in at a time.
type conn struct {
	net     net.Conn
	enc     *encoder
	dec     *gob.Decoder
	cancels bool
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
	_ driver.Pinger             = (*conn)(nil)
)

func (c *conn) IsValid() bool { return !c.bad.Load() }

// Close says goodbye, as go-ora does whatever is open: the server then commits it. godror rolls back first, which is what
// the end of the connection alone comes to, and so does whoever watches.
func (c *conn) Close() error {
	if !c.bad.Load() && (!c.tx || !c.cancels) {
		_, _ = c.ask(context.Background(), request{Kind: LogOff})
	}
	c.bad.Store(true)
	return c.net.Close()
}

func (c *conn) Ping(ctx context.Context) error {
	_, err := c.QueryContext(ctx, "SELECT 1 FROM DUAL", nil)
	return err
}

// ask sends a request and reads its answer. Like go-ora it tells a connection that ended from one that broke.
func (c *conn) ask(ctx context.Context, r request) (*response, error) {
	if c.bad.Load() {
		return nil, driver.ErrBadConn
	}
	if c.cancels {
		defer context.AfterFunc(ctx, func() { _ = c.net.Close() })()
	}
	r.Explicit = c.tx
	if err := c.enc.send(r); err != nil {
		return nil, c.lost(ctx, err)
	}
	var a response
	if err := c.dec.Decode(&a); err != nil {
		return nil, c.lost(ctx, err)
	}
	if a.Panic != "" {
		panic(a.Panic)
	}
	if a.Err != nil {
		return &a, a.Err
	}
	return &a, nil
}

func (c *conn) lost(ctx context.Context, err error) error {
	c.bad.Store(true)
	_ = c.net.Close()
	if c.cancels && ctx.Err() != nil {
		return ora(1013, "user requested cancel of current operation")
	}
	if errors.Is(err, io.EOF) {
		return driver.ErrBadConn
	}
	return err
}

func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

// BeginTx sends nothing: a transaction begins with its first statement.
func (c *conn) BeginTx(_ context.Context, o driver.TxOptions) (driver.Tx, error) {
	switch {
	case c.bad.Load():
		return nil, driver.ErrBadConn
	case o.ReadOnly || o.Isolation != 0 && sql.IsolationLevel(o.Isolation) != sql.LevelReadCommitted:
		return nil, errors.New("stand-in: only read committed transactions")
	}
	c.tx = true
	return tx{c}, nil
}

type tx struct{ c *conn }

func (t tx) Commit() error   { return t.end(Commit) }
func (t tx) Rollback() error { return t.end(Rollback) }

func (t tx) end(how string) error {
	_, err := t.c.ask(context.Background(), request{Kind: how})
	t.c.tx = err != nil && t.c.cancels // what may still be open is not left to a goodbye
	return err
}

func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	a, err := c.run(ctx, text, args)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(a.Rows), nil
}

func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	a, err := c.run(ctx, text, args)
	if err != nil {
		return nil, err
	}
	return &rows{answer: a}, nil
}

func (c *conn) run(ctx context.Context, text string, args []driver.NamedValue) (*response, error) {
	binds, outs, err := bindsOf(args)
	if err != nil {
		return nil, err
	}
	a, err := c.ask(ctx, request{Kind: SQL, Text: text, Binds: binds})
	if err != nil {
		return nil, err
	}
	if len(a.Outs) != len(outs) {
		return nil, fmt.Errorf("stand-in: %d values came out for %d binds", len(a.Outs), len(outs))
	}
	for i, to := range outs {
		if err := assign(to, a.Outs[i]); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (c *conn) Prepare(text string) (driver.Stmt, error) { return stmt{c, text}, nil }

// PrepareContext sends nothing: both drivers parse with the first execution.
func (c *conn) PrepareContext(_ context.Context, text string) (driver.Stmt, error) {
	return stmt{c, text}, nil
}

type stmt struct {
	c    *conn
	text string
}

var (
	_ driver.StmtExecContext   = stmt{}
	_ driver.StmtQueryContext  = stmt{}
	_ driver.NamedValueChecker = stmt{}
)

func (s stmt) Close() error                               { return nil }
func (s stmt) NumInput() int                              { return -1 }
func (s stmt) CheckNamedValue(v *driver.NamedValue) error { return s.c.CheckNamedValue(v) }
func (s stmt) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (s stmt) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }
func (s stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.c.ExecContext(ctx, s.text, args)
}
func (s stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.c.QueryContext(ctx, s.text, args)
}

// CheckNamedValue takes everything as it is, as both drivers do: bindsOf has a say.
func (c *conn) CheckNamedValue(*driver.NamedValue) error { return nil }

// bindsOf turns arguments into binds. What go-ora or godror would misread without a word is refused: arrays of different
// lengths (the tail is dropped), an empty one (a panic), a scalar among arrays (NULL in all rows but the first).
func bindsOf(args []driver.NamedValue) (binds []Bind, outs []any, err error) {
	arrays, length := 0, 0
	for _, a := range args {
		b := Bind{Name: a.Name}
		value := a.Value
		if out, is := value.(sql.Out); is {
			if out.In {
				return nil, nil, errors.New("stand-in: a bind that goes in and out")
			}
			b.Out = true
			outs, value = append(outs, out.Dest), nil
		}
		if err := b.fill(value); err != nil {
			return nil, nil, err
		}
		if b.Array {
			if arrays++; arrays > 1 && b.Len() != length {
				return nil, nil, fmt.Errorf("stand-in: an array of %d values beside one of %d", b.Len(), length)
			}
			if length = b.Len(); length == 0 {
				return nil, nil, errors.New("stand-in: an empty array")
			}
		}
		binds = append(binds, b)
	}
	if arrays > 0 && arrays < len(args) {
		return nil, nil, fmt.Errorf("stand-in: %d scalars among %d arrays", len(args)-arrays, arrays)
	}
	return binds, outs, nil
}

// fill takes what both drivers take, and nothing else.
func (b *Bind) fill(value any) error {
	switch v := value.(type) {
	case nil:
		b.Kind = NullBind
	case int64:
		b.Kind, b.Ints = NumberBind, []int64{v}
	case string:
		b.Kind, b.Texts = TextBind, []string{v}
	case []byte:
		b.Kind, b.Raws = RawBind, [][]byte{v}
	case time.Time:
		b.Kind, b.Times = TimeBind, []time.Time{v}
	case []int64:
		b.Kind, b.Ints, b.Array = NumberBind, v, true
	case []string:
		b.Kind, b.Texts, b.Array = TextBind, v, true
	case [][]byte:
		b.Kind, b.Raws, b.Array = RawBind, v, true
	case []time.Time:
		b.Kind, b.Times, b.Array = TimeBind, v, true
	default:
		r := reflect.ValueOf(value)
		if !r.CanInt() {
			return fmt.Errorf("stand-in: a bind of type %T", value)
		}
		b.Kind, b.Ints = NumberBind, []int64{r.Int()}
	}
	return nil
}

// assign puts what came out where the client wants it.
func assign(to any, c Cell) error {
	switch p := to.(type) {
	case *string:
		*p = c.Text
		return nil
	case *sql.NullString:
		*p = sql.NullString{String: c.Text, Valid: c.Kind != NullBind}
		return nil
	}
	s, is := to.(sql.Scanner)
	switch {
	case is && c.Kind == NullBind:
		return s.Scan(nil)
	case is:
		return s.Scan(c.Text)
	}
	r := reflect.ValueOf(to)
	if r.Kind() == reflect.Pointer && r.Elem().CanInt() && (c.Kind == NumberBind || c.Kind == NullBind) {
		r.Elem().SetInt(int64(c.Number))
		return nil
	}
	return fmt.Errorf("stand-in: a value cannot go out to a %T", to)
}

// rows are an answer's.
type rows struct {
	answer *response
	next   int
}

func (r *rows) Columns() []string { return r.answer.Columns }
func (r *rows) Close() error      { return nil }

// Next gives numbers as float64 and times in a zone that nobody asked for: both drivers reshape them in ways of their
// own, so whoever wants them exact asks for text.
func (r *rows) Next(to []driver.Value) error {
	if r.next == len(r.answer.Cells) {
		return io.EOF
	}
	for i, c := range r.answer.Cells[r.next] {
		switch c.Kind {
		case NumberBind:
			to[i] = c.Number
		case TextBind:
			to[i] = c.Text
		case RawBind:
			to[i] = []byte(c.Text)
		case TimeBind:
			to[i] = c.At.In(time.FixedZone("client", 5*60*60))
		default:
			to[i] = nil
		}
	}
	r.next++
	return nil
}
