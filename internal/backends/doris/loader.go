package doris

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// opened is the back-end on one table.
type opened struct {
	*sqlload.Table
	target  loader.Target
	method  loader.Method
	options options
	hosts   loader.Hosts[endpoint]
	log     *slog.Logger
	name    tableName
	caps    loader.Caps
	server  loader.Server

	http    *httpload.Client
	control *sql.DB // for everything but loading, on the first frontend that can be reached
	// openConn opens a connection that loads; nil: the driver does.
	openConn func(context.Context, *mysql.Config) (driver.Conn, error)

	loads       atomic.Uint64 // sent so far to backends of --backend-hosts, which take turns
	backendTime time.Duration // 0: every load asks for a backend
	finishTime  time.Duration // how long Finish waits; 0: see patience

	altering sync.Mutex
	altered  bool // the table has the properties that the options ask for

	// doubted is set when an attempt has failed, or may have in an earlier process of the run. Under group commit its rows
	// may still come in, beside those of the next attempt.
	doubted atomic.Bool
	// replaced is the first errReplaced: the server uses labels of its own, so nothing recognizes a batch.
	replaced atomic.Pointer[error]
}

const (
	// controlConns leaves connections for Resolve while scans of the proof hold some.
	controlConns = 8
	// httpConns are kept while idle, for more workers than anyone has.
	httpConns = 1024
)

// Open connects to the first frontend that answers, and checks that it is Doris.
func (Driver) Open(ctx context.Context, t loader.Target, d loader.Deps) (loader.Loader, error) {
	l, err := unconnected(t, d)
	if err != nil {
		return nil, err
	}
	probe := func(ctx context.Context) error {
		return loader.ConnectError(l.hosts.List[0].address, l.identify(ctx), faultOf)
	}
	if err := netio.Reach(ctx, d.Dial, l.hosts.List[0].address, netio.MySQL, mysqlconn.Answered, probe); err != nil {
		_ = l.Close()
		return nil, err
	}
	if l.method.Name == methodS3Load {
		return openStaged(ctx, l, d)
	}
	return l, nil
}

// unconnected makes the loader without connecting.
func unconnected(t loader.Target, d loader.Deps) (*opened, error) {
	caps, err := New().Check(t)
	if err != nil {
		return nil, err
	}
	all, config, err := endpoints(t, d)
	if err != nil {
		return nil, err
	}
	l := newLoader(t, d.Log)
	l.caps, l.hosts.List = caps, all
	l.http = httpload.NewClient(httpload.Options{Dial: d.DialAny(), TLS: config, Connections: httpConns})
	l.control = sql.OpenDB(connector(all, 0, false, controlSetup(t.Settings)))
	l.control.SetMaxOpenConns(controlConns)
	return l, nil
}

// newLoader makes a loader without hosts and clients.
func newLoader(t loader.Target, log *slog.Logger) *opened {
	name, _ := targetTable(t)
	method, o, _ := planOf(t)
	l := &opened{target: t, method: method, options: o, log: log, name: name, caps: method.Caps}
	l.hosts.Another, l.hosts.Patience = unreachable, frontendTime
	if len(o.direct) == 0 {
		l.backendTime = backendTime
	}
	l.Table = &sqlload.Table{
		Name: name.table, Catalog: catalog{l}, Connect: l.connect,
		Failed: failed, Classify: verdict, SQLState: mysqlconn.SQLState, Log: log, Lookups: &lookups,
		MaxFetch: 5000, // expr_children_limit is 10,000 by default
	}
	return l
}

// identify reads what the server is. Only the version comment names Doris: the version is MySQL's for every client.
func (l *opened) identify(ctx context.Context) error {
	var comment, packet string
	if err := l.control.QueryRowContext(ctx, "SELECT @@version_comment").Scan(&comment); err != nil {
		return err
	}
	if err := recognize(comment); err != nil {
		return err
	}
	settings := map[string]string{"group_commit": string(l.options.group)}
	loader.ApplySettings(settings, l.target.Settings)
	if err := l.control.QueryRowContext(ctx, "SELECT @@max_allowed_packet").Scan(&packet); err == nil {
		settings["max_allowed_packet"] = packet
		l.limitPacket(packet)
	} else {
		l.log.Debug("max_allowed_packet cannot be read", "error", err)
	}
	l.server = loader.Server{
		Product: "Apache Doris", Version: version(comment), Endpoint: l.hosts.List[0].address, Settings: settings,
	}
	return nil
}

