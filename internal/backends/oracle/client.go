package oracle

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// client is a driver of package database/sql, and what it does unlike others.
//
// Sessions ask of its connections driver.ConnBeginTx, driver.ConnPrepareContext and driver.QueryerContext or what
// package sql makes of them. They begin and end transactions on the driver's own driver.Tx and not on an sql.Tx: one
// whose context ends rolls back from another goroutine, and one whose driver panics never lets go of its connection.
type client struct {
	name string // with its version, for reports and messages

	// connector makes connections to one host of the target. What it returns ends a call whose context ends, Connect among
	// them, be it by closing the network connection. Only the ends of transactions may be without one: see endsByStatement.
	connector func(t loader.Target, d loader.Deps, host int) (driver.Connector, error)

	// code is the number of an ORA error with the server's words.
	code func(err error) (number int, text string, ok bool)

	// explain turns what the driver says about its own surroundings, such as a missing client library, into what to do
	// about it; it returns "" for all other errors.
	explain func(err error) string

	// directPath says that arrays are never sent in the mode in which the server keeps the good rows of one that fails,
	// and refuses direct path (ORA-38910).
	directPath bool

	// endsByStatement says that transactions are ended by the statements COMMIT and ROLLBACK, since the driver.Tx cannot
	// be interrupted, and neither can the end of a connection.
	endsByStatement bool

	// options are handed to every statement that takes rows.
	options []any

	// array is the values of a column of dates or timestamps as the driver binds them, each in microseconds since 1970
	// times unit. It reuses what it returned before.
	array func(old any, values []int64, unit int64) any
	// moment is one of them.
	moment func(micros int64) any
}

// watcher is a connection that can be told to end with a context what has none of its own: the end of a transaction.
// The one from a connector that wraps a network connection is.
type watcher interface {
	// watch closes the network connection when ctx ends before stop was called.
	watch(ctx context.Context) (stop func())
	// onAnswer calls f once, when the driver next reads after it has written.
	onAnswer(f func())
}

// prompt is a connector for drivers whose Connect cannot be interrupted, such as godror's: the library's looks at no
// context, and waits for a listener that accepts and says nothing as long as its own bounds are. Who connects goes on when
// the context ends; what comes of it later is closed.
type prompt struct{ driver.Connector }

// Connect implements driver.Connector.
func (p prompt) Connect(ctx context.Context) (driver.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	type outcome struct {
		conn driver.Conn
		err  error
	}
	done := make(chan outcome) // without room, so that a connection is either taken or closed here
	go func() {
		var o outcome
		func() {
			defer func() {
				if r := recover(); r != nil { // on this goroutine nobody else could
					o = outcome{err: driverPanic{r}}
				}
			}()
			o.conn, o.err = p.Connector.Connect(ctx)
		}()
		select {
		case done <- o:
		case <-ctx.Done():
			if o.err == nil {
				_ = o.conn.Close()
			}
		}
	}()
	select {
	case o := <-done:
		return o.conn, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// times and timeOf bind dates and timestamps as time.Time in UTC, for drivers that leave those as they are.
func times(old any, values []int64, unit int64) any {
	all, _ := old.([]time.Time)
	if cap(all) < len(values) {
		all = make([]time.Time, len(values))
	}
	all = all[:len(values)]
	for i, v := range values {
		all[i] = time.UnixMicro(v * unit).UTC()
	}
	return all
}

func timeOf(micros int64) any { return time.UnixMicro(micros).UTC() }

// withoutFiles refuses the certificates of --tls-ca, --tls-cert and --tls-server-name where a wallet or Oracle's library
// has its own and would not look at them.
func withoutFiles(t loader.Target, d loader.Deps, host int) error {
	if d.TLS == nil {
		return nil
	}
	name, _, err := net.SplitHostPort(t.Address(host, defaultPort))
	if err != nil {
		return err
	}
	config, _, err := d.TLS(loader.TLSVerify, name)
	if err != nil {
		return err
	}
	if config != nil && (config.RootCAs != nil || len(config.Certificates) > 0 || config.ServerName != name) {
		return fmt.Errorf("certificates come from a wallet here (?%s=/folder): leave --tls-ca, --tls-cert and --tls-server-name out",
			paramWallet)
	}
	return nil
}
