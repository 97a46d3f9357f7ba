//go:build godror

package oracle

import (
	"context"
	"database/sql/driver"
	"net"

	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/loader"
)

// likeGoOra makes the stand-in's driver watch contexts by itself: what guards go-ora is not in this binary. Transactions end
// by statements, since nothing else would end an order to commit whose answer does not come.
func likeGoOra(c *client, s *fake.Server) {
	c.endsByStatement = true
	c.connector = func(_ loader.Target, d loader.Deps, _ int) (driver.Connector, error) {
		return s.Watching(func(ctx context.Context) (net.Conn, error) { return d.Dial(ctx, "tcp", s.Address()) }), nil
	}
}
