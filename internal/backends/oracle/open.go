package oracle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/terapush/terapush/pkg/loader"
)

var (
	_ loader.Resolver = (*opened)(nil)
	_ loader.Claims   = (*opened)(nil)
	_ loader.Prober   = (*opened)(nil)
	_ loader.Reserver = (*opened)(nil)
	_ loader.Counter  = (*opened)(nil)
	_ loader.Fetcher  = (*opened)(nil)
	_ loader.Sizer    = (*opened)(nil)
	_ loader.Finisher = (*opened)(nil)
	_ loader.Measurer = (*opened)(nil)
)

// opened is the back-end on one table. It keeps no connection of its own: what it does besides loading is rare, and a
// connection made for it cannot be a dead one.
type opened struct {
	target  loader.Target
	deps    loader.Deps
	client  client
	method  string
	options options
	server  loader.Server

	next  atomic.Int64          // counts sessions, to take the hosts in turn
	ready atomic.Pointer[ready] // nil before Prepare

	mu    sync.Mutex
	spent spent // what closed sessions have cost the server
	fast  fast  // what they have written by Fast Ingest
}

// ready is what Prepare has settled.
type ready struct {
	statements
	run    string
	asked  string // the table's name as the target gives it
	silent bool   // nothing is asked that loading does not need
	user   string // as the target names it

	contract loader.Contract
}

// Open connects once and asks what is there.
func (b backend) Open(ctx context.Context, t loader.Target, d loader.Deps) (loader.Loader, error) {
	method, o, err := planOf(b.client, t)
	if err != nil {
		return nil, err
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	l := &opened{target: t, deps: d, client: b.client, method: method, options: o}
	l.warnOfTCP()
	err = l.somewhere(ctx, func(k *link) error { return l.probe(ctx, k) })
	if err != nil {
		return nil, err
	}
	if !l.Caps().Staged {
		return l, nil
	}
	return openStaged(ctx, l)
}

func (l *opened) Server() loader.Server { return l.server }

func (l *opened) Caps() loader.Caps { return capsOf(l.method) }

// Close has nothing to end: connections belong to sessions.
func (l *opened) Close() error { return nil }

// prepared returns what Prepare has settled.
func (l *opened) prepared() (*ready, error) {
	if r := l.ready.Load(); r != nil {
		return r, nil
	}
	return nil, errors.New("oracle: the loader was not prepared")
}

// What Open asks. Every user may read the first three; CLOUD_SERVICE is a word that older servers do not know
// (ORA-02003), and V$PARAMETER takes a privilege. version_full is there since 18c; version alone would call every 19c
// 19.0.0.0.0.
const (
	selectFullVersion = "SELECT product, version_full FROM product_component_version WHERE product LIKE 'Oracle%'"
	selectVersion     = "SELECT product, version FROM product_component_version WHERE product LIKE 'Oracle%'"
	selectCharset     = "SELECT value FROM nls_database_parameters WHERE parameter = 'NLS_CHARACTERSET'"
	selectCloud       = "SELECT SYS_CONTEXT('USERENV', 'CLOUD_SERVICE') FROM DUAL"
	selectParameters  = "SELECT name, value FROM v$parameter WHERE name IN ('commit_logging', 'commit_wait', 'cpu_count', " +
		"'db_block_size', 'log_buffer', 'max_string_size', 'memoptimize_pool_size', 'memoptimize_write_area_size', 'sga_target')"
)

// probe finds out which server it is, and what about it decides durability and speed.
func (l *opened) probe(ctx context.Context, k *link) error {
	found, err := k.texts(ctx, "ask for the server's version", selectFullVersion)
	if k.is(err, codeNoColumn) {
		found, err = k.texts(ctx, "ask for the server's version", selectVersion)
	}
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return &loader.Error{
			Op: "ask for the server's version", Applied: loader.No, Err: errors.New("PRODUCT_COMPONENT_VERSION names no Oracle Database"),
		}
	}
	l.server = loader.Server{
		Product: strings.TrimSpace(found[0][0]), Version: found[0][1], Endpoint: l.endpoint(k),
		Settings: map[string]string{"driver": l.client.name},
	}
	if found, err = k.texts(ctx, "ask for the server's character set", selectCharset); err != nil {
		return err
	}
	if len(found) > 0 {
		l.server.Settings["character_set"] = found[0][0]
		l.warnOfCharset(found[0][0])
	}
	for _, optional := range []string{selectCloud, selectParameters} {
		found, err := k.texts(ctx, "ask for the server's settings", optional)
		if k.dead || ctx.Err() != nil {
			return err
		}
		maps.Copy(l.server.Settings, settings(optional, found))
	}
	for _, s := range l.target.Settings {
		l.server.Settings[strings.ToLower(s.Name)] = s.Value
	}
	return nil
}

// settings are the answers to one of the optional questions; none where it was refused.
func settings(query string, found [][]string) map[string]string {
	all := make(map[string]string)
	for _, row := range found {
		switch {
		case len(row) == 2:
			all[row[0]] = row[1]
		case query == selectCloud && row[0] != "":
			all["cloud_service"] = row[0]
		}
	}
	return all
}

// endpoint is the host that k leads to.
func (l *opened) endpoint(k *link) string {
	where, _, _ := strings.Cut(k.where, ", ")
	return where
}

// warnOfTCP tells who asked for nothing what follows from it.
func (l *opened) warnOfTCP() {
	if mode, err := tlsMode(l.target); err != nil || mode != loader.TLSAuto {
		return
	}
	for host := range l.target.Hosts { // none: tnsnames.ora has the protocol
		address := l.target.Address(host, defaultPort)
		name, _, err := net.SplitHostPort(address)
		if ip := net.ParseIP(name); err != nil || name == "localhost" || ip.IsLoopback() {
			continue
		}
		l.deps.Log.Warn(fmt.Sprintf("rows and what is asked about them go to %s unencrypted: to have them encrypted name its TCPS port "+
			"(2484 as a rule) with ?%s=true, or use --tls verify", address, paramSSL))
		return
	}
}

// warnOfCharset tells early what verification would find late: outside of Unicode the server replaces what it has no
// character for, and says nothing.
func (l *opened) warnOfCharset(name string) {
	if name != "AL32UTF8" && name != "UTF8" {
		l.deps.Log.Warn(fmt.Sprintf("the database's character set is %s: of texts it keeps what that has characters for", name))
	}
}
