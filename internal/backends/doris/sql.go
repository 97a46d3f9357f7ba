package doris

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
)

// connector makes connections to the first frontend that can be reached, from a given one on, and says the setup
// statements there: session variables belong to a connection, and a pool would lose them.
type connector struct {
	frontends []frontend
	first     int
	setup     []string
	loads     bool // by any address of a frontend's name; else what one statement did the next one must find
}

func (db *database) connector(first int, setup []string) connector {
	return connector{frontends: db.frontends, first: first, setup: setup}
}

func (c connector) forLoading() connector {
	c.loads = true
	return c
}

// Connect connects. The driver's connector is made anew each time: it switches TLS off in its own configuration when
// the server has none, which would be a data race between two connections.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	var all error
	for i := range c.frontends {
		f := c.frontends[(c.first+i)%len(c.frontends)]
		conn, err := f.connect(ctx, c.loads, c.setup)
		if err == nil {
			return conn, nil
		}
		all = and(all, err)
		if !loader.NotSent(err) {
			break
		}
	}
	return nil, all
}

func (f frontend) connect(ctx context.Context, loads bool, setup []string) (driver.Conn, error) {
	config := f.config
	if loads {
		config = f.loading
	}
	inner, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	conn, err := inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range setup {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, s, nil); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	return conn, nil
}

// Driver is part of driver.Connector.
func (connector) Driver() driver.Driver { return mysql.MySQLDriver{} }

// querier is a *sql.DB or a *sql.Conn.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// shown reads the answer of a SHOW statement, whose columns differ between releases, by the columns' names.
func shown(ctx context.Context, from querier, query string) ([]map[string]string, error) {
	list, err := from.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = list.Close() }()
	names, err := list.Columns()
	if err != nil {
		return nil, err
	}
	values, to := make([]sql.NullString, len(names)), make([]any, len(names))
	for i := range values {
		to[i] = &values[i]
	}
	var all []map[string]string
	for list.Next() {
		if err := list.Scan(to...); err != nil {
			return nil, err
		}
		row := make(map[string]string, len(names))
		for i, name := range names {
			row[name] = values[i].String
		}
		all = append(all, row)
	}
	return all, list.Err()
}
