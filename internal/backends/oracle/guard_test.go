//go:build !godror

package oracle

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/sqlload"
)

// bad is a driver that does to a guard what go-ora does: it reads for ever, panics, and leaves connections open.
type bad struct {
	driver.Conn
	dial    dialer
	connect func(b *bad) error        // after the dial
	act     func(b *bad) error        // in every call
	ctx     func(ctx context.Context) // of every call
	result  func() driver.Result      // of every statement; nil: one row
	network net.Conn
	logoffs atomic.Int64
}

func (b *bad) Connect(ctx context.Context) (driver.Conn, error) {
	b.see(ctx)
	conn, err := b.dial(ctx, "tcp", "h:1")
	if err != nil {
		return nil, err
	}
	b.network = conn
	if b.connect != nil {
		if err := b.connect(b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *bad) see(ctx context.Context) {
	if b.ctx != nil {
		b.ctx(ctx)
	}
}

func (b *bad) Driver() driver.Driver     { return nil }
func (b *bad) Close() error              { b.logoffs.Add(1); return nil }
func (b *bad) Columns() []string         { return []string{"A"} }
func (b *bad) Next([]driver.Value) error { return b.act(b) }
func (b *bad) Commit() error             { return b.act(b) }
func (b *bad) Rollback() error           { return b.act(b) }

func (b *bad) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	b.see(ctx)
	return b, nil
}

func (b *bad) PrepareContext(ctx context.Context, _ string) (driver.Stmt, error) {
	b.see(ctx)
	return badStmt{nil, b}, nil
}

func (b *bad) QueryContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Rows, error) {
	b.see(ctx)
	return b, nil
}

func (b *bad) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	b.see(ctx)
	return b.done(), b.act(b)
}

func (b *bad) done() driver.Result {
	if b.result != nil {
		return b.result()
	}
	return driver.RowsAffected(1)
}

type badStmt struct {
	driver.Stmt
	bad *bad
}

func (s badStmt) Close() error  { return nil }
func (s badStmt) NumInput() int { return -1 }

func (s badStmt) ExecContext(ctx context.Context, _ []driver.NamedValue) (driver.Result, error) {
	return s.bad.ExecContext(ctx, "", nil)
}

// hang reads until the network connection is closed.
func hang(b *bad) error {
	_, err := b.network.Read(make([]byte, 1))
	return err
}

// guardOf makes a guard over b, and the server's ends of what it dials.
func guardOf(b *bad) (g guard, ends chan net.Conn) {
	ends = make(chan net.Conn, 8)
	return guard{
		dial: func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			ends <- there
			return here, nil
		},
		connector: func(dial dialer) driver.Connector { b.dial = dial; return b },
	}, ends
}

// connOver connects a conn by a guard over b.
func connOver(t *testing.T, b *bad) (k *conn, server net.Conn) {
	t.Helper()
	g, ends := guardOf(b)
	return connBy(t, g, false), <-ends
}

// closedAt requires that the server reads the end of its connection.
func closedAt(t *testing.T, server net.Conn) {
	t.Helper()
	_, err := server.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// calls are all ways in which a conn waits for the driver.
var calls = map[string]func(context.Context, *conn) error{
	"exec": func(ctx context.Context, k *conn) error { _, err := k.exec(ctx, "X"); return err },
	"prepared": func(ctx context.Context, k *conn) error {
		var s *sql.Stmt
		_, err := k.execPrepared(ctx, &s, "X")
		return err
	},
	"rows": func(ctx context.Context, k *conn) error { _, err := sqlload.Rows(ctx, k, "X"); return err },
	"commit": func(ctx context.Context, k *conn) error {
		if err := k.begin(ctx); err != nil {
			return err
		}
		return k.commit(ctx)
	},
}

// Whatever a driver hangs in, the end of the context closes the connection under it, and the driver never sees a context
// that could end. A panic, a result that is none, and one that panics when it is asked are errors and end the connection.
func TestGuardEndsCalls(t *testing.T) {
	for name, call := range calls {
		for says, fault := range map[string]struct {
			act    func(*bad) error
			result func() driver.Result
		}{
			"context canceled":             {act: hang},
			"the database driver panicked": {act: func(*bad) error { panic("slice bounds out of range") }},
			"returned no result":           {result: func() driver.Result { return nil }},
			"panicked: runtime error":      {result: func() driver.Result { return (*noResult)(nil) }},
		} {
			if fault.result != nil && (name == "rows" || name == "commit") {
				continue // have none
			}
			t.Run(name+", "+says, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				b := &bad{result: fault.result, ctx: func(ctx context.Context) {
					assert.Nil(t, ctx.Done(), "the driver sees a context that ends")
				}}
				b.act = func(b *bad) error {
					if fault.act == nil {
						return nil
					}
					if says == "context canceled" {
						cancel()
					}
					return fault.act(b)
				}
				k, server := connOver(t, b)
				require.ErrorContains(t, call(ctx, k), says)
				cancel()
				assert.True(t, k.dead)
				closedAt(t, server)
				_, err := k.exec(t.Context(), "Y")
				require.Error(t, err, "it can be used again")
				require.NoError(t, k.Close(), "closing hangs or fails")
			})
		}
	}
}

type noResult struct{ rows int64 }

