package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// opened is the back-end on one table.
type opened struct {
	sqlload.ClaimedTable
	target    loader.Target
	method    loader.Method
	endpoints []endpoint
	log       *slog.Logger

	server server
	caps   loader.Caps
	name   tableName

	// control is for everything but loading. It goes to one host, the first that answered: SingleStore takes DDL on the
	// master aggregator only, and reads there see what was written through the others.
	control *sql.DB
	home    endpoint // where control goes

	held   *sql.Conn     // keeps other runs off the table; nil if it does not
	unsign string        // removes the row of the claim table that says so; "" without one
	turn   atomic.Uint64 // sessions opened so far: whose host is next
}

// Open connects to the first host that answers and finds out what is there.
func (Driver) Open(ctx context.Context, t loader.Target, d loader.Deps) (loader.Loader, error) {
	t, err := complete(t)
	if err != nil {
		return nil, err
	}
	if _, err := (Driver{}).Check(t); err != nil {
		return nil, err
	}
	method, _ := loader.FindMethod(New(), t.Method)
	name, _ := targetTable(t)
	all, err := endpoints(t, d)
	if err != nil {
		return nil, err
	}
	l := &opened{target: t, method: method, endpoints: all, log: d.Log, name: name}
	var vars map[string]string
	err = loader.FirstOf(ctx, all, 0, func(ctx context.Context, e endpoint) (err error) {
		l.home = e
		vars, err = variables(ctx, e, t.Settings)
		return loader.ConnectError(e.address, err, faultOf)
	})
	if err != nil {
		return nil, err
	}
	if err := l.recognise(vars); err != nil {
		return nil, err
	}
	l.control = sql.OpenDB(connector{l.home.config, l.server.flavour.controlSetup(t.Settings)})
	l.control.SetMaxOpenConns(controlConns)
	l.Table = &sqlload.Table{
		Name: name.table, Catalog: catalog{l}, Claims: catalog{l}, Connect: l.connect,
		Failed: failed, Classify: Driver{}.Classify,
	}
	if packet, err := strconv.ParseInt(vars["max_allowed_packet"], 10, 64); err == nil {
		l.MaxStatement = packet - 1 // the packet holds the command's byte, too
	}
	if err := l.refineCaps(ctx); err != nil {
		_ = l.control.Close()
		return nil, failed("probe", err)
	}
	if method.Caps.Staged {
		return openPipelines(ctx, l, d)
	}
	return l, nil
}

// variables asks a host for its variables. SHOW VARIABLES is the one question that all flavours and all proxies answer
// alike, and it costs one round trip.
func variables(ctx context.Context, e endpoint, settings []loader.Setting) (map[string]string, error) {
	c, err := dial(ctx, e.config, sessionSettings(settings))
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	// The limit cuts SHOW off, too. Whether the product knows it is not known yet.
	_, _ = c.Exec(ctx, "SET SESSION "+noLimit)
	found, err := sqlload.Rows(ctx, c, "SHOW VARIABLES")
	vars := make(map[string]string, len(found))
	for _, row := range found {
		vars[row[0]] = row[1]
	}
	return vars, err
}

// recognise tells the product by its variables, and warns of settings that are allowed, and probably not what anybody
// wants.
func (l *opened) recognise(vars map[string]string) error {
	l.server = probed(vars)
	if l.server.flavour.locksEmptyTable(l.target.Settings) {
		l.log.Warn(SettingsHelp)
	}
	if vars["max_error_count"] == "0" {
		l.log.Warn("max_error_count is 0: the server tells of rows that it left out, but not of values that it bent to fit")
	}
	if err := l.server.fits(l.target.Scheme); err != nil {
		return err
	}
	if l.method.Name == pipeline && l.server.flavour != singleStore {
		return &loader.Error{Op: "probe", Applied: loader.No,
			Err:  fmt.Errorf("method %s is SingleStore's, and the server is %s %s", pipeline, l.server.flavour, l.server.version),
			Hint: "take --method " + loadData}
	}
	return nil
}

// refineCaps takes the table into account, if it is there: not every engine can roll back.
func (l *opened) refineCaps(ctx context.Context) error {
	l.caps = l.server.caps(l.method)
	c, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	found, err := l.look(ctx, c)
	if err != nil || found == nil || found.Traits[traitTransactional] == "YES" {
		return err
	}
	l.caps.Dedup, l.caps.Atomic = loader.DedupNone, false
	l.caps.Reason = fmt.Sprintf("engine %s of table %s keeps rows after a rollback", found.Traits[traitEngine], l.name)
	if found.Kind != "" { // of which nobody knows what is behind it
		l.caps.Reason = fmt.Sprintf("%s is a %s", l.name, found.Kind)
	}
	return nil
}

// Server tells what was found.
func (l *opened) Server() loader.Server {
	settings := l.server.durability()
	for _, s := range l.target.Settings {
		settings[s.Name] = s.Value
	}
	return loader.Server{
		Product:  string(l.server.flavour),
		Version:  l.server.vars["version"],
		Endpoint: l.home.address,
		Settings: settings,
	}
}

// Caps are those of the method on this server and table.
func (l *opened) Caps() loader.Caps { return l.caps }

// Close lets other runs have the table and closes the control connections.
func (l *opened) Close() error {
	l.release()
	return l.control.Close()
}

// Prepare keeps other runs off the table before anything is dropped.
func (l *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	// Not in Open: CheckServer is to name this among everything else that is wrong.
	if l.method.Name == loadData && l.server.infileOff() {
		return loader.Table{}, &loader.Error{
			Op: "probe", Applied: loader.No, Hint: localInfileHint,
			Err: fmt.Errorf("local_infile is OFF on this %s, so it refuses LOAD DATA LOCAL", l.server.flavour),
		}
	}
	if !p.Silent {
		if err := l.hold(ctx, p); err != nil {
			return loader.Table{}, err
		}
	}
	t, err := l.Table.Prepare(ctx, p)
	if err != nil {
		return t, err
	}
	t.Name = l.name.String() // with the database also where the server was not asked
	if s, err := l.State(); err == nil && p.Contract.Dedup == loader.DedupTx {
		l.signHold(ctx, s.Statements, p.Run)
	}
	return t, nil
}

// Probe implements loader.Prober.
func (l *opened) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (loader.Proof, error) {
	return l.ClaimedTable.Probe(ctx, loader.RefOf(b), func(ctx context.Context) (sqlload.Session, sqlload.Send, error) {
		s, err := l.open(ctx, c)
		return s, func(ctx context.Context) (int64, []string, error) { return s.Rows(ctx, b) }, err
	})
}
