package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// endpoint is one server of the target.
type endpoint struct {
	host string // name, address, or the folder of a Unix socket
	port string
}

func (e endpoint) String() string {
	if e.unix() {
		return e.host + "/.s.PGSQL." + e.port
	}
	return net.JoinHostPort(e.host, e.port)
}

func (e endpoint) unix() bool { return strings.HasPrefix(e.host, "/") }

// access is how connections to the target are made.
type access struct {
	target loader.Target
	deps   loader.Deps
	setup  string // the first statements of every connection; before the product is known only endless and those of --set
	known  bool   // a PostgreSQL has answered
}

// defaultPort returns the port of the scheme's servers.
func (a access) defaultPort() string {
	switch a.target.Scheme {
	case schemeYugabyte:
		return "5433"
	case schemeRedshift:
		return "5439"
	}
	return "5432"
}

// endpoints lists the target's servers. A target without hosts is at PGHOST and PGPORT, or at the local socket.
func (a access) endpoints() ([]endpoint, error) {
	s, err := parametersOf(a.target)
	if err != nil {
		return nil, a.unreadable(err)
	}
	if _, problem := s.passfile(); problem != "" && a.target.Password == "" && a.deps.Log != nil {
		a.deps.Log.Warn(problem)
	}
	var hosts []string
	for i := range a.target.Hosts {
		hosts = append(hosts, a.target.Address(i, a.defaultPort()))
	}
	switch {
	case len(hosts) > 0:
	case s["host"] == "" && s["hostaddr"] != "":
		hosts = strings.Split(s["hostaddr"], ",")
	default:
		hosts = strings.Split(a.target.Params.Get("host"), ",")
	}
	var all []endpoint
	for _, host := range hosts {
		e := endpoint{host: host, port: a.target.Params.Get("port")}
		if h, p, err := net.SplitHostPort(host); err == nil {
			e = endpoint{host: h, port: p}
		}
		if a.defaultPort() != "5432" { // which yields to PGPORT
			e.port = cmp.Or(e.port, a.defaultPort())
		}
		config, err := a.config(e)
		if err != nil {
			return nil, err
		}
		all = append(all, endpoint{host: config.Host, port: strconv.Itoa(int(config.Port))})
		for _, f := range config.Fallbacks { // PGHOST may list several
			if f.Host != config.Host {
				all = append(all, endpoint{host: f.Host, port: strconv.Itoa(int(f.Port))})
			}
		}
	}
	return all, nil
}

// config returns pgconn's configuration for one server. What the target leaves out comes from libpq's environment and
// files: PGUSER, PGDATABASE, PGPASSWORD, ~/.pgpass and the rest. Passwords never go into a connection string: errors
// quote it.
func (a access) config(e endpoint) (*pgconn.Config, error) {
	s, err := parametersOf(a.target)
	if err != nil {
		return nil, a.unreadable(err)
	}
	passfile, _ := s.passfile()
	params := map[string]string{"host": e.host, "port": e.port, "user": a.target.User, "dbname": a.target.Database}
	for name, values := range a.target.Params {
		if !slices.Contains(own(), name) {
			params[name] = values[len(values)-1]
		}
	}
	maps.DeleteFunc(params, func(_, value string) bool { return value == "" })
	// TLS is set up below, as for every other database.
	maps.Copy(params, map[string]string{
		"sslmode": "disable", "sslrootcert": "", "sslcert": "", "sslkey": "", "passfile": passfile,
	})
	var text strings.Builder
	for name, value := range params {
		fmt.Fprintf(&text, "%s='%s' ", name, strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value))
	}
	config, err := pgconn.ParseConfig(text.String())
	if err != nil {
		return nil, a.unreadable(parseReason(err))
	}
	for _, password := range []loader.Secret{loader.Secret(a.target.Params.Get("password")), a.target.Password} {
		if password != "" {
			config.Password = password.Reveal()
		}
	}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := a.deps.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &socket{Conn: c}, nil
	}
	for _, name := range own() { // of a service
		delete(config.RuntimeParams, name)
	}
	config.RuntimeParams["client_encoding"] = "UTF8"
	if err := s.checkParams(); err != nil {
		return nil, a.unreadable(err)
	}
	if e.host == "" { // the caller only wants the server's address
		return config, nil
	}
	return config, a.secure(config, e, s)
}

// unreadable is the error of a target, or of libpq's environment and files.
func (a access) unreadable(err error) error {
	return &loader.Error{Op: "read the target", Applied: loader.No, Err: err, Hint: "the target is " + a.target.String()}
}

// parseReason returns pgconn's reason without the connection string that it quotes: parameters may hold secrets, and
// pgconn redacts passwords only.
func parseReason(err error) error {
	parse := (*pgconn.ParseConfigError)(nil)
	if !errors.As(err, &parse) {
		return err
	}
	bare := *parse
	bare.ConnString = ""
	return errors.New(strings.TrimPrefix(bare.Error(), "cannot parse ``: "))
}

