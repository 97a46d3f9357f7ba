package databend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
)

// database is the loader.Loader of one table.
type database struct {
	plan    plan
	clients *clients
	nodes   []*node
	log     *slog.Logger

	server  loader.Server
	caps    loader.Caps
	objects *objstore.Store // nil without --via
	labels  labels
	ready   atomic.Pointer[prepared] // nil before Prepare
	turn    atomic.Uint64            // sessions opened so far: whose host is next
	turned  atomic.Uint64            // how often control went on to the next host
}

// prepared is what Prepare brings.
type prepared struct {
	statements
	contract loader.Contract
	run      string
	files    files // where batches are stored; nil unless the contract is staged
	ours     bool  // the table was made by terapush, for a run of it
}

// Open asks the first host what it is, and whether it takes what the method will send.
func (d Driver) Open(ctx context.Context, t loader.Target, deps loader.Deps) (loader.Loader, error) {
	p, err := planOf(t)
	if err != nil {
		return nil, err
	}
	mode, err := tlsMode(t)
	if err != nil {
		return nil, err
	}
	db := &database{plan: p, clients: &clients{deps: deps, mode: mode, grace: cmp.Or(d.grace, killGrace)}, log: deps.Log}
	if err := db.open(ctx, t, deps); err != nil {
		_ = db.Close()
		return nil, err
	}
	return db, nil
}

func (db *database) open(ctx context.Context, t loader.Target, d loader.Deps) (err error) {
	if db.nodes, err = db.clients.nodes(ctx, t); err != nil {
		return err
	}
	if err := db.probe(ctx, t); err != nil {
		return loader.ConnectError(db.control().address, err, faultOf)
	}
	if err := db.probeMethod(ctx); err != nil {
		return failedBefore("try "+db.plan.method.Name, err)
	}
	if t.Via != nil {
		db.objects, err = objstore.Open(ctx, *t.Via, d)
	}
	return err
}

// probe reads version and settings.
func (db *database) probe(ctx context.Context, t loader.Target) error {
	version, err := db.value(ctx, "SELECT version()")
	if err != nil {
		return err
	}
	db.server = loader.Server{
		Product: "Databend", Version: strings.TrimPrefix(version, "Databend Query "), Endpoint: db.control().address,
		Settings: make(map[string]string),
	}
	err = db.run(ctx, statement{sql: selectSettings()}, func(r row) error {
		if v := r.texts(); len(v) == 2 {
			db.server.Settings[v[0]] = v[1]
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range t.Settings {
		db.server.Settings[s.Name] = s.Value
	}
	db.caps = db.plan.method.Caps
	if !db.caps.Staged { // uploads take no slot of the query queue
		db.caps.MaxInFlight = len(db.nodes) * db.running(ctx)
	}
	return nil
}

// selectSettings asks for what decides speed.
func selectSettings() string {
	return "SELECT name, value FROM system.settings WHERE name IN (" + literals([]string{
		"input_read_buffer_size", "load_file_metadata_expire_hours", "max_threads", "statement_queued_timeout_in_seconds",
	}) + ")"
}

// selectRunning asks for how many queries a node runs at a time. It is a node's configuration, no setting.
const selectRunning = "SELECT value FROM system.configs WHERE `group` = 'query' AND name = 'max_running_queries'"

// running is max_running_queries, of which 0 is no bound. Not everybody may read configurations, and hosted servers hide
// them: then no bound is known either, since behind a balancer may be any number of nodes.
func (db *database) running(ctx context.Context) int {
	text, err := db.value(ctx, selectRunning)
	n, notANumber := strconv.Atoi(text)
	if err != nil || notANumber != nil || n < 0 {
		return 0
	}
	db.server.Settings["max_running_queries"] = text
	return n
}

// probeMethod finds out before anything is made whether the server takes what the method sends.
func (db *database) probeMethod(ctx context.Context) error {
	switch {
	case db.plan.method.Name == streamingLoad:
		return db.probeStreaming(ctx)
	case db.plan.method.Name == insert:
		return db.probePresign(ctx)
	case db.plan.stage != userStage:
		return db.run(ctx, statement{sql: "DESC STAGE " + db.plan.stage}, nil)
	}
	return nil
}

// probeStreaming asks for the route with a request that has no statement. A server that knows it misses the statement.
func (db *database) probeStreaming(ctx context.Context) error {
	r, err := db.control().request(ctx, http.MethodPut, "/v1/streaming_load")
	if err != nil {
		return err
	}
	nothing := newForm("")
	nothing.empty(r)
	answer, err := db.control().http.Do(r)
	if err != nil {
		return err
	}
	switch answer.Status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return &loader.Error{Op: "look for /v1/streaming_load", Applied: loader.No,
			Err:  fmt.Errorf("this server (%s) has no streaming load: %w", db.server.Version, refusal(answer)),
			Hint: "it came with version 1.2.782; take --method " + insertNoPresign + ", which every server has"}
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return refusal(answer)
	}
	return nil
}

// probePresign asks for a URL, and whether somebody listens where it leads: a store may have a name that only the
// server can reach.
func (db *database) probePresign(ctx context.Context) error {
	advice := "take --method " + insertNoPresign + ", which uploads through the node"
	u, _, err := db.control().presign(ctx, db.plan.stage, folder+"/preflight")
	if is(err, storageUnsupported) {
		return &loader.Error{Op: "presign an upload", Applied: loader.No,
			Err: fmt.Errorf("the storage behind stage @%s knows no presigned URLs: %w", db.plan.stage, err), Hint: advice}
	}
	if err != nil {
		return err
	}
	conn, err := db.clients.deps.Dial(ctx, "tcp", hostPort(u))
	if err != nil {
		return &loader.Error{Op: "connect to " + u.Host, Applied: loader.No,
			Err: fmt.Errorf("presigned uploads go there: %w", err), Hint: advice}
	}
	return conn.Close()
}

func hostPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "https":
		return u.Host + ":443"
	}
	return u.Host + ":80"
}

// Server tells what was found.
func (db *database) Server() loader.Server {
	s := db.server
	s.Settings = maps.Clone(s.Settings)
	return s
}

// Caps are those of the method on this server.
func (db *database) Caps() loader.Caps { return db.caps }

// Close drops the stage of a run, if there is one, and closes the idle connections.
func (db *database) Close() error {
	var err error
	if p := db.ready.Load(); p != nil && p.files != nil {
		err = p.files.close()
	}
	if db.objects != nil {
		err = errors.Join(err, db.objects.Close())
	}
	db.clients.close()
	return err
}

// prepared gives what Prepare brought.
func (db *database) prepared() (*prepared, error) {
	p := db.ready.Load()
	if p == nil {
		return nil, errors.New("databend: Prepare comes first")
	}
	return p, nil
}
