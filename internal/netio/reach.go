package netio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// Protocol is what a server speaks, as its users call it.
type Protocol string

// The protocols that can be told apart by a few bytes, and Oracle's, which cannot and answers none of the others.
const (
	PostgreSQL Protocol = "PostgreSQL"
	MySQL      Protocol = "MySQL"
	HTTP       Protocol = "HTTP"
	TLS        Protocol = "TLS"
	Oracle     Protocol = "Oracle"
)

// patience is how long a server may be silent before it is asked what it speaks. A PostgreSQL waits for its client to
// begin, as a client of MySQL does for the server.
const patience = time.Second

// Reach calls connect, the first connection to an address, and says if a server of another protocol is there: connect
// then waits for ever, or fails with an error that only its authors understand. answered reports whether an error is the
// answer of the right server.
func Reach(
	ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), address string, want Protocol,
	answered func(error) bool, connect func(context.Context) error,
) error {
	given := ctx
	ctx, cancel := context.WithCancelCause(given)
	defer cancel(nil)
	foreign := func() error { return foreignError(address, want, speaks(ctx, dial, address)) }
	asked := make(chan struct{})
	asking := time.AfterFunc(patience, func() {
		defer close(asked)
		if err := foreign(); err != nil {
			cancel(err)
		}
	})
	err := connect(ctx)
	inTime := asking.Stop()
	switch {
	case err == nil, answered(err), undialled(err), errors.Is(given.Err(), context.Canceled):
		return err
	case inTime:
		if other := foreign(); other != nil {
			return other
		}
		return err
	}
	<-asked
	if other := (*loader.Error)(nil); errors.As(context.Cause(ctx), &other) {
		return other
	}
	return err
}

// undialled reports whether nobody listens.
func undialled(err error) bool {
	var (
		op   *net.OpError
		name *net.DNSError
	)
	return errors.As(err, &op) && op.Op == "dial" || errors.As(err, &name)
}

// foreignError is nil if nothing or the right protocol was found.
func foreignError(address string, want, found Protocol) error {
	if found == "" || found == want {
		return nil
	}
	wrong := &loader.Error{Op: "connect to " + address, Applied: loader.No, Hint: "is this the database's port?"}
	switch found {
	case PostgreSQL:
		wrong.Err = fmt.Errorf("this is a PostgreSQL server, or one that speaks its protocol, and not %s", want)
		wrong.Hint = "write the target as postgres://…, or name the right port"
	case MySQL:
		wrong.Err = fmt.Errorf("this is a MySQL server, or one that speaks its protocol, and not %s", want)
		wrong.Hint = "write the target as mysql://…, or name the right port"
	case HTTP:
		wrong.Err = fmt.Errorf("this is an HTTP server, and not %s", want)
	case TLS:
		wrong.Err, wrong.Hint = errors.New("this port takes TLS only"), "take --tls verify, or another port"
	}
	return wrong
}

// speaks asks the server at an address what it speaks; "" if that remains unknown. It is asked by connections of their
// own, also after ctx has ended.
func speaks(ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), address string) Protocol {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	// MySQL greets, and PostgreSQL answers a request for TLS by one letter.
	for _, question := range []string{"\x00\x00\x00\x08\x04\xd2\x16\x2f", "GET / HTTP/1.0\r\n\r\n"} {
		c, err := dial(ctx, "tcp", address)
		if err != nil {
			return ""
		}
		_ = c.SetDeadline(time.Now().Add(time.Second))
		answer, n := make([]byte, 256), 0
		if _, err := c.Write([]byte(question)); err == nil {
			n, _ = c.Read(answer)
		}
		_ = c.Close()
		if found := protocolOf(answer[:n]); found != "" {
			return found
		}
	}
	return ""
}

func protocolOf(answer []byte) Protocol {
	switch {
	case len(answer) == 1 && (answer[0] == 'S' || answer[0] == 'N'):
		return PostgreSQL
	case len(answer) > 4 && answer[3] == 0 && (answer[4] == 10 || answer[4] == 0xff): // a greeting, or a refusal in its place
		return MySQL
	case bytes.HasPrefix(answer, []byte("HTTP/")):
		return HTTP
	case len(answer) > 2 && answer[0] == 0x15 && answer[1] == 3: // an alert
		return TLS
	}
	return ""
}
