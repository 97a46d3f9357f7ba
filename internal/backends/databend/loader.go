package databend

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// opened is the back-end on one table.
type opened struct {
	*sqlload.Table
	plan    plan
	clients *clients
	hosts   []*node
	grace   time.Duration // killGrace, or less in tests
	log     *slog.Logger

	server loader.Server
	caps   loader.Caps
	store  *objstore.Store // nil without --via
	labels labels
	files  files // where batches are stored; nil before Prepare, and unless the contract is staged

	sessions atomic.Uint64 // how many were opened: whose host is next
	moved    atomic.Uint64 // how often control went on to the next host
}

// Open asks the first host what it is, and whether it takes what the method will send.
func (d Driver) Open(ctx context.Context, t loader.Target, deps loader.Deps) (loader.Loader, error) {
	p, err := planOf(t)
	if err != nil {
		return nil, err
	}
	l := &opened{
		plan: p, clients: &clients{deps: deps, mode: p.tls}, grace: cmp.Or(d.grace, killGrace),
		log: deps.Log, caps: p.method.Caps,
	}
	l.Table = &sqlload.Table{
		Name: p.name.table, Catalog: catalog{l}, Connect: l.control(statement{}), Failed: failedBefore,
		Classify: func(err error) loader.Verdict { // of a statement that no host has answered
			v := verdict(err)
			v.SessionDead = v.SessionDead || unreachable(err)
			return v
		},
	}
	if err := l.open(ctx, t, deps); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func (l *opened) open(ctx context.Context, t loader.Target, deps loader.Deps) (err error) {
	if l.hosts, err = l.clients.nodes(ctx, t); err != nil {
		return err
	}
	if err := l.probeServer(ctx, t); err != nil {
		return loader.ConnectError(l.host().address, err, faultOf)
	}
	if err := l.probeMethod(ctx); err != nil {
		return failedBefore("try "+l.plan.method.Name, err)
	}
	if t.Via != nil {
		l.store, err = objstore.Open(ctx, *t.Via, deps)
	}
	return err
}

// What decides speed, beside max_running_queries, which is a node's configuration and no setting.
const (
	selectSettings = "SELECT name, value FROM system.settings WHERE name IN ('input_read_buffer_size', " +
		"'load_file_metadata_expire_hours', 'max_threads', 'statement_queued_timeout_in_seconds')"
	selectRunning = "SELECT value FROM system.configs WHERE `group` = 'query' AND name = 'max_running_queries'"
)

// probeServer reads version and settings.
func (l *opened) probeServer(ctx context.Context, t loader.Target) error {
	version, err := l.value(ctx, "SELECT version()")
	if err != nil {
		return err
	}
	l.server = loader.Server{
		Product: "Databend", Version: strings.TrimPrefix(version, "Databend Query "), Endpoint: l.host().address,
	}
	if l.server.Settings, err = l.settings(ctx, selectSettings); err != nil {
		return err
	}
	for _, s := range t.Settings {
		l.server.Settings[s.Name] = s.Value
	}
	if !l.caps.Staged { // uploads take no slot of the query queue
		l.caps.MaxInFlight = len(l.hosts) * l.maxRunning(ctx)
	}
	return nil
}

// settings reads pairs of name and value.
func (l *opened) settings(ctx context.Context, query string) (map[string]string, error) {
	found, err := l.rows(ctx, query)
	all := make(map[string]string, len(found))
	for _, row := range found {
		all[row[0]] = row[1]
	}
	return all, err
}

// maxRunning is max_running_queries, how many queries a node runs at a time; 0 is no bound. Not everybody may read
// configurations, and hosted servers hide them: then no bound is known either, since behind a balancer may be any
// number of nodes.
func (l *opened) maxRunning(ctx context.Context) int {
	text, err := l.value(ctx, selectRunning)
	n, notANumber := strconv.Atoi(text)
	if err != nil || notANumber != nil || n < 0 {
		return 0
	}
	l.server.Settings["max_running_queries"] = text
	return n
}

// probeMethod finds out before anything is made whether the server takes what the method sends.
func (l *opened) probeMethod(ctx context.Context) error {
	switch {
	case l.plan.method.Name == streamingLoad:
		return l.probeStreaming(ctx)
	case l.plan.method.Name == insert:
		return l.probePresign(ctx)
	case l.plan.stage != userStage:
		return l.exec(ctx, "DESC STAGE "+l.plan.stage)
	}
	return nil
}

// Server returns what was found.
func (l *opened) Server() loader.Server {
	s := l.server
	s.Settings = maps.Clone(s.Settings)
	return s
}

// Caps are those of the method on this server.
func (l *opened) Caps() loader.Caps { return l.caps }

// Close drops the stage of a run, if there is one, and closes the idle connections.
func (l *opened) Close() error {
	var err error
	if l.files != nil {
		err = l.files.close()
	}
	if l.store != nil {
		err = errors.Join(err, l.store.Close())
	}
	l.clients.close()
	return err
}

// Prepare makes the table, or checks the one that is there, and for a staged contract the stage. What needs privileges
// comes before anything is made or dropped.
//
// Databend has no primary keys and needs no claim table: Preparation.PrimaryKey means nothing here.
func (l *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	l.files = nil
	if p.Contract.Staged() {
		l.files = l.filesOf(p)
	}
	if !p.Silent {
		if err := l.tryProcesses(ctx, p); err != nil {
			return loader.Table{}, err
		}
		if l.files != nil {
			if _, err := l.files.stage(ctx); err != nil {
				return loader.Table{}, failedBefore("make the stage", err)
			}
		}
	}
	t, err := l.Table.Prepare(ctx, p)
	if p.Silent {
		t.Name = l.plan.name.String()
	}
	return t, err
}

// tryProcesses asks once for what a lost answer makes necessary later, when it is too late to find out that the right
// to it is missing.
func (l *opened) tryProcesses(ctx context.Context, p loader.Preparation) error {
	if p.Contract.Dedup != loader.DedupKey {
		return nil
	}
	err := l.exec(ctx, selectAtWork(queryIDs(ofBatch, batch.ID{Run: p.Run}, 1)))
	if err == nil {
		return nil
	}
	return &loader.Error{Op: "look at the list of processes", Applied: loader.No, Err: err,
		Hint: "before a batch is sent again its earlier queries are looked for in system.processes: " +
			"allow the user to read it, or take --delivery at-least-once"}
}