func (*noResult) LastInsertId() (int64, error)   { return 0, nil }
func (r *noResult) RowsAffected() (int64, error) { return r.rows, nil }

// go-ora leaves a connection open that it could not set up.
func TestGuardClosesWhatCouldNotBeSetUp(t *testing.T) {
	for name, connect := range map[string]func(*bad) error{
		"an error": func(*bad) error { return errors.New("no") },
		"a panic":  func(*bad) error { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			g, ends := guardOf(&bad{connect: connect})
			_, err := g.Connect(t.Context())
			require.ErrorContains(t, err, "no")
			closedAt(t, <-ends)
		})
	}
}

func TestGuardEndsConnect(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	g, ends := guardOf(&bad{connect: func(b *bad) error { cancel(); return hang(b) }})
	_, err := g.Connect(ctx)
	require.ErrorIs(t, err, context.Canceled)
	closedAt(t, <-ends)

	// Ended after the dial and before anybody could see the connection.
	g, ends = guardOf(&bad{})
	ctx, cancel = context.WithCancel(t.Context())
	dial := g.dial
	g.dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		cancel()
		return conn, err
	}
	if c, err := g.Connect(ctx); err == nil {
		assert.False(t, c.(*guarded).IsValid())
	}
	closedAt(t, <-ends)
}

// A listener sends the client elsewhere: the first connection is of no use any more.
func TestGuardFollowsRedirects(t *testing.T) {
	g, ends := guardOf(&bad{connect: func(b *bad) error {
		_, err := b.dial(context.Background(), "tcp", "other:1")
		return err
	}})
	c, err := g.Connect(t.Context())
	require.NoError(t, err)
	closedAt(t, <-ends)
	second := <-ends
	go func() { _ = c.Close() }()
	closedAt(t, second)
}

// Reads tell that the driver waits only after it has written.
func TestSocketTellsOfTheFirstReadBehindAWrite(t *testing.T) {
	here, there := net.Pipe()
	s := &socket{Conn: here}
	go func() {
		buffer := []byte{1}
		_, _ = there.Write(buffer) // of an earlier answer
		_, _ = there.Read(buffer)
		_, _ = there.Write(buffer)
		_, _ = there.Write(buffer)
	}()
	told := 0
	s.onAnswer(func() { told++ })
	one := make([]byte, 1)
	for want, step := range []func([]byte) (int, error){s.Read, s.Write} {
		_, err := step(one)
		require.NoError(t, err)
		assert.Zero(t, told, "step %d", want)
	}
	for range 2 {
		_, err := s.Read(one)
		require.NoError(t, err)
		assert.Equal(t, 1, told)
	}
}

// The first length that comes is looked at, in however many reads.
func TestSocketRefusesAnotherProtocol(t *testing.T) {
	for _, c := range []struct {
		pieces []string
		refuse bool
	}{
		{[]string{"\x00\x08\x00\x00\x02"}, false},
		{[]string{"\x00", "\x08", "\x00\x00"}, false},
		{[]string{"\x00\x07"}, true},
		{[]string{"\x00\x00\x12\x04\x00"}, true}, // HTTP/2
	} {
		here, there := net.Pipe()
		go func() {
			for _, piece := range c.pieces {
				_, _ = there.Write([]byte(piece))
			}
			_ = there.Close()
		}()
		_, err := io.ReadAll(&socket{Conn: here})
		if c.refuse {
			assert.ErrorIs(t, err, errNoTNS, "%q", c.pieces)
		} else {
			assert.NoError(t, err, "%q", c.pieces)
		}
		_ = here.Close()
	}
}

// A rollback that fails leaves a connection that nobody may use.
func TestFailedRollback(t *testing.T) {
	k, _ := connOver(t, &bad{act: func(*bad) error { return nil }})
	require.NoError(t, k.begin(t.Context()))
	require.NoError(t, k.conn.Raw(func(c any) error { c.(*guarded).closeSocket(); return nil }))
	require.Error(t, k.rollback(t.Context()))
	assert.True(t, k.dead)
	assert.ErrorIs(t, k.commit(t.Context()), errNotSent)
}

// To log off commits: it must not happen in the middle of a transaction, whatever has become of the rollback.
func TestNoGoodbyeWithinATransaction(t *testing.T) {
	fails := errors.New("ORA-00600")
	for name, c := range map[string]struct {
		end     func(*conn) error
		fails   error
		logoffs int64
	}{
		"nothing ended it":         {end: func(*conn) error { return nil }, fails: fails},
		"the rollback failed":      {end: func(k *conn) error { _ = k.rollback(context.Background()); return nil }, fails: fails},
		"the commit failed":        {end: func(k *conn) error { _ = k.commit(context.Background()); return nil }, fails: fails},
		"it was rolled back":       {end: func(k *conn) error { return k.rollback(context.Background()) }, logoffs: 1},
		"it was committed":         {end: func(k *conn) error { return k.commit(context.Background()) }, logoffs: 1},
		"closing rolls back first": {end: func(*conn) error { return nil }, logoffs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bad{act: func(*bad) error { return c.fails }}
			k, server := connOver(t, b)
			require.NoError(t, k.begin(t.Context()))
			require.NoError(t, c.end(k))
			require.NoError(t, k.Close())
			closedAt(t, server)
			assert.Equal(t, c.logoffs, b.logoffs.Load())
		})
	}
}
