package oracle

import (
	"context"
	"database/sql/driver"
)

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
