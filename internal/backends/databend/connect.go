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
	"slices"
	"strings"
	"sync"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// The ports where the URL has none: the server's own default, and that of https, which is what Databend Cloud has.
const (
	plainPort  = "8000"
	securePort = "443"
)

// node is one server of the target.
type node struct {
	address string // host:port
	base    string // http://host:port
	http    *httpload.Client
	login   *login
}

// login is what every request to a node carries.
type login struct {
	header  http.Header     // with the password
	session json.RawMessage // a sessionState, for statements
}

func newLogin(t loader.Target) (*login, error) {
	// An agent that looks like a browser's would change how sessions are kept.
	r := http.Request{Header: http.Header{"User-Agent": {"terapush"}}}
	r.SetBasicAuth(cmp.Or(t.User, defaultUser), t.Password.Reveal())
	for _, name := range [...]string{"tenant", "warehouse"} {
		if value := t.Params.Get(name); value != "" {
			r.Header.Set("X-DATABEND-"+name, value)
		}
	}
	state := sessionState{
		Database: cmp.Or(t.Database, defaultDatabase), Role: t.Params.Get("role"), Settings: pinned(),
	}
	if state.Role != "" {
		state.SecondaryRoles = &[]string{}
	}
	for _, s := range t.Settings {
		state.Settings[s.Name] = s.Value
	}
	session, err := json.Marshal(state)
	return &login{header: r.Header, session: session}, err
}

// pinned are the settings that nobody may change, because what terapush says would no longer be true: timestamps have
// no zone of their own in a dataset, and would be read in the server's; rows that are counted have to be those of the
// table and not of an earlier answer; and a result has to be all of it.
func pinned() map[string]string {
	return map[string]string{"timezone": "UTC", "enable_query_result_cache": "0", "max_result_rows": "0"}
}

// request makes a request to the node. A path, which may be the server's own word, has to begin with a slash: the
// credentials go nowhere else.
func (n *node) request(ctx context.Context, method, path string) (*http.Request, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, &unreadableError{fmt.Errorf("%q is no path of the server", path)}
	}
	r, err := http.NewRequestWithContext(ctx, method, n.base+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header = n.login.header.Clone()
	return r, nil
}

// clients keeps one HTTP client for each server: a TLS configuration is good for one host name only, and presigned
// URLs lead to others than the target's.
type clients struct {
	deps loader.Deps
	mode loader.TLSMode

	mu   sync.Mutex
	made map[string]*httpload.Client
}

// idleConnections is how many connections to a server stay open between two requests. How many workers there will be
// is not known yet, and a bound below that would open a new connection for nearly every batch.
const idleConnections = 1024

// of returns the client for a URL.
func (c *clients) of(u *url.URL) (*httpload.Client, error) {
	key := u.Scheme + "://" + u.Host
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.made[key]; found != nil {
		return found, nil
	}
	var config *tls.Config
	if u.Scheme == "https" {
		mode := c.mode
		if mode == loader.TLSOff { // the target goes without, and a presigned URL need not
			mode = loader.TLSAuto
		}
		var err error
		if config, _, err = c.deps.TLS(mode, u.Hostname()); err != nil {
			return nil, fmt.Errorf("TLS for %s: %w", u.Host, err)
		}
	}
	if c.made == nil {
		c.made = make(map[string]*httpload.Client)
	}
	c.made[key] = httpload.NewClient(httpload.Options{
		Dial: c.deps.Dial, TLS: config, Connections: idleConnections, ExpectContinue: expectPatience,
	})
	return c.made[key], nil
}

func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, client := range c.made {
		_ = client.Close()
	}
}