// secure configures TLS and what else makes sure that this is the server.
func (a access) secure(config *pgconn.Config, e endpoint, s parameters) error {
	config.TLSConfig, config.Fallbacks = nil, nil
	if e.unix() {
		if s["requirepeer"] != "" {
			return a.unreadable(errors.New("parameter requirepeer: the user of the server's process is not looked up"))
		}
		return nil
	}
	address, err := s.address(a.target, e.host)
	if err != nil {
		return a.unreadable(err)
	}
	if address != "" {
		config.LookupFunc = func(context.Context, string) ([]string, error) { return []string{address}, nil }
	}
	encrypted, plain, err := s.encryption(a.target, a.deps, e.host)
	if err != nil || encrypted == nil {
		return err
	}
	config.TLSConfig = encrypted
	if plain {
		config.Fallbacks = []*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port}}
	}
	return nil
}

// adminName is the application_name of connections that load nothing, and the beginning of the sessions'.
const adminName = "terapush"

// connect opens one connection and sets it up. Every connection comes from here, so that --set holds for the proof and
// for Resolve as it does for the load.
func (a access) connect(ctx context.Context, e endpoint, notice pgconn.NoticeHandler) (*pgconn.PgConn, error) {
	ctx, cancel := context.WithTimeout(ctx, loader.ConnectTimeout)
	defer cancel()
	config, err := a.config(e)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["application_name"] = adminName
	config.OnNotice = notice
	c, err := a.open(ctx, e, config)
	if err != nil {
		return nil, err
	}
	if _, err := exec(ctx, c, a.setup); err != nil {
		_ = closeConn(c)
		return nil, failed("set up the session", err)
	}
	return c, nil
}

// open opens the connection. The first one finds out whether it is a PostgreSQL that listens there.
func (a access) open(ctx context.Context, e endpoint, config *pgconn.Config) (c *pgconn.PgConn, err error) {
	connect := func(ctx context.Context) error {
		if c, err = pgconn.ConnectConfig(ctx, config); err != nil {
			return connectError(e, config, err)
		}
		return nil
	}
	if a.known || e.unix() {
		err = connect(ctx)
		return c, err
	}
	answered := func(err error) bool { return errors.As(err, new(*pgconn.PgError)) || wrongRole(err) }
	err = netio.Reach(ctx, a.deps.Dial, e.String(), netio.PostgreSQL, answered, connect)
	return c, err
}

// wrongRole reports whether a host answered and target_session_attrs asks for another one.
func wrongRole(err error) bool {
	return errors.Is(err, pgconn.ErrReadOnlyConnection) || errors.Is(err, pgconn.ErrReadWriteConnection) ||
		errors.Is(err, pgconn.ErrPrimaryConnection) || errors.Is(err, pgconn.ErrStandbyConnection)
}

// closeConn ends the session, within a second. It waits for the server's end of an idle one, which PgConn.Close does
// not: until then the session counts against the limits on connections and holds its locks. PostgreSQL's connections
// end after their sessions (socket_close in pqcomm.c).
func closeConn(c *pgconn.PgConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	idle, err := c.Hijack()
	if err != nil { // busy, or closed
		return c.Close(ctx)
	}
	deadline, _ := ctx.Deadline()
	_ = idle.Conn.SetDeadline(deadline)
	idle.Frontend.Send(&pgproto3.Terminate{})
	if idle.Frontend.Flush() == nil {
		_, _ = io.Copy(io.Discard, idle.Conn)
	}
	return idle.Conn.Close()
}

// exec runs one or more statements in one message.
func exec(ctx context.Context, c *pgconn.PgConn, sql string) ([]*pgconn.Result, error) {
	results, err := c.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, cause(c, err)
	}
	if len(results) == 0 {
		return nil, errors.New("the server answered nothing")
	}
	return results, nil
}

// sessionConn is a session's connection.
type sessionConn interface {
	sqlload.Conn
	// commit returns the server's answer to COMMIT.
	commit(ctx context.Context) (tag string, err error)
	// IsClosed reports whether the connection is known to be broken.
	IsClosed() bool
}

// conn is a sqlload.Conn, and that of sessions.
type conn struct {
	*pgconn.PgConn
	spare *spare // that the connection becomes in the end; nil: it is closed
}

// Exec implements sqlload.Conn.
func (c conn) Exec(ctx context.Context, statements string) (int64, error) {
	results, err := exec(ctx, c.PgConn, statements)
	if err != nil {
		return 0, err
	}
	return results[len(results)-1].CommandTag.RowsAffected(), nil
}

func (c conn) commit(ctx context.Context) (tag string, err error) {
	results, err := exec(ctx, c.PgConn, "COMMIT")
	if err != nil {
		return "", err
	}
	return results[0].CommandTag.String(), nil
}

// Query implements sqlload.Conn. A connection whose answer is not read to its end is closed.
func (c conn) Query(ctx context.Context, query string, each func(row [][]byte) error) error {
	results := c.PgConn.Exec(ctx, query)
	for results.NextResult() {
		for rows := results.ResultReader(); rows.NextRow(); {
			if err := each(rows.Values()); err != nil {
				closeSocket(c.PgConn)
				return err
			}
		}
	}
	return cause(c.PgConn, results.Close())
}

// Close implements sqlload.Conn.
func (c conn) Close() error {
	if c.spare != nil {
		return c.spare.keep(c.PgConn)
	}
	return closeConn(c.PgConn)
}

// rowsOf runs one or more statements in one message, and returns the rows as text; NULL is "".
func rowsOf(ctx context.Context, c *pgconn.PgConn, statements string) ([][]string, error) {
	return sqlload.Rows(ctx, conn{PgConn: c}, statements)
}
