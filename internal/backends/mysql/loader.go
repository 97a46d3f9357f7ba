package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// opened is the back-end on one table.
type opened struct {
	sqlload.ClaimedTable
	target  loader.Target
	method  loader.Method
	options options
	name    tableName
	hosts   loader.Hosts[endpoint]
	log     *slog.Logger

	server server
	caps   loader.Caps

	// control is for everything but loading. It goes to one host, the first that answered: SingleStore takes DDL only
	// on the master aggregator, and reads there see what was written through the others.
	control *sql.DB
	home    endpoint // of control

	openConn func(context.Context, *mysql.Config) (driver.Conn, error) // of Explain; nil: the driver's
}

// Open connects to the first host that answers and reads its variables, and the table if there is one.
func (Driver) Open(ctx context.Context, t loader.Target, d loader.Deps) (loader.Loader, error) {
	t, err := complete(t)
	if err != nil {
		return nil, err
	}
	if _, _, err := planOf(t); err != nil {
		return nil, err
	}
	l := unconnected(t, d.Log)
	if l.hosts.List, err = endpoints(t, d); err != nil {
		return nil, err
	}
	var vars map[string]string
	err = l.hosts.From(ctx, 0, func(ctx context.Context, e endpoint) (err error) {
		l.home = e
		return e.reach(ctx, d, func(ctx context.Context) error {
			vars, err = variables(ctx, e, t.Settings, d.Log)
			return loader.ConnectError(e.config.Addr, err, faultOf)
		})
	})
	if err != nil {
		return nil, err
	}
	l.server = identify(vars)
	l.logWarnings()
	if err := l.server.check(t.Scheme, t.Method); err != nil {
		return nil, err
	}
	l.control = sql.OpenDB(l.connector(l.home.config, l.server.flavour.controlSetup(t.Settings)))
	l.control.SetMaxOpenConns(controlConns)
	l.Connect, l.Others = l.connect, l.others
	l.Lookups = lookups[l.server.flavour]
	switch l.server.flavour {
	case mariaDB:
		l.Effects, l.Behind = l.effects, l.behind
	case mySQL:
		l.Effects = l.effects
	}
	if packet, err := strconv.ParseInt(vars["max_allowed_packet"], 10, 64); err == nil {
		l.MaxStatement = packet - 1 // the packet holds the command's byte, too
	}
	if err := l.findCaps(ctx); err != nil {
		_ = l.control.Close()
		return nil, failed("probe", err)
	}
	if l.method.Caps.Staged {
		return openStaged(ctx, l, d)
	}
	return l, nil
}

// unconnected makes the loader without connecting.
func unconnected(t loader.Target, log *slog.Logger) *opened {
	l := &opened{target: t, log: log}
	l.method, l.options, _ = planOf(t) // Check returns the error
	l.name, _ = targetTable(t)
	l.Table = &sqlload.Table{
		Name: l.name.table, Catalog: catalog{l}, Claims: catalog{l}, Split: l.split, Indexed: l.indexed,
		Failed: failed, Classify: Driver{}.Classify, SQLState: mysqlconn.SQLState, Log: log,
	}
	l.Open = func(ctx context.Context, c loader.Contract) (sqlload.Session, error) { return l.open(ctx, c) }
	return l
}

// others implements sqlload.Table.Others.
func (l *opened) others() (all []sqlload.Other) {
	for _, e := range l.hosts.List {
		if e.config.Addr == l.home.config.Addr {
			continue
		}
		connect := func(ctx context.Context) (sqlload.Conn, error) {
			return l.connector(e.config, l.server.flavour.controlSetup(l.target.Settings)).Dial(ctx)
		}
		all = append(all, sqlload.Other{Host: e.config.Addr, Connect: connect})
	}
	return all
}

// askFreely lifts the limits under which SHOW VARIABLES is refused, ended or cut off, before the flavour is known:
// MariaDB alone reads the first comment, and MySQL, from 5.7.8 on, and those like it the second one.
var askFreely = []string{
	noLimit, "sql_big_selects = 1 /*M! , max_statement_time = 0 */ /*!50708 , max_execution_time = 0 */",
}

