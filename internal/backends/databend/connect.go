package databend

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/terapush/terapush/internal/httpload"
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
	grace   time.Duration // killGrace, or less in tests
}

// login is what every request to a node carries.
type login struct {
	authorization     string // a secret
	tenant, warehouse string
	session           json.RawMessage
}

func newLogin(t loader.Target) (*login, error) {
	user := t.User
	if user == "" {
		user = defaultUser
	}
	state := sessionState{Database: defaultDatabase, Role: t.Params.Get("role"), Settings: pinned()}
	if t.Database != "" {
		state.Database = t.Database
	}
	if state.Role != "" {
		state.SecondaryRoles = &[]string{}
	}
	for _, s := range t.Settings {
		state.Settings[s.Name] = s.Value
	}
	session, err := json.Marshal(state)
	return &login{
		authorization: "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+t.Password.Reveal())),
		tenant:        t.Params.Get("tenant"), warehouse: t.Params.Get("warehouse"), session: session,
	}, err
}

// pinned are the settings that nobody may change, because what terapush says would no longer be true:
// timestamps have no zone of their own in a dataset, and would be read in the server's; rows that are counted have to be
// those of the table and not of an earlier answer; and a result has to be all of it.
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
	h := r.Header
	h.Set("Authorization", n.login.authorization)
	h.Set("User-Agent", "terapush") // one that looks like a browser's would change how sessions are kept
	if n.login.tenant != "" {
		h.Set("X-DATABEND-TENANT", n.login.tenant)
	}
	if n.login.warehouse != "" {
		h.Set("X-DATABEND-WAREHOUSE", n.login.warehouse)
	}
	return r, nil
}

// clients keeps one HTTP client for each server: a TLS configuration is good for one host name only, and presigned
// URLs lead to others than the target's.
type clients struct {
	deps  loader.Deps
	mode  loader.TLSMode
	grace time.Duration

	mu   sync.Mutex
	made map[string]*httpload.Client
}

// idleConnections is how many connections to a server stay open between two requests. How many workers there will be
// is not known yet, and a bound below that would open a new connection for nearly every batch.
const idleConnections = 1024

// of gives the client for a URL.
func (c *clients) of(u *url.URL) (*httpload.Client, error) {
	key := u.Scheme + "://" + u.Host
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.made[key]; found != nil {
		return found, nil
	}
	var config *tls.Config
	if u.Scheme == "https" {
		var err error
		if config, _, err = c.deps.TLS(secured(c.mode), u.Hostname()); err != nil {
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

// secured is the mode for a URL that says https although the target goes without TLS, as a presigned one may.
func secured(mode loader.TLSMode) loader.TLSMode {
	if mode == loader.TLSOff {
		return loader.TLSAuto
	}
	return mode
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
	var all []*node
	for i := range max(len(t.Hosts), 1) {
		n, err := c.node(ctx, t, i, l)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
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
	err = n.run(ctx, statement{sql: "SELECT 1"}, nil)
	var record tls.RecordHeaderError
	if errors.As(err, &record) {
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
	return &node{address: address, base: u.String(), http: client, login: l, grace: c.grace}, nil
}
