package oracle

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// client is a driver of package database/sql, with all that the back-end needs to know about it.
//
// Its connections implement driver.ConnBeginTx, driver.ConnPrepareContext and driver.QueryerContext. Sessions use the
// driver's own driver.Tx: an sql.Tx rolls back from another goroutine when its context ends, and never releases its
// connection when the driver panics.
type client struct {
	name string // with its version, for reports and messages

	// connector connects to one host of the target, whose TLS is what tlsMode returns. Connect and every call on the
	// connection must return when their context ends, if necessary by closing the network connection. Only the ends of
	// transactions may not: see endsByStatement.
	connector func(t loader.Target, d loader.Deps, host int) (driver.Connector, error)

	// code returns number and text of an ORA error.
	code func(err error) (number int, text string, ok bool)

	// explain returns what to do about an error of the driver's environment, such as a missing client library; "" for
	// all other errors.
	explain func(err error) string

	// directPath reports whether the driver can use direct path. The server refuses it (ORA-38910) to a driver that
	// keeps the good rows of a failed array.
	directPath bool

	// endsByStatement ends transactions by the statements COMMIT and ROLLBACK, since driver.Tx and Close of this driver
	// cannot be interrupted.
	endsByStatement bool

	options []any // passed to every statement that takes rows

	times, maybeTimes timeBinds // of columns without a NULL in the batch, and with one
}

// timeBinds make binds of dates and timestamps, which are microseconds since 1970 times unit.
type timeBinds struct {
	array func(old any, v *rows.Vector, unit int64) any // reuses old, its last result
	one   func(v *rows.Vector, i int, unit int64) any
}

// bindTimes binds times as T, in UTC. convert is not asked for a NULL, which is the zero T.
func bindTimes[T any](convert func(time.Time) T) timeBinds {
	value := func(v *rows.Vector, i int, unit int64) (t T) {
		if !v.IsNull(i) {
			t = convert(time.UnixMicro(v.Ints[i] * unit).UTC())
		}
		return t
	}
	return timeBinds{
		one: func(v *rows.Vector, i int, unit int64) any { return value(v, i, unit) },
		array: func(old any, v *rows.Vector, unit int64) any {
			all, _ := old.([]T)
			all = slices.Grow(all[:0], len(v.Ints))[:len(v.Ints)]
			for i := range all {
				all[i] = value(v, i, unit)
			}
			return all
		},
	}
}

// timesOf returns the binds of a column.
func (c *client) timesOf(v *rows.Vector) timeBinds {
	if v.CountNulls() > 0 {
		return c.maybeTimes
	}
	return c.times
}

// watcher is a connection over a network connection of ours.
type watcher interface {
	// watch closes the network connection when ctx ends before stop is called.
	watch(ctx context.Context) (stop func())
	// onAnswer calls f once, at the driver's first read after its next write.
	onAnswer(f func())
}

// interruptible is a connector whose Connect returns when the context ends, over one that ignores contexts: Oracle's
// client library waits for a silent listener as long as its own timeouts are. A connection that is made later is
// closed.
type interruptible struct{ driver.Connector }

// Connect implements driver.Connector.
func (p interruptible) Connect(ctx context.Context) (driver.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type outcome struct {
		conn driver.Conn
		err  error
	}
	done := make(chan outcome) // unbuffered: a connection is either received or closed here
	go func() {
		var o outcome
		defer func() {
			if r := recover(); r != nil {
				o = outcome{err: driverPanic{r}}
			}
			select {
			case done <- o:
			case <-ctx.Done():
				if o.err == nil {
					_ = o.conn.Close()
				}
			}
		}()
		o.conn, o.err = p.Connector.Connect(ctx)
	}()
	select {
	case o := <-done:
		return o.conn, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refuseCertificates returns an error for --tls-ca, --tls-cert and --tls-server-name, which a wallet and Oracle's
// library would ignore.
func refuseCertificates(t loader.Target, d loader.Deps, host int) error {
	if d.TLS == nil {
		return nil
	}
	name, _ := hostPort(t, host)
	config, _, err := d.TLS(loader.TLSVerify, name)
	if err != nil {
		return err
	}
	if named(config, name) {
		return fmt.Errorf("certificates come from a wallet here (?%s=/folder): "+
			"remove --tls-ca, --tls-cert and --tls-server-name", paramWallet)
	}
	return nil
}

// named reports whether the user has named certificates, or the name in the server's.
func named(config *tls.Config, host string) bool {
	return config != nil && (config.RootCAs != nil || len(config.Certificates) > 0 || config.ServerName != host)
}

// modeWith is the mode of a target whose flags name certificates: they could not be checked over TCP, which is what a
// target means that does not ask for TLS, or only prefers it.
func modeWith(t loader.Target, d loader.Deps) (loader.TLSMode, error) {
	if encrypted(t.TLS) || d.TLS == nil || len(t.Hosts) == 0 {
		return t.TLS, nil
	}
	name, _ := hostPort(t, 0)
	config, _, err := d.TLS(t.TLS, name)
	if err != nil || !named(config, name) {
		return t.TLS, err
	}
	return loader.TLSVerify, nil
}
