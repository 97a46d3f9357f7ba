package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// database is the loader.Loader of one table.
type database struct {
	target    loader.Target
	method    loader.Method
	endpoints []endpoint
	log       *slog.Logger

	server server
	caps   loader.Caps
	name   tableName
	schema atomic.Pointer[statements] // nil before Prepare, which brings the schema

	// control is for everything but loading. It goes to one host, the first that answered: SingleStore takes DDL on the
	// master aggregator only, and reads there see what was written through the others.
	control *sql.DB
	home    endpoint // where control goes

	held    *sql.Conn     // keeps other runs off the table; nil if it does not
	heldFor string        // the run whose row in the claim table says so; "" without one
	turn    atomic.Uint64 // sessions opened so far: whose host is next
}

// Open connects to the first host that answers and finds out what is there.
func (Driver) Open(ctx context.Context, t loader.Target, d loader.Deps) (loader.Loader, error) {
	method, found := loader.FindMethod(New(), t.Method)
	if !found {
		return nil, fmt.Errorf("mysql: method %q does not exist", t.Method)
	}
	t, err := complete(t)
	if err != nil {
		return nil, err
	}
	name, err := targetTable(t)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkSettings(t.Settings), checkVia(t, method)); err != nil {
		return nil, err
	}
	all, err := endpoints(t, d)
	if err != nil {
		return nil, err
	}
	db := &database{target: t, method: method, endpoints: all, log: d.Log, name: name}
	var vars map[string]string
	err = loader.FirstOf(ctx, all, 0, func(ctx context.Context, e endpoint) (err error) {
		db.home = e
		vars, err = variables(ctx, e, t.Settings)
		return loader.ConnectError(e.address, err, faultOf)
	})
	if err != nil {
		return nil, err
	}
	if err := db.recognise(vars); err != nil {
		return nil, err
	}
	db.control = sql.OpenDB(connector{db.home.config, db.server.flavour.controlSetup(t.Settings)})
	db.control.SetMaxOpenConns(controlConns)
	if err := db.refineCaps(ctx); err != nil {
		_ = db.control.Close()
		return nil, failed("probe", err)
	}
	if method.Caps.Staged {
		return openPipelines(ctx, db, d)
	}
	return db, nil
}

// controlConns bounds the connections beside those of the workers. A scan that proves arrival takes one for its whole
// time, and Resolve must not wait for it.
const controlConns = 4

// variables asks a host for its variables. SHOW VARIABLES is the one question that all flavours and all proxies answer
// alike, and it costs one round trip.
func variables(ctx context.Context, e endpoint, settings []loader.Setting) (map[string]string, error) {
	pool := sql.OpenDB(connector{e.config, sessionSettings(settings)})
	defer func() { _ = pool.Close() }()
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	// The limit cuts SHOW off, too. Whether the product knows it is not known yet.
	_, _ = conn.ExecContext(ctx, "SET SESSION "+noLimit)
	rows, err := conn.QueryContext(ctx, "SHOW VARIABLES")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	vars := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		vars[name] = value
	}
	return vars, rows.Err()
}

// recognise tells the product by its variables.
func (db *database) recognise(vars map[string]string) error {
	db.server = probed(vars)
	db.warn()
	if err := db.server.fits(db.target.Scheme); err != nil {
		return err
	}
	if db.method.Name == pipeline && db.server.flavour != singleStore {
		return &loader.Error{Op: "probe", Applied: loader.No,
			Err:  fmt.Errorf("method %s is SingleStore's, and the server is %s %s", pipeline, db.server.flavour, db.server.version),
			Hint: "take --method " + loadData}
	}
	return nil
}

// warn tells of settings that are allowed, and probably not what anybody wants.
func (db *database) warn() {
	if db.server.flavour.locksEmptyTable(db.target.Settings) {
		db.log.Warn(SettingsHelp)
	}
	if db.server.vars["max_error_count"] == "0" {
		db.log.Warn("max_error_count is 0: the server tells of rows that it left out, but not of values that it bent to fit")
	}
}

// refineCaps takes the table into account, if it is there: not every engine can roll back.
func (db *database) refineCaps(ctx context.Context) error {
	db.caps = db.server.caps(db.method)
	found, err := db.inspect(ctx)
	if err != nil || found == nil || found.transactional {
		return err
	}
	db.caps.Dedup, db.caps.Atomic = loader.DedupNone, false
	db.caps.Reason = fmt.Sprintf("engine %s of table %s keeps rows after a rollback", found.engine, db.name)
	return nil
}

// Server tells what was found.
func (db *database) Server() loader.Server {
	settings := db.server.durability()
	for _, s := range db.target.Settings {
		settings[s.Name] = s.Value
	}
	return loader.Server{
		Product:  string(db.server.flavour),
		Version:  db.server.vars["version"],
		Endpoint: db.home.address,
		Settings: settings,
	}
}

// Caps are those of the method on this server and table.
func (db *database) Caps() loader.Caps { return db.caps }

// Close lets other runs have the table and closes the control connections.
func (db *database) Close() error {
	db.release()
	return db.control.Close()
}

// prepared gives the statements, which need the schema that Prepare brings.
func (db *database) prepared() (statements, error) {
	s := db.schema.Load()
	if s == nil {
		return statements{}, errors.New("mysql: Prepare comes first")
	}
	return *s, nil
}

// loadingConfig is an endpoint's configuration for sessions that load. Where all servers behind its name can do without
// each other they are taken in turn.
func (e endpoint) loadingConfig(f flavour) *mysql.Config {
	c := e.config.Clone()
	c.DialFunc = coalesced(e.config.DialFunc)
	if f.alike() {
		c.DialFunc = coalesced(e.dialAny)
	}
	c.InterpolateParams = false
	// The driver's own bound. The server's is in Caps.MaxBytes.
	c.MaxAllowedPacket = math.MaxInt32
	return c
}

// connectPatience bounds one attempt to connect, for servers that accept and then say nothing.
const connectPatience = 10 * time.Second

// connector makes connections that have said their setup statements. It exists because the driver's Config can set
// variables only in random order and in one statement, whose failure then names none of them.
type connector struct {
	config *mysql.Config
	setup  []string
}

// Connect connects. The driver's connector is made anew each time: it switches TLS off in its own configuration when
// the server has none, which would be a data race between two connections.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	inner, err := mysql.NewConnector(c.config)
	if err != nil {
		return nil, err
	}
	conn, err := inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range c.setup {
		if _, err := conn.(driver.ExecerContext).ExecContext(ctx, s, nil); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("%s: %w", s, err)
		}
	}
	return conn, nil
}

// Driver is part of driver.Connector.
func (connector) Driver() driver.Driver { return mysql.MySQLDriver{} }

// tag goes in front of a batch's statements, so that a process list shows who they belong to, and Resolve finds
// sessions that a process left behind which is gone.
func tag(id batch.ID) string {
	return fmt.Sprintf("/* terapush run=%s batch=%d */ ", id.Run, id.Number)
}