// variables reads a host's variables: a question that all flavours and proxies answer alike.
func variables(
	ctx context.Context, e endpoint, settings []loader.Setting, log *slog.Logger,
) (map[string]string, error) {
	c, err := connector(e.config, setup{askFreely, sessionSettings(settings)}, log).Dial(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	found, err := sqlload.Rows(ctx, c, "SHOW VARIABLES")
	vars := make(map[string]string, len(found))
	for _, row := range found {
		vars[row[0]] = row[1]
	}
	return vars, err
}

// identify finds flavour and version. SingleStore's version says 5.7.32 and nothing else; TiDB's is 8.0.11-TiDB-v7.5.0
// and OceanBase's 5.7.25-OceanBase-v4.2.1.0, 5.7.25-OceanBase_CE-v4.2.1.0 or 5.7.25-OceanBase seekdb-v1.4.0.0, of which
// only the end is their own.
func identify(vars map[string]string) server {
	version := vars["version"]
	if own, found := vars["memsql_version"]; found {
		return server{singleStore, own, vars}
	}
	if _, own, found := strings.Cut(version, "-TiDB-"); found {
		return server{tiDB, own, vars}
	}
	if _, own, found := strings.Cut(version, "-OceanBase"); found {
		return server{oceanBase, strings.TrimLeft(own, "-_ "), vars}
	}
	if strings.Contains(version, "MariaDB") || strings.Contains(strings.ToLower(vars["version_comment"]), "mariadb") {
		return server{mariaDB, version, vars}
	}
	return server{mySQL, version, vars}
}

// logWarnings logs settings that are allowed and probably not wanted.
func (l *opened) logWarnings() {
	if l.server.flavour.locksEmptyTable(l.target.Settings) {
		l.log.Warn(uncheckedHelp)
	}
	if l.server.vars["max_error_count"] == "0" {
		l.log.Warn("max_error_count is 0: the server reports rows that it skipped, but not values that it changed to fit")
	}
}

// findCaps restricts the method to what server and table can do: not every engine can roll back.
func (l *opened) findCaps(ctx context.Context) error {
	l.caps = l.server.caps(l.method)
	c, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	r, err := l.relation(ctx, c)
	if err != nil || r == nil || r.Traits[traitTransactional] == "YES" {
		return err
	}
	l.caps.Dedup, l.caps.Atomic = loader.DedupNone, false
	l.caps.Reason = fmt.Sprintf("engine %s of table %s keeps rows after a rollback", r.Traits[traitEngine], l.name)
	if r.Kind != "" {
		l.caps.Reason = fmt.Sprintf("%s is a %s", l.name, r.Kind)
	}
	return nil
}

// Server implements loader.Loader.
func (l *opened) Server() loader.Server {
	settings := l.server.settings()
	loader.ApplySettings(settings, l.target.Settings)
	return loader.Server{
		Product: string(l.server.flavour), Version: l.server.vars["version"], Endpoint: l.home.config.Addr, Settings: settings,
	}
}

// Caps are those of the method on this server and table.
func (l *opened) Caps() loader.Caps { return l.caps }

// Close closes the control connections.
func (l *opened) Close() error { return l.control.Close() }

// refuses returns why rows of a schema would not arrive as they are.
func (l *opened) refuses(s rows.Schema) error {
	zone := slices.ContainsFunc(l.target.Settings, func(o loader.Setting) bool { return strings.EqualFold(o.Name, "time_zone") })
	if zone && hasMoments(s) {
		return sqlload.Refuse("leave --set time_zone out", "moments are sent in UTC, and --set time_zone would move them")
	}
	for _, last := range s.Columns[max(len(s.Columns)-1, 0):] {
		if l.losesEmpty() && last.Nullable && last.Type.Variable() {
			return l.lastIsNull(last)
		}
	}
	return nil
}

func hasMoments(s rows.Schema) bool {
	return slices.ContainsFunc(s.Columns, func(c rows.Column) bool { return c.Type == rows.TimestampTZ })
}

// losesEmpty reports whether an empty text at the end of a line becomes a NULL: in LOAD DATA of OceanBase (seekdb
// 1.4.0), if the column takes one.
func (l *opened) losesEmpty() bool {
	return l.server.flavour == oceanBase && l.method.Name == methodLoadData
}

func (l *opened) lastIsNull(last rows.Column) error {
	return sqlload.Refuse("put another column last, make it NOT NULL, or take --method insert",
		"LOAD DATA of OceanBase reads an empty value at the end of a line as NULL, and the last column, %s, may hold both",
		last.Name)
}

// hidesWarnings reports whether a setting keeps the warnings of LOAD DATA, or its notes, from the client.
func hidesWarnings(s loader.Setting) bool {
	value := strings.ToLower(strings.TrimSpace(s.Value))
	n, err := strconv.Atoi(value)
	off := err == nil && n <= 0 || value == "off"
	return off && (strings.EqualFold(s.Name, "max_error_count") || strings.EqualFold(s.Name, "sql_notes"))
}

// Prepare refuses what the method cannot do on this server.
func (l *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	// Not in Open: CheckServer names this among everything else that is wrong.
	if l.method.Name == methodLoadData && l.server.infileOff() {
		return loader.Table{}, &loader.Error{
			Op: "probe", Applied: loader.No, Hint: localInfileHint,
			Err: fmt.Errorf("local_infile is OFF on this %s, so it refuses LOAD DATA LOCAL", l.server.flavour),
		}
	}
	if l.method.Name == methodPipeline && p.Shard != "" && p.Shard != "0/1" {
		return loader.Table{}, loader.Final(&loader.Error{
			Op: "prepare", Applied: loader.No, Hint: "leave --shard out, or choose load-data",
			Err: fmt.Errorf("run %s has one pipeline, and its shards would stop it for one another", p.Run),
		})
	}
	if err := l.refuses(p.Schema); err != nil {
		return loader.Table{}, err
	}
	if p.Records && slices.ContainsFunc(l.target.Settings, hidesWarnings) {
		return loader.Table{}, sqlload.Refuse("leave it out",
			"with --set max_error_count=0 or sql_notes=0 the server would change values that do not fit, and not say so")
	}
	t, err := l.Table.Prepare(ctx, p)
	if err != nil {
		return t, err
	}
	t.Name = l.name.String() // with the database even where the server was not asked
	return t, nil
}
