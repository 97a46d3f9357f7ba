package oracle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// opened is the back-end on one table. It keeps no connection of its own: what it does besides loading is rare, and a
// connection made for it cannot be a dead one.
type opened struct {
	sqlload.ClaimedTable
	target  loader.Target
	deps    loader.Deps
	client  client
	method  string
	options options
	server  loader.Server

	next atomic.Int64 // counts sessions, to take the hosts in turn

	mu    sync.Mutex
	spent spent // what closed sessions have cost the server
	fast  fast  // what they have written by Fast Ingest
}

var _ interface {
	loader.Finisher
	loader.Measurer
	loader.Checker
} = (*opened)(nil)

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
	l.Table = &sqlload.Table{
		Name: t.Table, Catalog: catalog{l}, Claims: catalog{l}, Failed: failed, Classify: b.Classify,
		Connect: func(ctx context.Context) (sqlload.Conn, error) { return l.dial(ctx, 0) },
	}
	l.warnOfTCP()
	err = l.somewhere(ctx, func(k *link) error { return l.lookAtServer(ctx, k) })
	if err != nil {
		return nil, failed("look at the server", err)
	}
	if l.Caps().Staged {
		return openStaged(ctx, l)
	}
	return l, nil
}

// Server implements loader.Loader.
func (l *opened) Server() loader.Server { return l.server }

// Caps implements loader.Loader.
func (l *opened) Caps() loader.Caps { return capsOf(l.method) }

// Close has nothing to end: connections belong to sessions.
func (l *opened) Close() error { return nil }

// What Open asks. version_full is there since 18c; version alone would call every 19c 19.0.0.0.0.
const (
	selectFullVersion = "SELECT product, version_full FROM product_component_version WHERE product LIKE 'Oracle%'"
	selectVersion     = "SELECT product, version FROM product_component_version WHERE product LIKE 'Oracle%'"
)

// The names of settings that are no parameters.
const (
	settingCharset = "character_set"
	settingCloud   = "cloud_service"
)

// selectSettings read names and values of what decides durability and speed. Not everybody may read all of them:
// CLOUD_SERVICE is a word that older servers do not know (ORA-02003), and V$PARAMETER takes a privilege.
var selectSettings = [...]string{
	"SELECT '" + settingCharset + "', value FROM nls_database_parameters WHERE parameter = 'NLS_CHARACTERSET'",
	"SELECT '" + settingCloud + "', SYS_CONTEXT('USERENV', 'CLOUD_SERVICE') FROM DUAL",
	"SELECT name, value FROM v$parameter WHERE name IN ('commit_logging', 'commit_wait', 'cpu_count', " +
		"'db_block_size', 'log_buffer', 'max_string_size', 'memoptimize_pool_size', 'memoptimize_write_area_size', 'sga_target')",
}

// lookAtServer finds out which server it is, and what about it decides durability and speed.
func (l *opened) lookAtServer(ctx context.Context, k *link) error {
	found, err := sqlload.Rows(ctx, k, selectFullVersion)
	if k.is(err, codeNoColumn) {
		found, err = sqlload.Rows(ctx, k, selectVersion)
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
	for _, s := range l.target.Settings {
		l.server.Settings[strings.ToLower(s.Name)] = s.Value
	}
	return nil
}

// unicode reports whether a character set has all characters; one that is not known is taken to.
func unicode(charset string) bool { return charset == "" || charset == "AL32UTF8" || charset == "UTF8" }

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
		l.deps.Log.Warn(fmt.Sprintf("rows and what is asked about them go to %s unencrypted: to have them encrypted name its "+
			"TCPS port (2484 as a rule) with ?%s=true, or use --tls verify", address, paramSSL))
		return
	}
}

// codeReferenced is what TRUNCATE fails with where enabled foreign keys of other tables refer to the table.
const codeReferenced = 2266

// Prepare implements loader.Loader.
func (l *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	if err := carries(p.Schema); err != nil {
		return loader.Table{}, err
	}
	table, err := l.Table.Prepare(ctx, p)
	if err != nil && p.Create == loader.CreateTruncate {
		return table, l.notEmptied(err)
	}
	if s, _ := l.State(); err == nil && s.Relation != nil && s.Relation.Schema != s.Relation.Traits[traitUser] &&
		(l.method == methodFast || l.method == methodDirect) {
		// ALL_TRIGGERS, where Fits looks, has those of other users' tables for nobody but holders of CREATE ANY TRIGGER.
		l.deps.Log.Warn("the table is another user's, so its triggers may be invisible: with an enabled one the server "+
			"inserts conventionally", "table", s.Table, "method", l.method)
	}
	return table, err
}

// notEmptied says what to do about a TRUNCATE that the server refused.
func (l *opened) notEmptied(err error) error {
	hint := ""
	switch k := (&link{client: l.client}); {
	case k.is(err, codeBusy):
		hint = "somebody has uncommitted rows in it: wait for that session or end it, and try again"
	case k.is(err, codeReferenced):
		hint = "disable the foreign keys of other tables that refer to it"
	}
	if known := (*loader.Error)(nil); hint != "" && errors.As(err, &known) {
		known.Applied, known.Hint = loader.No, hint
	}
	return err
}

// carries refuses values for which Oracle has no type, before anything is sent.
func carries(s rows.Schema) error {
	var bad []error
	for _, c := range s.Columns {
		if c.Type.Variable() && lengthOf(c) > maxValueBytes {
			bad = append(bad, fmt.Errorf("values of column %s have up to %d bytes, and a VARCHAR2 or RAW has %d at most",
				c.Name, lengthOf(c), maxValueBytes))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return &loader.Error{
		Op: "prepare", Applied: loader.No, Err: errors.Join(bad...), Hint: "make rows smaller with --payload-bytes",
	}
}

// Probe implements loader.Prober.
func (l *opened) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (loader.Proof, error) {
	return l.ClaimedTable.Probe(ctx, loader.RefOf(b), func(ctx context.Context) (sqlload.Session, sqlload.Send, error) {
		s, err := l.open(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		s.unmeasured = true
		return s, func(ctx context.Context) (int64, []string, error) { return s.rows(ctx, b) }, nil
	})
}