// nodes makes one node for each host.
func (c *clients) nodes(ctx context.Context, t loader.Target) ([]*node, error) {
	l, err := newLogin(t)
	if err != nil {
		return nil, err
	}
	all := make([]*node, max(len(t.Hosts), 1))
	for i := range all {
		if all[i], err = c.node(ctx, t, i, l); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (c *clients) node(ctx context.Context, t loader.Target, i int, l *login) (*node, error) {
	host, _, err := net.SplitHostPort(t.Address(i, plainPort))
	if err != nil {
		return nil, fmt.Errorf("host %d of the target: %w", i+1, err)
	}
	config, plain, err := c.deps.TLS(c.mode, host)
	if err != nil {
		return nil, fmt.Errorf("TLS for %s: %w", host, err)
	}
	// HTTP has no way to ask for TLS on the connection at hand. This machine itself is spoken to in the clear; who asks
	// for a preference gets a question first.
	if config == nil || plain && c.mode == loader.TLSAuto {
		return c.newNode("http", t.Address(i, plainPort), l)
	}
	n, err := c.newNode("https", t.Address(i, securePort), l)
	if err != nil || !plain {
		return n, err
	}
	_, err = n.run(ctx, statement{sql: "SELECT 1"}, nil)
	if record := (tls.RecordHeaderError{}); errors.As(err, &record) {
		return c.newNode("http", t.Address(i, plainPort), l)
	}
	return n, nil // any other failure is the probe's to report
}

func (c *clients) newNode(scheme, address string, l *login) (*node, error) {
	u := &url.URL{Scheme: scheme, Host: address}
	client, err := c.of(u)
	if err != nil {
		return nil, err
	}
	return &node{address: address, base: u.String(), http: client, login: l}, nil
}

// host is the server for everything but loads: the first until it cannot be reached.
func (l *opened) host() *node { return l.hosts[l.moved.Load()%uint64(len(l.hosts))] }

// after is the host that follows one.
func (l *opened) after(n *node) *node { return l.hosts[(slices.Index(l.hosts, n)+1)%len(l.hosts)] }

// run is node.run on a host that can be reached.
func (l *opened) run(ctx context.Context, s statement, each func(row [][]byte) error) (written int64, err error) {
	for range l.hosts {
		at := l.moved.Load()
		written, err = l.hosts[at%uint64(len(l.hosts))].run(ctx, s, each)
		if !unreachable(err) || ctx.Err() != nil {
			break
		}
		l.moved.CompareAndSwap(at, at+1)
	}
	return written, err
}

// exec runs a statement that answers nothing.
func (l *opened) exec(ctx context.Context, sql string) error {
	_, err := l.run(ctx, statement{sql: sql}, nil)
	return err
}

// rows reads all rows of a query as text; NULL is "".
func (l *opened) rows(ctx context.Context, query string) ([][]string, error) {
	return sqlload.Rows(ctx, conn{of: l}, query)
}

// value reads a single value; "" where there is no row.
func (l *opened) value(ctx context.Context, query string) (string, error) {
	found, err := l.rows(ctx, query)
	if err != nil || len(found) == 0 || len(found[0]) == 0 {
		return "", err
	}
	return found[0][0], nil
}

// unreachable reports whether nobody listens at a host, so that another may be asked: not a byte of the request was
// sent. A host that has the wrong certificate is no such thing, nor is one that is lost while a statement runs there.
func unreachable(err error) bool {
	var lost *lostError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return loader.NotSent(err) && !errors.As(err, &lost) && !errors.As(err, &certificate) && !errors.As(err, &record)
}

// conn is how sqlload asks. Every statement is a request that stands for itself, so there is nothing to open or to
// close.
type conn struct {
	of   *opened
	like statement // all but the SQL
}

// control returns what opens a conn.
func (l *opened) control(like statement) sqlload.Connect {
	return func(context.Context) (sqlload.Conn, error) { return conn{l, like}, nil }
}

// Exec implements sqlload.Conn.
func (c conn) Exec(ctx context.Context, sql string) (int64, error) {
	c.like.sql = sql
	return c.of.run(ctx, c.like, nil)
}

// Query implements sqlload.Conn.
func (c conn) Query(ctx context.Context, query string, each func(row [][]byte) error) error {
	c.like.sql = query
	_, err := c.of.run(ctx, c.like, each)
	return err
}

// Close implements sqlload.Conn.
func (c conn) Close() error { return nil }
