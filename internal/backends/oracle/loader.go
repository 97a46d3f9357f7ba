package oracle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// opened is the back-end on one table. It keeps no connection: outside of sessions it needs one rarely, and makes it
// then.
type opened struct {
	sqlload.ClaimedTable
	target  loader.Target
	deps    loader.Deps
	client  client
	method  string
	options options
	server  loader.Server
	hosts   loader.Hosts[int] // indexes of target.Hosts; one where tnsnames.ora has the address

	mu   sync.Mutex
	cost cost // of closed sessions
	fast fast // what closed sessions have written by Fast Ingest
}

var _ interface {
	loader.Finisher
	loader.Measurer
	loader.Checker
} = (*opened)(nil)

// Open connects once, and reads version and settings of the server.
func (d Driver) Open(ctx context.Context, t loader.Target, deps loader.Deps) (loader.Loader, error) {
	method, o, err := planOf(d.client, t)
	if err != nil {
		return nil, err
	}
	t.TLS, _ = tlsMode(t) // Check has validated it
	if t.TLS, err = modeWith(t, deps); err != nil {
		return nil, err
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	l := d.unconnected(t, deps, method, o)
	l.warnUnencrypted()
	err = l.withConn(ctx, func(k *conn) error { return l.identify(ctx, k) })
	if err != nil {
		return nil, failed("read the server's version", err)
	}
	return l, nil
}

// unconnected makes the loader without connecting.
func (d Driver) unconnected(t loader.Target, deps loader.Deps, method string, o options) *opened {
	l := &opened{target: t, deps: deps, client: d.client, method: method, options: o}
	l.hosts.List = endpoints(t)
	l.Table = &sqlload.Table{
		Name: t.Table, Catalog: catalog{l}, Claims: catalog{l}, Lookups: &lookups,
		Failed: failed, Classify: d.Classify, Log: deps.Log,
		Connect: func(ctx context.Context) (sqlload.Conn, error) { return l.dial(ctx, 0) },
	}
	l.Effects, l.Behind = l.effects, l.behind
	l.Open = func(ctx context.Context, c loader.Contract) (sqlload.Session, error) { return l.open(ctx, c) }
	return l
}

// Server implements loader.Loader.
func (l *opened) Server() loader.Server { return l.server }

// Caps implements loader.Loader.
func (l *opened) Caps() loader.Caps { return capsOf(l.method) }

// Close implements loader.Loader. Connections belong to sessions.
func (l *opened) Close() error { return nil }

// Settings that are no parameters.
const (
	settingCharset = "character_set"
	settingCloud   = "cloud_service"
)

// selectSettings read settings that decide durability and speed. Errors are ignored: CLOUD_SERVICE is unknown to older
// servers (ORA-02003), and V$PARAMETER needs a privilege.
var selectSettings = [...]string{
	"SELECT '" + settingCharset + "', value FROM nls_database_parameters WHERE parameter = 'NLS_CHARACTERSET'",
	"SELECT '" + settingCloud + "', SYS_CONTEXT('USERENV', 'CLOUD_SERVICE') FROM DUAL",
	"SELECT name, value FROM v$parameter WHERE name IN ('commit_logging', 'commit_wait', 'cpu_count', " +
		"'db_block_size', 'log_buffer', 'max_string_size', 'memoptimize_pool_size', 'memoptimize_write_area_size', " +
		"'sga_target')",
}

// identify reads the server's version and settings.
func (l *opened) identify(ctx context.Context, k *conn) error {
	const from = " FROM product_component_version WHERE product LIKE 'Oracle%'"
	found, err := sqlload.Rows(ctx, k, "SELECT product, version_full"+from)
	if is(err, codeNoColumn) { // before 18c; version is 19.0.0.0.0 for every 19c
		found, err = sqlload.Rows(ctx, k, "SELECT product, version"+from)
	}
	if err == nil && len(found) == 0 {
		err = errors.New("PRODUCT_COMPONENT_VERSION names no Oracle Database")
	}
	if err != nil {
		return err
	}
	host, _, _ := strings.Cut(k.where, ", ")
	l.server = loader.Server{
		Product: strings.TrimSpace(found[0][0]), Version: found[0][1], Endpoint: host,
		Settings: map[string]string{"driver": l.client.name},
	}
	for _, query := range selectSettings {
		found, err := sqlload.Rows(ctx, k, query)
		if k.dead || ctx.Err() != nil {
			return err
		}
		for _, row := range found {
			if row[0] != settingCloud || row[1] != "" {
				l.server.Settings[row[0]] = row[1]
			}
		}
	}
	loader.ApplySettings(l.server.Settings, l.target.Settings)
	return nil
}

// warnUnencrypted warns of TCP to another machine, unless the user has chosen it.
func (l *opened) warnUnencrypted() {
	if l.target.TLS != loader.TLSAuto {
		return
	}
	for host := range l.target.Hosts {
		if name, _ := hostPort(l.target, host); name != "localhost" && !net.ParseIP(name).IsLoopback() {
			l.deps.Log.Warn(fmt.Sprintf("rows and queries go to %s unencrypted: for TLS name its TCPS port (usually 2484) with "+
				"?%s=true, or use --tls verify", l.target.Address(host, defaultPort), paramSSL))
			return
		}
	}
}

// Prepare implements loader.Loader.
func (l *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	if err := checkLengths(p.Schema); err != nil {
		return loader.Table{}, err
	}
	table, err := l.Table.Prepare(ctx, p)
	known := (*loader.Error)(nil)
	if p.Create == loader.CreateTruncate && is(err, codeBusy, codeReferenced) && errors.As(err, &known) {
		known.Applied = loader.No // the error of TRUNCATE
	}
	if s, _ := l.State(); err == nil && s.Relation != nil && s.Relation.Schema != s.Relation.Traits[traitUser] &&
		(l.method == methodFast || l.method == methodDirect) {
		// In another user's schema Fits sees triggers only with the privilege CREATE ANY TRIGGER.
		l.deps.Log.Warn("the table is another user's, so its triggers may be invisible: with an enabled one the server "+
			"inserts conventionally", "table", s.Table, "method", l.method)
	}
	return table, err
}

// checkLengths refuses values that fit into no column of Oracle.
func checkLengths(s rows.Schema) error {
	var bad []error
	for _, c := range s.Columns {
		if c.Type.Variable() && lengthOf(c) > maxValueBytes {
			bad = append(bad, fmt.Errorf("values of column %s have up to %d bytes, and a VARCHAR2 or RAW has %d at most",
				c.Name, lengthOf(c), maxValueBytes))
		}
	}
	if bad == nil {
		return nil
	}
	return &loader.Error{
		Op: "prepare", Applied: loader.No, Err: errors.Join(bad...), Hint: "make rows smaller with --payload-bytes",
	}
}
