package doris

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"net"
	"net/url"
	"slices"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Ports of a frontend.
const (
	queryPort = "9030" // the MySQL protocol
	httpPort  = "8030"
	httpsPort = "8050"
)

// endpoint is one frontend of the target: how to reach its MySQL protocol and its HTTP server.
type endpoint struct {
	address string // host:port of the MySQL protocol
	config  *mysql.Config
	loading *mysql.Config // for insert, by any frontend that the host's name stands for: labels are the cluster's
	http    url.URL       // scheme and host
}

// endpoints makes the configuration of every host, and that of TLS for every https server.
func endpoints(t loader.Target, d loader.Deps) (all []endpoint, secure *tls.Config, err error) {
	configs, err := mysqlconn.Configs(t, d, queryPort)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range configs {
		c.MaxAllowedPacket = 1 << 30
		host, _, _ := net.SplitHostPort(c.Addr)
		if secure == nil && c.TLS != nil {
			if secure = c.TLS.Clone(); secure.ServerName == host {
				secure.ServerName = "" // the transport fills it in: the names of backends are unknown before the redirect
			}
		}
		loading := c.Clone()
		loading.DialFunc = d.DialAny()
		web := httpURL(t, host, c.TLS != nil && !c.AllowFallbackToPlaintext)
		all = append(all, endpoint{address: c.Addr, config: c, loading: loading, http: web})
	}
	return all, secure, nil
}

// httpURL returns the address of a frontend's HTTP server. Where TLS is only preferred it is http: a frontend with TLS
// redirects, and HTTP has no other way to find out.
func httpURL(t loader.Target, host string, encrypted bool) url.URL {
	scheme, port := "http", httpPort
	if encrypted {
		scheme, port = "https", httpsPort
	}
	if given := t.Params.Get("http_port"); given != "" {
		port = given
	}
	return url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port)}
}

// connector makes connections to the first frontend that can be reached, from a given one on. Those that load go to any
// address of its name; to the others what one statement did the next one must find.
func connector(all []endpoint, first int, loads bool, setup []string) mysqlconn.Connector {
	c := mysqlconn.Connector{First: first, Setup: setup}
	for _, f := range all {
		if loads {
			f.config = f.loading
		}
		c.Hosts = append(c.Hosts, f.config)
	}
	return c
}

// connect takes a connection for all but the rows out of the pool, which looks whether it is still alive. Sums of
// numbers of more than 18 digits need decimals of 76, which a session has to ask for.
func (l *opened) connect(ctx context.Context) (sqlload.Conn, error) {
	c, err := l.control.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if !l.isWide() {
		return sqlload.SQL{Conn: c}, nil
	}

	if _, err := c.ExecContext(ctx, "SET enable_decimal256 = true"); err != nil {
		_ = c.Close()
		return nil, err
	}
	return sqlload.SQL{Conn: c}, nil
}

// isWide reports whether the prepared table has a decimal of more than 18 digits.
func (l *opened) isWide() bool {
	s, err := l.State()
	return err == nil && slices.ContainsFunc(s.Schema.Columns, func(c rows.Column) bool { return c.Type == rows.Wide })
}

// querier is a *sql.DB, a *sql.Conn or a sqlload.SQL.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// ask is shown, with what the server itself refuses apart from what keeps it from answering.
func ask(ctx context.Context, from querier, query string) (found []map[string]string, refused, err error) {
	found, err = shown(ctx, from, query)
	if server := (*mysql.MySQLError)(nil); errors.As(err, &server) {
		return nil, server, nil
	}
	return found, nil, err
}

// shown reads the answer of a SHOW statement by the columns' names: there are others in every release.
func shown(ctx context.Context, from querier, query string) (all []map[string]string, err error) {
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

// unreachable reports whether another frontend may answer: one hangs, is shutting down or cannot be reached. A refusal
// would be the same at the next one.
func unreachable(err error) bool {
	down := []loader.Class{loader.ClassConnection, loader.ClassTimeout, loader.ClassShutdown}
	return slices.Contains(down, verdict(err).Class)
}
