// Package mysqlconn is what back-ends of the MySQL protocol share below SQL: go-sql-driver's configuration of a target,
// connections that have run their setup statements, rows that are sent out of the ring, and the driver's own errors.
package mysqlconn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Config returns the driver's configuration for one server. The address is host:port, or a path on network "unix".
// The configuration is never written as a DSN, so no string holds the password among other things.
func Config(t loader.Target, d loader.Deps, network, address string) (c *mysql.Config, err error) {
	c = mysql.NewConfig()
	c.Net, c.Addr, c.DialFunc = network, address, d.Dial
	c.User, c.Passwd, c.DBName = t.User, t.Password.Reveal(), t.Database
	c.Logger = &mysql.NopLogger{} // it would print errors that are returned as well
	// RejectReadOnly stays off: it reconnects after a failover and hides the server's answer, which Classify reads.
	host := address
	if network != "unix" {
		if host, _, err = net.SplitHostPort(address); err != nil {
			return nil, fmt.Errorf("host %q of the target: %w", address, err)
		}
	}
	if err := secure(c, t, d, host); err != nil {
		return nil, fmt.Errorf("TLS for %s: %w", address, err)
	}
	return c, nil
}

// Configs returns the configuration for each host of the target, whose port is defaultPort unless it says one.
func Configs(t loader.Target, d loader.Deps, defaultPort string) (all []*mysql.Config, err error) {
	for i := range max(len(t.Hosts), 1) {
		c, err := Config(t, d, "tcp", t.Address(i, defaultPort))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// secure configures TLS: the flags come before the URL.
func secure(c *mysql.Config, t loader.Target, d loader.Deps, host string) error {
	p, err := ReadParams(t.Params)
	if err != nil {
		return err
	}
	if t.TLS != loader.TLSAuto {
		p.Mode = t.TLS
	}
	c.TLS, c.AllowFallbackToPlaintext, err = p.Trust.After(d.TLS, p.Trust.Checked(p.Mode), host)
	return err
}

// SetNames is the first statement of every connection. The driver's greeting asks for the same, but init_connect and
// skip-character-set-client-handshake have the last word: under latin1 texts and names would be stored encoded twice.
const SetNames = "SET NAMES utf8mb4"

// connect connects and runs the setup statements. Config.Params would set variables in random order and in one
// statement, whose error then names none of them. Every call creates a connector: where the server has no
// TLS that switches it off in its own configuration, which would be a data race between two connections.
func (m Connector) connect(ctx context.Context, c *mysql.Config) (driver.Conn, error) {
	open := openConn
	if m.Open != nil {
		open = m.Open
	}
	conn, err := open(ctx, c)
	if err != nil {
		return nil, err
	}
	exec := func(statement string) error {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, statement, nil); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
		return nil
	}
	if err := exec(SetNames); err != nil {
		_ = conn.Close()
		return nil, err
	}
	if err := m.wish(exec); err != nil {
		_ = conn.Close()
		return nil, err
	}
	for _, s := range m.Setup {
		if err := exec(s); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

func openConn(ctx context.Context, c *mysql.Config) (driver.Conn, error) {
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return connector.Connect(ctx)
}

// wish sets the variables of Wishes: in one statement, or one by one where the server refuses that. Its error is one of
// the connection.
func (m Connector) wish(exec func(statement string) error) error {
	if len(m.Wishes) == 0 {
		return nil
	}
	err := exec("SET SESSION " + strings.Join(m.Wishes, ", "))
	if !Answered(err) {
		return err
	}
	for _, one := range m.Wishes {
		err := exec("SET SESSION " + one)
		if err != nil && !Answered(err) {
			return err
		}
		if err != nil {
			m.Log.Debug("the server keeps its own value of a session variable", "error", err)
		}
	}
	return nil
}

// Connector makes connections for package sql that have run their setup statements. They go to the first host that
// can be reached, beginning with number First; what a host answers is final.
type Connector struct {
	Hosts []*mysql.Config
	First int
	// Wishes are assignments to session variables, as in "wait_timeout = 600", that only make a session better: which
	// there are, and which values they take, differs between servers of one protocol, and a refused one is left as it
	// is.
	Wishes  []string
	Setup   []string      // statements that have to succeed; they come after the wishes, and win
	Timeout time.Duration // for servers that accept a connection and then say nothing; 0 is no limit
	Log     *slog.Logger  // of refused wishes; nil without any
	// Open opens a connection in place of the driver; nil: the driver does.
	Open func(ctx context.Context, c *mysql.Config) (driver.Conn, error)
}

// Driver implements driver.Connector.
func (Connector) Driver() driver.Driver { return mysql.MySQLDriver{} }

// Connect implements driver.Connector.
func (m Connector) Connect(ctx context.Context) (conn driver.Conn, err error) {
	if m.Timeout > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, m.Timeout)
		defer cancel()
	}
	hosts := loader.Hosts[*mysql.Config]{List: m.Hosts, Another: loader.NotSent}
	err = hosts.From(ctx, m.First, func(ctx context.Context, c *mysql.Config) (err error) {
		conn, err = m.connect(ctx, c)
		return err
	})
	return conn, err
}

// Conn is a connection with a pool of its own. Unlike a pool, a pinned connection is never replaced behind the
// caller's back, which would lose the transaction, and never sends a statement again. The driver's bare connection
// would do as well, but has no rows to scan.
type Conn struct {
	sqlload.SQL
	pool *sql.DB
	wire *appender
}

// Dial connects.
func (m Connector) Dial(ctx context.Context) (Conn, error) {
	wire := &appender{}
	m.Hosts = slices.Clone(m.Hosts)
	for i, host := range m.Hosts {
		m.Hosts[i] = host.Clone()
		m.Hosts[i].DialFunc = func(ctx context.Context, network, address string) (_ net.Conn, err error) {
			wire.Conn, err = host.DialFunc(ctx, network, address)
			return wire, err
		}
	}
	pool := sql.OpenDB(m)
	conn, err := pool.Conn(ctx)
	if err != nil {
		_ = pool.Close()
		return Conn{}, err
	}
	return Conn{sqlload.SQL{Conn: conn}, pool, wire}, nil
}

// Close closes the connection; a second Close does nothing.
func (c Conn) Close() error {
	_ = c.Conn.Close() // back to the pool, which closes it
	return c.pool.Close()
}
