package doris

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// opened is the back-end on one table.
type opened struct {
	*sqlload.Table
	target    loader.Target
	method    loader.Method
	options   options
	frontends []frontend
	log       *slog.Logger
	name      tableName
	caps      loader.Caps
	server    loader.Server

	http    *httpload.Client
	control *sql.DB // for everything but loading, on the first frontend that can be reached

	turn         atomic.Uint64 // sessions opened so far: whose frontend is next
	loads        atomic.Uint64 // sent straight to backends so far: whose turn of --be it is
	answered     atomic.Uint64 // the frontend that answered the last question
	frontendTime time.Duration
	finishTime   time.Duration // how long Finish waits; 0: see patience

	// doubted says that an attempt has failed here, or may have in an earlier process of the run. Under group commit its
	// rows are perhaps on their way all the same, beside those of the attempt that follows.
	doubted atomic.Bool
	// replaced says that the server loads under labels of its own, so that nothing recognises a batch: what it did first.
	replaced atomic.Pointer[error]
}

// Bounds of connections. Scans that prove arrival take one for their whole time, and Resolve must not wait for them;
// HTTP connections are kept for as many workers as anybody has.
const (
	controlConns = 8
	httpConns    = 1024
)

// Open connects to the first frontend that answers and finds out whether it is Doris.
func (Driver) Open(ctx context.Context, t loader.Target, d loader.Deps) (loader.Loader, error) {
	l, err := unconnected(t, d)
	if err != nil {
		return nil, err
	}
	if err := l.probe(ctx); err != nil {
		_ = l.Close()
		return nil, loader.ConnectError(l.frontends[0].address, err, faultOf)
	}
	if l.method.Name != s3Load {
		return l, nil
	}
	s, err := openStaged(ctx, l, d)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return s, nil
}

// unconnected makes the loader, and connects to nothing.
func unconnected(t loader.Target, d loader.Deps) (*opened, error) {
	caps, err := New().Check(t)
	if err != nil {
		return nil, err
	}
	method, _ := loader.FindMethod(New(), t.Method)
	name, _ := targetTable(t)
	o, _ := readOptions(t)
	all, config, err := frontends(t, d)
	if err != nil {
		return nil, err
	}
	l := &opened{
		target: t, method: method, options: o, frontends: all, log: d.Log, name: name, caps: caps, frontendTime: frontendTime,
		http:    httpload.NewClient(httpload.Options{Dial: d.DialAny(), TLS: config, Connections: httpConns}),
		control: sql.OpenDB(connector{frontends: all, setup: sessionSettings(t.Settings)}),
	}
	l.control.SetMaxOpenConns(controlConns)
	l.Table = &sqlload.Table{
		Name: name.table, Catalog: catalog{l}, Connect: l.connect, Failed: failed, Classify: Driver{}.Classify, Log: d.Log,
	}
	return l, nil
}

// probe asks what is at the other end. The version alone is MySQL's to every client: it is the comment that names
// Doris.
func (l *opened) probe(ctx context.Context) error {
	var comment, packet string
	if err := l.control.QueryRowContext(ctx, "SELECT @@version_comment").Scan(&comment); err != nil {
		return err
	}
	if err := recognise(comment); err != nil {
		return err
	}
	settings := map[string]string{"group_commit": string(l.options.group)}
	for _, s := range l.target.Settings {
		settings[s.Name] = s.Value
	}
	if err := l.control.QueryRowContext(ctx, "SELECT @@max_allowed_packet").Scan(&packet); err == nil {
		settings["max_allowed_packet"] = packet
		l.boundPacket(packet)
	} else {
		l.log.Debug("max_allowed_packet cannot be read", "error", err)
	}
	l.server = loader.Server{
		Product: "Apache Doris", Version: version(comment), Endpoint: l.frontends[0].address, Settings: settings,
	}
	return nil
}

// recognise refuses a server that is no Doris, which the scheme promises.
func recognise(comment string) error {
	if strings.Contains(strings.ToLower(comment), "doris") {
		return nil
	}
	return &loader.Error{
		Op: "recognise the server", Applied: loader.No, Err: fmt.Errorf("it is no Doris: its version comment is %q", comment),
		Hint: "doris:// is for Apache Doris; mysql:// takes MySQL's family",
	}
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
func (l *opened) boundPacket(packet string) {
	bytes, err := strconv.ParseInt(packet, 10, 64)
	if err != nil || l.method.Name != insert || bytes <= packetRoom {
		return
	}
	l.caps.MaxBytes = bytes - packetRoom
	l.caps.DefaultBatchBytes = min(l.caps.DefaultBatchBytes, l.caps.MaxBytes)
}

// packetRoom is what a statement needs in bytes besides the rows: label, table name, column list.
const packetRoom = 64 << 10

// Server says what was found, and behind Prepare the table's number of replicas, in the word that the server has for
// it.
func (l *opened) Server() loader.Server {
	s := l.server
	s.Settings = maps.Clone(s.Settings)
	for _, name := range []string{"replication_num", "replication_allocation"} {
		if value := l.tableProperty(name); value != "" {
			s.Settings[name] = value
		}
	}
	return s
}

// Caps are those of the method on this server.
func (l *opened) Caps() loader.Caps { return l.caps }

// Close closes the control connections and the idle HTTP ones.
func (l *opened) Close() error { return errors.Join(l.control.Close(), l.http.Close()) }

// Prepare makes the table, or checks the one that is there. There are no claims: labels are the server's.
func (l *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	if p.Resume {
		l.doubted.Store(true)
	}
	if err := refuseBytes(p.Schema); err != nil {
		return loader.Table{}, err
	}
	t, err := l.Table.Prepare(ctx, p)
	if err != nil {
		return t, err
	}
	t.Name = l.name.String()
	if t.Created || p.Silent || !l.options.group.on() {
		return t, nil
	}
	want := l.options.properties()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if is := l.tableProperty(name); is != want[name] {
			l.log.Warn("the table is there already and keeps its own property: ALTER TABLE … SET changes it",
				"property", name, "table", cmp.Or(is, "the server's default"), "wanted", want[name])
		}
	}
	return t, nil
}

// Session connects one worker to the next frontend.
func (l *opened) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	s, err := l.State()
	if err != nil {
		return nil, err
	}
	text, labels := statements{s.Statements}, c.Dedup == loader.DedupKey
	if l.method.Name == insert {
		return l.openInsert(ctx, text, labels)
	}
	return &streamSession{opened: l, text: text, labels: labels, first: l.nextFrontend()}, nil
}

// nextFrontend is the number of the one that the next session begins with.
func (l *opened) nextFrontend() int { return int((l.turn.Add(1) - 1) % uint64(len(l.frontends))) }
