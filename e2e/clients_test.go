package e2e_test

import (
	"context"
	"database/sql"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// client is a server's own client library, behind what the tests need of it. It is safe for concurrent use.
type client interface {
	exec(statement string) error
	query(statement string, row func(scan func(...any) error) error) error
	close()
}

func newClient(t testing.TB, k kind, u *url.URL) client {
	t.Helper()
	c := client(&pgxClient{url: u.String()})
	if k != postgres {
		config := mysql.NewConfig()
		config.User, config.Net, config.Addr, config.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
		config.Passwd, _ = u.User.Password()
		config.Logger = &mysql.NopLogger{} // of connections that died with their server, which tests kill
		connector, err := mysql.NewConnector(config)
		require.NoError(t, err)
		c = sqlClient{sql.OpenDB(connector)}
	}
	t.Cleanup(c.close)
	return c
}

// pgxClient keeps one connection, and makes a new one when the server has ended it.
type pgxClient struct {
	url  string
	mu   sync.Mutex
	conn *pgx.Conn
}

func (c *pgxClient) query(statement string, row func(scan func(...any) error) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.queryOnce(statement, row)
	if c.conn != nil && c.conn.IsClosed() {
		err = c.queryOnce(statement, row) // the server was killed since the last time
	}
	return err
}

func (c *pgxClient) queryOnce(statement string, row func(scan func(...any) error) error) error {
	ctx := context.Background()
	if c.conn == nil || c.conn.IsClosed() {
		conn, err := pgx.Connect(ctx, c.url)
		if err != nil {
			return err
		}
		c.conn = conn
	}
	found, err := c.conn.Query(ctx, statement, pgx.QueryExecModeExec) // prepared statements would outlive their tables
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := row(found.Scan); err != nil {
			return err
		}
	}
	return found.Err()
}

func (c *pgxClient) exec(statement string) error { return c.query(statement, ignore) }

func (c *pgxClient) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close(context.Background())
	}
}

type sqlClient struct{ *sql.DB }

func (c sqlClient) query(statement string, row func(scan func(...any) error) error) error {
	found, err := c.Query(statement)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := row(found.Scan); err != nil {
			return err
		}
	}
	return found.Err()
}

func (c sqlClient) exec(statement string) error {
	_, err := c.Exec(statement)
	return err
}

func (c sqlClient) close() { _ = c.Close() }