// recognize refuses a server that is not Doris.
func recognize(comment string) error {
	if strings.Contains(strings.ToLower(comment), "doris") {
		return nil
	}
	return &loader.Error{
		Op: "identify the server", Applied: loader.No, Err: fmt.Errorf("it is not Doris: its version comment is %q", comment),
		Hint: "doris:// is for Apache Doris; mysql:// takes MySQL's family",
	}
}

// version takes the number out of a comment such as "Doris version doris-3.1.2-rc01-abc".
func version(comment string) string {
	for word := range strings.FieldsSeq(comment) {
		if v, found := strings.CutPrefix(strings.ToLower(word), "doris-"); found {
			return v
		}
	}
	return comment
}

// limitPacket lowers the largest INSERT to what the server takes.
func (l *opened) limitPacket(packet string) {
	bytes, err := strconv.ParseInt(packet, 10, 64)
	if err != nil || l.method.Name != methodInsert || bytes <= packetRoom {
		return
	}
	l.caps.MaxBytes = bytes - packetRoom
	if l.options.Prepared {
		l.caps.MaxBytes /= parameterGrowth
	}
	l.caps.DefaultBatchBytes = min(l.caps.DefaultBatchBytes, l.caps.MaxBytes)
}

// packetRoom is what a statement needs in bytes beyond the rows: label, table name, column list.
const packetRoom = 64 << 10

// Server implements loader.Loader. After Prepare it has the table's replicas, under the server's name for them.
func (l *opened) Server() loader.Server {
	s := l.server
	s.Settings = maps.Clone(s.Settings)
	for _, name := range []string{"replication_num", "replication_allocation"} {
		if value := l.tableProperty(name); value != "" {
			s.Settings[name] = value
		}
	}
	return s
}

// Caps returns those of the method on this server.
func (l *opened) Caps() loader.Caps { return l.caps }

// Close closes the control connections and the idle HTTP ones.
func (l *opened) Close() error { return errors.Join(l.control.Close(), l.http.Close()) }

// Prepare makes the table, or checks the one that exists.
func (l *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	if p.Resume {
		l.doubted.Store(true)
	}
	t, err := l.Table.Prepare(ctx, p)
	if err != nil {
		return t, err
	}
	t.Name = l.name.String()
	return t, nil
}

// alterTable sets the properties that the options ask for on a table that has others. The first session does it, just
// before its rows: Prepare is called by those that change nothing, too, such as the doctor and a later proof.
func (l *opened) alterTable(ctx context.Context) error {
	l.altering.Lock()
	defer l.altering.Unlock()
	s, err := l.State()
	if err != nil || l.altered || len(l.options.properties()) == 0 {
		return err
	}
	c, err := l.connect(ctx)
	if err != nil {
		return failed("alter the table", err)
	}
	defer func() { _ = c.Close() }()
	found := s.Relation
	if found == nil { // Silent
		if found, err = (catalog{l}).Locate(ctx, c, s); err != nil || found == nil {
			return failed("look for table "+s.Table, err)
		}
	}
	for _, name := range l.options.changes(found.Traits[0]) {
		was, want := property(found.Traits[0], name), l.options.properties()[name]
		if _, err := c.Exec(ctx, statements{s.Statements}.setProperty(name, want)); err != nil {
			return &loader.Error{
				Op: "alter the table", Applied: loader.No, Err: err,
				Hint: fmt.Sprintf("%s; without --%s the table keeps its own", l.grant("ALTER_PRIV"), strings.ReplaceAll(name, "_", "-")),
			}
		}
		l.log.Warn("the table was there, and its property is changed as asked", "property", name,
			"from", cmp.Or(was, "the server's default"), "to", want)
	}
	l.altered = true
	return nil
}
