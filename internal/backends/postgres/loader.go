package postgres

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// adminName is the application_name of connections that load nothing. Sessions carry the run's id behind it.
const adminName = "terapush"

// connectPatience bounds one attempt to connect, for servers that accept and then say nothing.
const connectPatience = 10 * time.Second

// opened is the back-end on one table. It keeps no connection of its own but the one that holds the table: what it does
// besides loading is rare, and a connection made for it cannot be a dead one.
type opened struct {
	sqlload.ClaimedTable
	access
	method  string
	options options
	flavour flavour
	server  loader.Server
	hosts   []endpoint

	next atomic.Int64 // counts sessions, to take the hosts in turn

	mu       sync.Mutex
	sessions map[*session]struct{} // whose connection still stands, as far as we know
	held     *pgconn.PgConn        // keeps other runs off the table; nil if it does not
}

// Open connects once and asks what is there.
func (driver) Open(ctx context.Context, t loader.Target, d loader.Deps) (loader.Loader, error) {
	method, o, err := planOf(t)
	if err != nil {
		return nil, err
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	l := &opened{access: access{target: t, deps: d, setup: sessionSettings(t.Settings)}, method: method, options: o, sessions: make(map[*session]struct{})}
	l.Table = &sqlload.Table{
		Name: t.Table, Catalog: catalog{l}, Claims: catalog{l}, Connect: l.control, Failed: failed, Classify: driver{}.Classify,
	}
	if l.hosts, err = l.endpoints(); err != nil {
		return nil, err
	}
	err = l.somewhere(ctx, func(c *pgconn.PgConn, e endpoint) error {
		if l.flavour, l.server, err = detect(ctx, c, t.Settings); err != nil {
			return err
		}
		l.setup = l.flavour.sessionSetup(t)
		l.server.Endpoint = e.String()
		if err := checkFlavour(t, method, o, l.flavour, l.server); err != nil {
			return err
		}
		if l.flavour == yugabyteDB {
			nodes, err := yugabyteNodes(ctx, l.access, c, l.hosts)
			l.hosts = append(l.hosts, nodes...)
			return err
		}
		if l.method == methodImport {
			return hasImport(ctx, c)
		}
		return nil
	})
	if err != nil || !l.Caps().Staged {
		return l, err
	}
	return openStaged(ctx, l)
}

// tablePersistence is the setting that reports whether a crash empties the table: it may be unlogged although no option
// said so.
const tablePersistence = "table_persistence"

// Server tells what was found, and behind Prepare how durable the table is.
func (l *opened) Server() loader.Server {
	s := l.server
	s.Settings = maps.Clone(s.Settings)
	if st, err := l.State(); err == nil && st.Relation != nil && l.flavour != redshift {
		s.Settings[tablePersistence] = durability(st.Relation.Traits[traitPersistence] == "u")
	}
	return s
}

func (l *opened) Caps() loader.Caps { return capsOf(l.method, l.options) }

// Close lets other runs have the table. All other connections belong to sessions.
func (l *opened) Close() error {
	l.release()
	return nil
}

// release gives the table back at once: after a connection has ended the server takes its time.
func (l *opened) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = exec(ctx, l.held, "ROLLBACK")
	_ = closeConn(l.held)
	l.held = nil
}

// somewhere runs f on a connection to the first host that answers.
func (l *opened) somewhere(ctx context.Context, f func(*pgconn.PgConn, endpoint) error) error {
	c, e, err := l.dialAny(ctx, 0, nil)
	if err != nil {
		return err
	}
	defer func() { _ = closeConn(c) }()
	return f(c, e)
}

// dialAny connects to the first host that answers, from the one numbered first on. What a host is may change while a run
// goes, so those that target_session_attrs refuses are asked again each time.
func (l *opened) dialAny(ctx context.Context, first int, notice pgconn.NoticeHandler) (c *pgconn.PgConn, at endpoint, err error) {
	err = loader.FirstOf(ctx, l.hosts, first, func(ctx context.Context, e endpoint) (err error) {
		at = e
		c, err = l.dial(ctx, e, adminName, notice)
		return err
	})
	return c, at, err
}

// dial is connect with patience.
func (l *opened) dial(ctx context.Context, e endpoint, name string, notice pgconn.NoticeHandler) (*pgconn.PgConn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	return l.connect(ctx, e, name, notice)
}

// control opens a connection for all but the rows.
func (l *opened) control(ctx context.Context) (sqlload.Conn, error) {
	c, _, err := l.dialAny(ctx, 0, nil)
	if err != nil {
		return nil, err
	}
	return conn{c}, nil
}

// Prepare keeps other runs off the table before anything is dropped.
func (l *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	if !p.Silent {
		if err := l.hold(ctx, l.Plan(p).Table, p); err != nil {
			return loader.Table{}, err
		}
	}
	return l.Table.Prepare(ctx, p)
}

// Probe implements loader.Prober.
func (l *opened) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (loader.Proof, error) {
	return l.ClaimedTable.Probe(ctx, loader.RefOf(b), func(ctx context.Context) (sqlload.Session, sqlload.Send, error) {
		s, err := l.open(ctx, c)
		return s, func(ctx context.Context) (int64, []string, error) { return s.Rows(ctx, b) }, err
	})
}
