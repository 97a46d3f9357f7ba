package databend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// opened is the back-end on one table.
type opened struct {
	*sqlload.Table
	plan     plan
	clients  *clients
	hosts    loader.Hosts[*endpoint]
	grace    time.Duration // killGrace, or less in tests
	checking time.Duration // checkTimeout, or less in tests
	log      *slog.Logger

	server loader.Server
	caps   loader.Caps
	store  *objstore.Store // nil without --staging
	labels *labels
	files  files // of a staged contract; nil before Prepare

	began time.Time // the run, if it is a load of files
	sent  sync.Map  // when this process first sent a batch of files that is not in: time.Time by number
}

// Open connects to the first host and checks that it takes what the method sends.
func (d Driver) Open(ctx context.Context, t loader.Target, deps loader.Deps) (loader.Loader, error) {
	p, err := planOf(t)
	if err != nil {
		return nil, err
	}
	l := d.unconnected(p, deps)
	if err := l.open(ctx, t, deps); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// unconnected makes the loader without connecting.
func (d Driver) unconnected(p plan, deps loader.Deps) *opened {
	l := &opened{
		plan: p, clients: &clients{deps: deps, mode: p.tls}, grace: cmp.Or(d.grace, killGrace), checking: checkTimeout,
		log: deps.Log, caps: p.method.Caps, labels: newLabels(),
	}
	l.hosts.Another = unreachable
	l.Table = &sqlload.Table{
		Name: p.name.table, Catalog: catalog{l}, Connect: l.connect(statement{}), Failed: failedBefore,
		Lookups: &lookups,
		Classify: func(err error) loader.Verdict {
			v := verdict(err)
			v.SessionDead = v.SessionDead || unreachable(err) // no host could be reached
			return v
		},
	}
	return l
}

func (l *opened) open(ctx context.Context, t loader.Target, deps loader.Deps) (err error) {
	if l.hosts.List, err = l.clients.endpoints(ctx, t); err != nil {
		return err
	}
	probe := func(ctx context.Context) error {
		if err := l.identify(ctx, t); err != nil {
			return loader.ConnectError(l.hosts.Current().address, err, faultOf)
		}
		return nil
	}
	answered := func(err error) bool { return errors.As(err, new(*serverError)) }
	if strings.HasPrefix(l.hosts.Current().base, "https:") {
		err = probe(ctx)
	} else {
		err = netio.Reach(ctx, deps.Dial, l.hosts.Current().address, netio.HTTP, answered, probe)
	}
	if err != nil {
		return err
	}
	if err := l.probeMethod(ctx); err != nil {
		return failedBefore("try "+l.plan.method.Name, err)
	}
	if t.Via != nil {
		l.store, err = objstore.Open(ctx, *t.Via, deps)
	}
	return err
}

// The settings that decide speed. max_running_queries is in a node's configuration.
const (
	selectSettings = "SELECT name, value FROM system.settings WHERE name IN ('input_read_buffer_size', " +
		"'load_file_metadata_expire_hours', 'max_threads', 'statement_queued_timeout_in_seconds')"
	selectMaxRunning = "SELECT value FROM system.configs WHERE `group` = 'query' AND name = 'max_running_queries'"
)

// identify reads version and settings.
func (l *opened) identify(ctx context.Context, t loader.Target) error {
	version, err := l.rows(ctx, "SELECT version()")
	if err != nil {
		return err
	}
	if len(version) != 1 {
		return errors.New("the answer to SELECT version() has no row: is this Databend?")
	}
	l.server = loader.Server{
		Product: "Databend", Version: strings.TrimPrefix(version[0][0], "Databend Query "),
		Endpoint: l.hosts.Current().address,
		Settings: make(map[string]string),
	}
	settings, err := l.rows(ctx, selectSettings)
	if err != nil {
		return err
	}
	for _, row := range settings {
		l.server.Settings[row[0]] = row[1]
	}
	loader.ApplySettings(l.server.Settings, t.Settings)
	if l.caps.Staged { // uploads take no slot of the query queue
		return nil
	}
	// Not every user may read configurations, and hosted servers hide them. Then no limit is assumed: behind a balancer
	// may be any number of nodes. 0 is unlimited.
	if found, err := l.rows(ctx, selectMaxRunning); err == nil && len(found) == 1 {
		if n, err := strconv.Atoi(found[0][0]); err == nil && n >= 0 {
			l.server.Settings["max_running_queries"] = found[0][0]
			l.caps.MaxInFlight = len(l.hosts.List) * n
		}
	}
	return nil
}

// probeMethod checks before anything is created that the server takes what the method sends.
func (l *opened) probeMethod(ctx context.Context) error {
	switch {
	case l.plan.method.Name == methodStreamingLoad:
		return l.probeStreaming(ctx)
	case l.plan.method.Name == methodInsert:
		return l.probePresign(ctx)
	case l.plan.Stage != userStage:
		return l.exec(ctx, "DESC STAGE "+l.plan.Stage)
	}
	return nil
}

// Server returns version and settings of the server.
func (l *opened) Server() loader.Server {
	s := l.server
	s.Settings = maps.Clone(s.Settings)
	return s
}

// Caps are those of the method on this server.
func (l *opened) Caps() loader.Caps { return l.caps }

// Close drops the run's stage and closes the idle connections.
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

// Prepare creates or checks the table, and the stage of a staged contract. What takes privileges comes before anything
// is created or dropped. Databend has no primary keys, so Preparation.PrimaryKey means nothing here.
func (l *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	l.files = nil
	if p.Contract.Staged() {
		l.files = l.filesOf(p)
	}
	if p.Silent {
		_, err := l.Table.Prepare(ctx, p)
		return loader.Table{Name: l.plan.name.String()}, err
	}
	if err := l.probeProcesses(ctx, p); err != nil {
		return loader.Table{}, err
	}
	if p.Records {
		return l.prepareRecords(ctx, p)
	}
	if l.files != nil {
		if _, err := l.files.stage(ctx); err != nil {
			return loader.Table{}, failedBefore("create the stage", err)
		}
	}
	return l.Table.Prepare(ctx, p)
}

// probeProcesses checks that the user may read the list of processes, which Resolve needs after a lost answer.
func (l *opened) probeProcesses(ctx context.Context, p loader.Preparation) error {
	if p.Contract.Dedup != loader.DedupKey {
		return nil
	}
	err := l.exec(ctx, selectProcesses(queryIDs(batchKind, batch.ID{Run: p.Run}, 1)))
	if err == nil {
		return nil
	}
	return &loader.Error{Op: "read the list of processes", Applied: loader.No, Err: err,
		Hint: fmt.Sprintf("before a batch is sent again, its earlier queries are looked for in system.processes: "+
			"allow user %s to read it, or take --delivery at-least-once", l.plan.user)}
}
