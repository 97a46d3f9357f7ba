package doris

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
)

// database is the loader.Loader of one table.
type database struct {
	target    loader.Target
	method    loader.Method
	options   options
	frontends []frontend
	log       *slog.Logger
	name      tableName
	caps      loader.Caps
	found     loader.Server
	schema    atomic.Pointer[statements] // nil before Prepare, which brings the schema

	http    *httpload.Client
	control *sql.DB         // for everything but loading, on the first frontend that can be reached
	store   *objstore.Store // of s3-load; nil else

	turn          atomic.Uint64 // sessions opened so far: whose frontend is next
	loads         atomic.Uint64 // sent straight to backends so far: whose turn of --be it is
	spoke         atomic.Uint64 // the frontend that answered the last question
	bound         time.Duration // for one frontend's answer where there is another
	most          time.Duration // that Finish waits; 0: what patience says
	groupInterval atomic.Int64  // the table's group_commit_interval_ms; 0: not known

	// doubted tells that an attempt has failed here, or may have in an earlier process of the run. Under group commit its
	// rows are perhaps on their way all the same, beside those of the attempt that follows.
	doubted atomic.Bool
	// replication is how many replicas the table has; nil: not known.
	replication atomic.Pointer[property]

	// replaced tells that the server loads under labels of its own, so that nothing recognises a batch: what it did first.
	replaced atomic.Pointer[replacedError]
}

// Bounds of connections. Scans that prove arrival take one for their whole time, and Resolve must not wait for them;
// HTTP connections are kept for as many workers as anybody has.
const (
	controlConns = 8
	httpConns    = 1024
)

// Open connects to the first frontend that answers and finds out whether it is Doris.
func (Driver) Open(ctx context.Context, t loader.Target, d loader.Deps) (loader.Loader, error) {
	db, err := newDatabase(t, d)
	if err != nil {
		return nil, err
	}
	if err := db.probe(ctx); err != nil {
		_ = db.Close()
		return nil, loader.ConnectError(db.frontends[0].address, err, faultOf)
	}
	if db.method.Name == s3Load {
		if db.store, err = objstore.Open(ctx, *t.Via, d); err != nil {
			_ = db.Close()
			return nil, err
		}
		return staged{db}, nil
	}
	return db, nil
}

// newDatabase makes the loader, and connects to nothing.
func newDatabase(t loader.Target, d loader.Deps) (*database, error) {
	if _, err := New().Check(t); err != nil {
		return nil, err
	}
	method, _ := loader.FindMethod(New(), t.Method)
	name, err := targetTable(t)
	if err != nil {
		return nil, err
	}
	o, err := readOptions(t)
	if err != nil {
		return nil, err
	}
	all, err := frontends(t, d)
	if err != nil {
		return nil, err
	}
	config, err := httpTLS(t, d)
	if err != nil {
		return nil, err
	}
	db := &database{
		target: t, method: method, options: o, frontends: all, log: d.Log, name: name, caps: o.refine(method.Caps), bound: frontendTime,
		http: httpload.NewClient(httpload.Options{Dial: d.DialAny(), TLS: config, Connections: httpConns}),
	}
	db.control = sql.OpenDB(db.connector(0, sessionSettings(t.Settings)))
	db.control.SetMaxOpenConns(controlConns)
	return db, nil
}

// probe asks what is at the other end. The version alone is MySQL's to every client: it is the comment that names Doris.
func (db *database) probe(ctx context.Context) error {
	var comment, packet string
	err := db.control.QueryRowContext(ctx, "SELECT @@version_comment").Scan(&comment)
	if err != nil {
		return err
	}
	if err := recognise(comment); err != nil {
		return err
	}
	settings := map[string]string{"group_commit": string(db.options.group)}
	for _, s := range db.target.Settings {
		settings[s.Name] = s.Value
	}
	if err := db.control.QueryRowContext(ctx, "SELECT @@max_allowed_packet").Scan(&packet); err == nil {
		settings["max_allowed_packet"] = packet
		db.boundPacket(packet)
	} else {
		db.log.Debug("max_allowed_packet cannot be read", "error", err)
	}
	db.found = loader.Server{Product: "Apache Doris", Version: version(comment), Endpoint: db.frontends[0].address, Settings: settings}
	return nil
}

// recognise refuses a server that is no Doris, which the scheme promises.
func recognise(comment string) error {
	if strings.Contains(strings.ToLower(comment), "doris") {
		return nil
	}
	return &loader.Error{Op: "recognise the server", Applied: loader.No,
		Err:  fmt.Errorf("it is no Doris: its version comment is %q", comment),
		Hint: "doris:// is for Apache Doris; mysql:// takes MySQL's family"}
}

// version takes the number out of a comment such as "Doris version doris-3.1.2-rc01-abc".
func version(comment string) string {
	for word := range strings.FieldsSeq(comment) {
		if v, found := strings.CutPrefix(strings.ToLower(word), "doris-"); found {
			return v
		}
	}
	return comment
}

// boundPacket lowers the largest INSERT to what the server takes.
func (db *database) boundPacket(packet string) {
	bytes, err := strconv.ParseInt(packet, 10, 64)
	if err != nil || db.method.Name != insert || bytes <= packetRoom {
		return
	}
	db.caps.MaxBytes = bytes - packetRoom
	db.caps.DefaultBatchBytes = min(db.caps.DefaultBatchBytes, db.caps.MaxBytes)
}

// packetRoom is what a statement needs in bytes besides the rows: label, table name, column list.
const packetRoom = 64 << 10

// Server tells what was found, and behind Prepare the table's number of replicas.
func (db *database) Server() loader.Server {
	s := db.found
	s.Settings = maps.Clone(s.Settings)
	if p := db.replication.Load(); p != nil {
		s.Settings[p.name] = p.value
	}
	return s
}

// Caps are those of the method on this server.
func (db *database) Caps() loader.Caps { return db.caps }

// Close closes the control connections and the idle HTTP ones.
func (db *database) Close() error {
	err := errors.Join(db.control.Close(), db.http.Close())
	if db.store != nil {
		err = errors.Join(err, db.store.Close())
	}
	return err
}

// prepared gives the statements, which need the schema that Prepare brings.
func (db *database) prepared() (statements, error) {
	s := db.schema.Load()
	if s == nil {
		return statements{}, errors.New("doris: Prepare comes first")
	}
	return *s, nil
}

// Session connects one worker to the next frontend, or for s3-load to the store.
func (db *database) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	text, err := db.prepared()
	if err != nil {
		return nil, err
	}
	first := int((db.turn.Add(1) - 1) % uint64(len(db.frontends)))
	switch db.method.Name {
	case s3Load:
		return objstore.StagingSession(db.store.Run(text.run)), nil
	case insert:
		return db.insertSession(ctx, text, c, first)
	}
	return &streamSession{db: db, text: text, labels: c.Dedup == loader.DedupKey, first: first}, nil
}
