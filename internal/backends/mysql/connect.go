package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

const defaultPort = "3306"

// connectPatience bounds one attempt to connect, for servers that accept and then say nothing.
const connectPatience = 10 * time.Second

// controlConns bounds the connections beside those of the workers. A scan that proves arrival takes one for its whole
// time, and Resolve must not wait for it.
const controlConns = 4

// endpoint is one server of the target and how to connect to it.
type endpoint struct {
	address string // host:port, or the path of a socket
	config  *mysql.Config
	dialAny dialer // to any server that the address's name stands for
}

// endpoints makes the driver's configuration of every host.
func endpoints(t loader.Target, d loader.Deps) (all []endpoint, err error) {
	if t.TLS, err = tlsMode(t); err != nil {
		return nil, err
	}
	network, addresses := "unix", []string{t.Params.Get("socket")}
	if addresses[0] == "" {
		network, addresses = "tcp", nil
		for i := range max(len(t.Hosts), 1) {
			addresses = append(addresses, t.Address(i, defaultPort))
		}
	}
	for _, address := range addresses {
		c, err := sqlload.MySQLConfig(t, d, network, address)
		if err != nil {
			return nil, err
		}
		all = append(all, endpoint{address: address, config: c, dialAny: d.DialAny()})
	}
	return all, nil
}

// checkParams refuses what it does not know: a parameter that is silently ignored is a setting that somebody trusts.
func checkParams(t loader.Target) error {
	known := []string{"socket", "tls"}
	for name := range t.Params {
		switch {
		case name == "multiStatements":
			return fmt.Errorf("parameter multiStatements is refused: every batch is one statement, and several in one" +
				" packet would leave the answer to all but the first unread; leave it out")
		case !slices.Contains(known, name):
			return fmt.Errorf("parameter %q of the target is not known; there are: %s; session variables go into --set %s=…",
				name, strings.Join(known, ", "), name)
		}
	}
	return nil
}

// tlsMode reads the driver's usual tls parameter. What the user says beside the URL wins.
func tlsMode(t loader.Target) (loader.TLSMode, error) {
	if t.TLS != loader.TLSAuto {
		return t.TLS, nil
	}
	modes := map[string]loader.TLSMode{
		"": loader.TLSAuto, "false": loader.TLSOff, "preferred": loader.TLSPrefer,
		"skip-verify": loader.TLSRequire, "true": loader.TLSVerify,
	}
	value := t.Params.Get("tls")
	mode, known := modes[value]
	if !known {
		return "", fmt.Errorf("parameter tls=%s is not known; there are: true, skip-verify, preferred, false", value)
	}
	return mode, nil
}

// dialer is the type of loader.Deps.Dial and of the driver's DialFunc.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// loadingConfig is an endpoint's configuration for sessions that load. Of TiDB every server that a name stands for takes
// writes, and Resolve finds and ends a session of any of them from any other, so they are taken in turn. A name of the
// others may stand for a primary and its copies, or for servers of which each knows its own connections only.
func (e endpoint) loadingConfig(f flavour) *mysql.Config {
	c := e.config.Clone()
	c.DialFunc = coalesced(e.config.DialFunc)
	if f == tiDB {
		c.DialFunc = coalesced(e.dialAny)
	}
	c.MaxAllowedPacket = math.MaxInt32 // the driver's own bound; the server's is in Caps.MaxBytes
	return c
}

// connector makes connections that have run their setup statements.
type connector struct {
	config *mysql.Config
	setup  []string
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	return sqlload.ConnectMySQL(ctx, c.config, c.setup)
}

// Driver implements driver.Connector.
func (connector) Driver() driver.Driver { return mysql.MySQLDriver{} }

// link is a connection of its own: one pinned in a pool for itself. Unlike a pool a pinned connection is never replaced
// behind the caller's back, which would lose the transaction, and statements are never sent again; the driver's bare
// connection would do the same and leave us to scan rows by hand.
type link struct {
	sqlload.SQL
	pool *sql.DB
}

func dial(ctx context.Context, config *mysql.Config, setup []string) (link, error) {
	pool := sql.OpenDB(connector{config, setup})
	conn, err := pool.Conn(ctx)
	if err != nil {
		_ = pool.Close()
		return link{}, err
	}
	return link{sqlload.SQL{Conn: conn}, pool}, nil
}

// Close ends the connection; a second Close does nothing.
func (c link) Close() error {
	_ = c.Conn.Close() // back to the pool, which closes it
	return c.pool.Close()
}

// connect takes one of the control connections, for all but the rows.
func (l *opened) connect(ctx context.Context) (sqlload.Conn, error) {
	c, err := l.control.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return sqlload.SQL{Conn: c}, nil
}

// rows reads the rows of a query over a control connection.
func (l *opened) rows(ctx context.Context, query string) ([][]string, error) {
	c, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return sqlload.Rows(ctx, c, query)
}
