package httpload

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"time"
)

// encrypted opens TLS connections. The transport's own would lie above a patientConn and take a body through a buffer of
// 32 KiB.
func encrypted(open dial, config *tls.Config) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := open(ctx, network, address)
		if err != nil {
			return nil, err
		}
		host, _, _ := net.SplitHostPort(address) // by net/http, always with a port
		config := config.Clone()
		config.ServerName = cmp.Or(config.ServerName, host)
		made := tls.Client(c, config)
		_ = made.SetDeadline(time.Now().Add(10 * time.Second)) // the end of a context would look like the caller's
		if err := made.HandshakeContext(ctx); err != nil {
			_ = c.Close()
			return nil, err
		}
		return made, made.SetDeadline(time.Time{})
	}
}
