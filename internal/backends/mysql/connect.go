package mysql

import (
	"context"
	"log/slog"
	"math"
	"net"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

const (
	defaultPort = "3306"
	// controlConns is the largest number of connections other than those of sessions, until the proof splits the table:
	// then there are no sessions.
	controlConns = 4
)

// endpoint is one server of the target.
type endpoint struct {
	config  *mysql.Config // its Addr is host:port, or the path of a socket
	dialAny dialer        // to any server that the host's name stands for
}

// dialer is the type of loader.Deps.Dial and of the driver's DialFunc.
type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// endpoints makes the driver's configuration of every host.
func endpoints(t loader.Target, d loader.Deps) (all []endpoint, err error) {
	var configs []*mysql.Config
	if socket := t.Params.Get("socket"); socket != "" {
		configs = make([]*mysql.Config, 1)
		configs[0], err = mysqlconn.Config(t, d, "unix", socket)
	} else {
		configs, err = mysqlconn.Configs(t, d, defaultPort)
	}
	if err != nil {
		return nil, err
	}
	for _, c := range configs {
		all = append(all, endpoint{config: c, dialAny: d.DialAny()})
	}
	return all, nil
}

// reach calls connect, and reports a listener that does not speak MySQL.
func (e endpoint) reach(ctx context.Context, d loader.Deps, connect func(context.Context) error) error {
	if e.config.Net != "tcp" {
		return connect(ctx)
	}
	return netio.Reach(ctx, d.Dial, e.config.Addr, netio.MySQL, mysqlconn.Answered, connect)
}

// loadingConfig is the configuration of sessions that load. In TiDB all servers behind a name take writes, and Resolve
// finds and ends a session of one from any other, so sessions take them in turn. Elsewhere a name may stand for a
// primary and its replicas, or for servers that know only their own connections.
func (e endpoint) loadingConfig(f flavour) *mysql.Config {
	c := e.config.Clone()
	c.DialFunc = coalesced(e.config.DialFunc)
	if f == tiDB {
		c.DialFunc = coalesced(e.dialAny)
	}
	c.MaxAllowedPacket = math.MaxInt32 // the driver's own bound; the server's is in Caps.MaxBytes
	return c
}

// connector makes connections to one host that are set up.
func connector(host *mysql.Config, s setup, log *slog.Logger) mysqlconn.Connector {
	return mysqlconn.Connector{
		Hosts: []*mysql.Config{host}, Wishes: s.wishes, Setup: s.statements, Timeout: loader.ConnectTimeout, Log: log,
	}
}

// connector is connector for the loader's own connections.
func (l *opened) connector(host *mysql.Config, s setup) mysqlconn.Connector {
	c := connector(host, s, l.log)
	c.Open = l.openConn
	return c
}

// connect takes one of the control connections.
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

// value reads the first value of a query, "" for NULL and without a row.
func value(ctx context.Context, c sqlload.Conn, query string) (string, error) {
	found, err := sqlload.Rows(ctx, c, query)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return found[0][0], nil
}

// firsts are the first values of all rows.
func firsts(found [][]string) []string {
	values := make([]string, len(found))
	for i, row := range found {
		values[i] = row[0]
	}
	return values
}
