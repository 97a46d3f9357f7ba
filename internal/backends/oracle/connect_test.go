package oracle

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// native is a driver that is like godror where that asks for care: to begin a transaction is a call, to connect knows no
// context, and its results may be none.
type native struct {
	driver.Conn
	connecting chan struct{} // Connect says on it that it has begun, and waits for it; nil: neither
	panics     bool          // in Connect
	closed     chan struct{}
	result     driver.Result
}

func (n *native) Driver() driver.Driver { return nil }

func (n *native) Connect(context.Context) (driver.Conn, error) {
	if n.panics {
		panic("in the library")
	}
	if n.connecting != nil {
		n.connecting <- struct{}{} // it has begun
		<-n.connecting
	}
	return n, nil
}

func (n *native) Close() error { close(n.closed); return nil }

func (n *native) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	<-ctx.Done()
	return nil, errors.New("ORA-01013")
}

func (n *native) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return n.result, nil
}

// connBy connects a conn by a driver of a test's own.
func connBy(t *testing.T, by driver.Connector, endsByStatement bool) *conn {
	t.Helper()
	l := &opened{client: reading(), target: loader.Target{Hosts: []string{"h"}, Database: "s", User: "u"}}
	l.client.endsByStatement = endsByStatement
	l.client.connector = func(loader.Target, loader.Deps, int) (driver.Connector, error) { return by, nil }
	k, err := l.connect(t.Context(), 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = k.pool.Close() })
	return k
}

func connOverNative(t *testing.T, n *native) *conn {
	t.Helper()
	n.closed = make(chan struct{})
	return connBy(t, interruptible{n}, true)
}

// A server that says nothing does not keep whoever begins a transaction.
func TestBeginEndsWithItsContext(t *testing.T) {
	k := connOverNative(t, &native{})
	ctx, cancel := context.WithCancel(t.Context())
	begun := make(chan error, 1)
	go func() { begun <- k.begin(ctx) }()
	cancel()
	require.ErrorIs(t, <-begun, context.Canceled)
	assert.True(t, k.dead)
	assert.Nil(t, k.tx)
}

// A driver that reports neither an error nor a result costs the session, and not the process.
func TestNoResult(t *testing.T) {
	k := connOverNative(t, &native{})
	_, err := k.exec(t.Context(), "X")
	require.Error(t, err)
	assert.True(t, k.dead)
	v := Driver{client: reading()}.Classify(err)
	assert.True(t, v.SessionDead && v.Retry, "%+v", v)

	k = connOverNative(t, &native{result: driver.RowsAffected(3)})
	rows, err := k.exec(t.Context(), "X")
	require.NoError(t, err)
	assert.EqualValues(t, 3, rows)
}

// Who connects does not wait for a library that cannot be interrupted, and what it opens after all is closed.
func TestInterruptibleConnect(t *testing.T) {
	n := &native{connecting: make(chan struct{}), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := interruptible{n}.Connect(ctx)
		failed <- err
	}()
	<-n.connecting
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	close(n.connecting)
	<-n.closed

	_, err := interruptible{&native{}}.Connect(ctx)
	require.ErrorIs(t, err, context.Canceled, "nobody is asked")

	_, err = interruptible{&native{panics: true}}.Connect(t.Context())
	require.ErrorContains(t, err, "the database driver panicked: in the library")
	conn, err := interruptible{&native{}}.Connect(t.Context())
	require.NoError(t, err)
	require.NotNil(t, conn)
}

// Certificates of the command line that nobody would look at are refused, beside a wallet and with Oracle's library.
func TestFilesBesideAWallet(t *testing.T) {
	target, err := loader.ParseTarget("oracle://u@h/s?wallet=/folder")
	require.NoError(t, err)
	connector := func(config *tls.Config) error {
		d := loader.Deps{TLS: func(loader.TLSMode, string) (*tls.Config, bool, error) { return config, false, nil }}
		_, err := builtIn().connector(target, d, 0)
		return err
	}
	for name, config := range map[string]*tls.Config{
		"authority": {ServerName: "h", RootCAs: x509.NewCertPool()}, "name": {ServerName: "other"},
		"certificate": {ServerName: "h", Certificates: make([]tls.Certificate, 1)},
	} {
		require.ErrorContains(t, connector(config), "remove --tls-ca", name)
	}
	require.NoError(t, connector(&tls.Config{ServerName: "h"}))
}
