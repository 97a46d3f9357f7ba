package postgres

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// opened is the back-end on one table.
type opened struct {
	sqlload.ClaimedTable
	access
	method  string
	options options
	flavour flavour
	ahead   bool // see takesAhead
	server  loader.Server
	hosts   loader.Hosts[endpoint]
	spare   spare

	join func(ctx context.Context, s *session) error // connects a session: dialSession, or of Explain

	mu       sync.Mutex
	sessions map[*session]struct{} // whose connections are not known to be broken
}

// Open connects once and detects the product.
func (Driver) Open(ctx context.Context, t loader.Target, d loader.Deps) (loader.Loader, error) {
	method, o, err := planOf(t)
	if err != nil {
		return nil, err
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	l := unconnected(t, d, method, o)
	l.Connect = l.connectToAsk
	l.Others, l.join = l.others, l.dialSession
	if l.hosts.List, err = l.endpoints(); err != nil {
		return nil, err
	}
	err = l.somewhere(ctx, func(c *pgconn.PgConn, e endpoint) error {
		if l.flavour, l.server, err = identify(ctx, c, t.Settings); err != nil {
			return err
		}
		l.known = true
		l.ahead = takesAhead[l.flavour] && l.server.Product == productPostgreSQL
		l.setup = l.flavour.sessionSetup(t)
		if l.flavour != redshift { // which has neither triggers nor sequences that can be moved
			l.Effects, l.Behind, l.Lookups = l.effects, l.behind, &lookups
		}
		l.server.Endpoint = e.String()
		if err := checkFlavour(t, method, o, l.flavour, l.server); err != nil {
			return err
		}
		if l.flavour == yugabyteDB {
			nodes, err := yugabyteNodes(ctx, l.access, c, l.hosts.List)
			l.hosts.List = append(l.hosts.List, nodes...)
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !l.Caps().Staged {
		return l, nil
	}
	return openStaged(ctx, l)
}

// connectToAsk returns a connection for all but the rows.
func (l *opened) connectToAsk(ctx context.Context) (sqlload.Conn, error) {
	if c := l.spare.take(ctx); c != nil {
		return conn{c, &l.spare}, nil
	}
	c, _, err := l.dial(ctx, 0, nil)
	if err == nil && l.flavour == postgreSQL {
		return conn{c, &l.spare}, nil
	}
	if err != nil || !l.shortensDoubles() {
		return conn{PgConn: c}, err
	}

	if _, err := rowsOf(ctx, c, "SET extra_float_digits TO 2"); err != nil { // 17 digits
		_ = closeConn(c)
		return nil, err
	}
	return conn{PgConn: c}, nil
}

// shortensDoubles reports whether the prepared table has doubles, and the server shows 15 digits of them, which is not
// always the same number. Redshift has no function that shows their bits.
func (l *opened) shortensDoubles() bool {
	s, err := l.State()
	return err == nil && l.flavour == redshift &&
		slices.ContainsFunc(s.Schema.Columns, func(c rows.Column) bool { return c.Type == rows.Float64 })
}

// unconnected makes the loader without connecting.
func unconnected(t loader.Target, d loader.Deps, method string, o options) *opened {
	l := &opened{
		access: access{target: t, deps: d, setup: endless + sessionSettings(t.Settings)}, method: method, options: o,
		sessions: make(map[*session]struct{}),
	}
	l.Table = &sqlload.Table{
		Name: t.Table, Catalog: catalog{l}, Claims: catalog{l}, Split: l.split, Indexed: l.indexed,
		Failed: failed, Classify: Driver{}.Classify, Log: d.Log,
	}
	l.Open = func(ctx context.Context, c loader.Contract) (sqlload.Session, error) { return l.open(ctx, c) }
	return l
}

// identify returns product, version and settings of the server.
func identify(ctx context.Context, c *pgconn.PgConn, settings []loader.Setting) (flavour, loader.Server, error) {
	version, err := rowsOf(ctx, c, "SELECT version()")
	if err != nil {
		return 0, loader.Server{}, failed("ask for the version", err)
	}
	text := version[0][0]
	product, _, _ := strings.Cut(text, " ")
	s := loader.Server{Product: product, Version: c.ParameterStatus("server_version"), Settings: make(map[string]string)}
	f := postgreSQL
	switch {
	case strings.Contains(text, "Redshift"): // "PostgreSQL 8.0.2 on …, Redshift 1.0.117891"
		_, s.Version, _ = strings.Cut(text, "Redshift ")
		s.Product = "Redshift"
		loader.ApplySettings(s.Settings, settings)
		return redshift, s, nil // its sessions cannot choose durability
	case strings.Contains(text, "-YB-"): // "PostgreSQL 15.2-YB-2024.2.0.0-b145 on …"
		f, s.Product = yugabyteDB, "YugabyteDB"
	}

	names := reportedSettings[:]
	for _, set := range settings {
		names = append(slices.Clip(names), strings.ToLower(set.Name))
	}
	found, err := rowsOf(ctx, c, "SELECT name, current_setting(name) FROM pg_settings WHERE lower(name) IN ("+
		sqlload.Literals(names)+")")
	if err != nil {
		return 0, s, failed("read the settings", err)
	}
	for _, row := range found {
		s.Settings[row[0]] = row[1]
	}
	return f, s, nil
}

// Server describes the server. After Prepare its settings say whether a crash empties the table, with or without the
// option, by the option's name: so what is made of a run says it in the same words.
func (l *opened) Server() loader.Server {
	st, err := l.State()
	if err != nil || st.Relation == nil || st.Relation.Traits[traitPersistence] != "u" {
		return l.server
	}

	s := l.server
	s.Settings = maps.Clone(s.Settings)
	s.Settings["unlogged"] = "true"
	return s
}

func (l *opened) Caps() loader.Caps { return capsOf(l.method, l.options, l.flavour) }

// Close closes the connection that is kept; all others belong to sessions.
func (l *opened) Close() error { return l.spare.drop() }

// somewhere calls f with a connection to the first host that answers.
func (l *opened) somewhere(ctx context.Context, f func(*pgconn.PgConn, endpoint) error) error {
	c, e, err := l.dial(ctx, 0, nil)
	if err != nil {
		return err
	}
	defer func() { _ = closeConn(c) }()
	return f(c, e)
}

// others implements sqlload.Table.Others. YugabyteDB's nodes have named each other.
func (l *opened) others() (all []sqlload.Other) {
	if l.flavour == yugabyteDB {
		return nil
	}
	for _, e := range l.hosts.List[1:] {
		connect := func(ctx context.Context) (sqlload.Conn, error) {
			c, err := l.connect(ctx, e, nil)
			return conn{PgConn: c}, err
		}
		all = append(all, sqlload.Other{Host: e.String(), Connect: connect, Unfit: wrongRole})
	}
	return all
}

// dial connects to the first host that answers, beginning with number first. Hosts that target_session_attrs
// refuses are tried each time: a failover may change their roles.
func (l *opened) dial(ctx context.Context, first int, notice pgconn.NoticeHandler) (c *pgconn.PgConn, at endpoint, err error) {
	err = l.hosts.From(ctx, first, func(ctx context.Context, e endpoint) (err error) {
		at = e
		c, err = l.connect(ctx, e, notice)
		return err
	})
	return c, at, err
}

// shard returns the part of the run that this process sends, "" without others.
func (l *opened) shard() string {
	s, err := l.State()
	if err != nil {
		return ""
	}
	return s.Want.Shard
}
