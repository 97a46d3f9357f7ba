package databend

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Default ports: the server's own, and that of https, which Databend Cloud uses.
const (
	plainPort  = "8000"
	securePort = "443"
)

// endpoint is one server of the target.
type endpoint struct {
	address string // host:port
	base    string // http://host:port
	http    *httpload.Client
	login   *login
}

// login is sent with every request.
type login struct {
	header  http.Header     // with the password
	session json.RawMessage // a sessionState, for statements
}

func newLogin(t loader.Target) (*login, error) {
	// A user agent like a browser's would change how sessions are kept.
	r := http.Request{Header: http.Header{"User-Agent": {"terapush"}}}
	r.SetBasicAuth(cmp.Or(t.User, defaultUser), t.Password.Reveal())
	for _, name := range [...]string{"tenant", "warehouse"} {
		if value := t.Params.Get(name); value != "" {
			r.Header.Set("X-DATABEND-"+name, value)
		}
	}
	state := sessionState{
		Database: cmp.Or(t.Database, defaultDatabase), Role: t.Params.Get("role"), Settings: sessionSettings(t.Settings),
	}
	if state.Role != "" {
		state.SecondaryRoles = &[]string{}
	}
	session, err := json.Marshal(state)
	return &login{header: r.Header, session: session}, err
}

// request makes a request to the server. A path, which may come from the server, must begin with a slash, so that the
// credentials go nowhere else.
func (n *endpoint) request(ctx context.Context, method, path string) (*http.Request, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, &unreadableError{fmt.Errorf("%q is not a path of the server", path)}
	}
	r, err := http.NewRequestWithContext(ctx, method, n.base+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header = n.login.header.Clone()
	return r, nil
}

// clients keeps an HTTP client for each server: a TLS configuration is valid for one host name, and presigned URLs lead
// to other hosts than the target's.
type clients struct {
	deps loader.Deps
	mode loader.TLSMode

	mu   sync.Mutex
	open map[string]*httpload.Client
}

// idleConnections is how many connections to a server stay open between requests. The number of workers is not known
// yet, and a lower limit would open a new connection for nearly every batch.
const idleConnections = 1024

const silent = `no answer to "Expect: 100-continue" within a second, as from behind a proxy: batches are sent ` +
	"without asking; one whose connection breaks may then be there twice, which the proof finds"

// client returns the client for a URL.
func (c *clients) client(u *url.URL) (*httpload.Client, error) {
	key := u.Scheme + "://" + u.Host
	c.mu.Lock()
	defer c.mu.Unlock()
	if client := c.open[key]; client != nil {
		return client, nil
	}
	var config *tls.Config
	if u.Scheme == "https" {
		mode := c.mode
		if mode == loader.TLSOff { // the target does without; a presigned URL need not
			mode = loader.TLSAuto
		}
		var err error
		if config, _, err = c.deps.TLS(mode, u.Hostname()); err != nil {
			return nil, fmt.Errorf("TLS for %s: %w", u.Host, err)
		}
	}
	if c.open == nil {
		c.open = make(map[string]*httpload.Client)
	}
	c.open[key] = httpload.NewClient(httpload.Options{
		Dial: c.deps.Dial, TLS: config, Connections: idleConnections, ExpectContinue: expectTimeout,
		Silent: func() { c.deps.Log.Warn(silent, "host", u.Host) },
	})
	return c.open[key], nil
}

func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.open {
		_ = client.Close()
	}
}

// endpoints returns one for each host of the target.
func (c *clients) endpoints(ctx context.Context, t loader.Target) ([]*endpoint, error) {
	l, err := newLogin(t)
	if err != nil {
		return nil, err
	}
	all := make([]*endpoint, max(len(t.Hosts), 1))
	for i := range all {
		if all[i], err = c.endpoint(ctx, t, i, l); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c *clients) endpoint(ctx context.Context, t loader.Target, i int, l *login) (*endpoint, error) {
	host, _, err := net.SplitHostPort(t.Address(i, plainPort))
	if err != nil {
		return nil, fmt.Errorf("host %d of the target: %w", i+1, err)
	}
	config, plain, err := c.deps.TLS(c.mode, host)
	if err != nil {
		return nil, fmt.Errorf("TLS for %s: %w", host, err)
	}
	// HTTP cannot negotiate TLS. By default the connection to this machine is plain; where TLS is asked for as a
	// preference, a query finds out.
	if config == nil || plain && c.mode == loader.TLSAuto {
		return c.newEndpoint("http", t.Address(i, plainPort), l)
	}
	n, err := c.newEndpoint("https", t.Address(i, securePort), l)
	if err != nil || !plain {
		return n, err
	}
	_, err = n.run(ctx, statement{sql: "SELECT 1"}, nil)
	if record := (tls.RecordHeaderError{}); errors.As(err, &record) {
		return c.newEndpoint("http", t.Address(i, plainPort), l)
	}
	return n, nil // Open reports any other failure
}

func (c *clients) newEndpoint(scheme, address string, l *login) (*endpoint, error) {
	u := &url.URL{Scheme: scheme, Host: address}
	client, err := c.client(u)
	if err != nil {
		return nil, err
	}
	return &endpoint{address: address, base: u.String(), http: client, login: l}, nil
}

// run is endpoint.run on the host that has answered last, or on another one that can be reached. A statement may take
// as long as ctx allows, whatever its host's share of the time to connect.
func (l *opened) run(ctx context.Context, s statement, each func(row [][]byte) error) (written int64, err error) {
	err = l.hosts.Ask(ctx, func(_ context.Context, n *endpoint) (err error) {
		written, err = n.run(ctx, s, each)
		return err
	})
	return written, err
}

func (l *opened) exec(ctx context.Context, sql string) error {
	_, err := l.run(ctx, statement{sql: sql}, nil)
	return err
}

func (l *opened) rows(ctx context.Context, query string) ([][]string, error) {
	return sqlload.Rows(ctx, conn{run: l.run}, query)
}

// unreachable reports whether no connection to a host was opened, so that another host may be tried. That excludes a
// wrong certificate, and a host that is lost while a statement runs there.
func unreachable(err error) bool {
	var lost *lostError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return loader.NotSent(err) && !errors.As(err, &lost) && !errors.As(err, &certificate) && !errors.As(err, &record)
}

// conn is a sqlload.Conn. Every statement is a request of its own, so there is nothing to open or close.
type conn struct {
	run  func(context.Context, statement, func(row [][]byte) error) (written int64, err error)
	with statement // all but the SQL
}

// connect returns a sqlload.Connect whose statements are like s.
func (l *opened) connect(s statement) sqlload.Connect {
	return func(context.Context) (sqlload.Conn, error) { return conn{l.run, s}, nil }
}

func (c conn) Exec(ctx context.Context, sql string) (int64, error) {
	c.with.sql = sql
	return c.run(ctx, c.with, nil)
}

func (c conn) Query(ctx context.Context, query string, each func(row [][]byte) error) error {
	c.with.sql = query
	_, err := c.run(ctx, c.with, each)
	return err
}

func (conn) Close() error { return nil }
