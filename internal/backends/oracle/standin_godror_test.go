//go:build godror

package oracle

import (
	fake "github.com/terapush/terapush/internal/standin/oracle"
)

// likeGoOra makes the stand-in's driver watch contexts by itself: what guards go-ora is not in this binary. Transactions
// end by statements, since nothing else would end an order to commit whose answer does not come.
func likeGoOra(c *client, s *fake.Server) {
	c.endsByStatement = true
	c.connector = dialing(s, true)
}
