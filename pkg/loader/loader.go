// Package loader is the contract between the engine and a database.
//
// A back-end is a Driver, a value without state. Opened on one table it becomes a Loader, and every worker has a
// Session of it. A Session sends a batch once and returns the server's answer; retries, deadlines, counting and timing
// are the engine's. Differences between databases are data (Caps, Verdict) or optional interfaces (Features); nothing
// outside a back-end depends on its name.
package loader

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// Driver is the methods of one database. It has no state and is safe for concurrent use.
type Driver interface {
	// Name is the back-end's name in reports and labels, for example "postgres".
	Name() string
	// Schemes lists its URL schemes. A scheme that names a flavour ("mariadb") asserts it: Open fails if the server is
	// another.
	Schemes() []string
	// Methods lists the methods, the default first.
	Methods() []Method
	// Check returns what the method can do with the target's options on any server, or an error if no server can do it.
	// It is pure.
	Check(t Target) (Caps, error)
	// Explain returns what a run would send to a server, for --dry-run. It is pure.
	Explain(t Target, p Preparation) []Statement
	// Open connects and detects server and flavour. It changes nothing. It is called without retries, so that a wrong
	// address is reported at once.
	Open(ctx context.Context, t Target, d Deps) (Loader, error)
	// Classify returns the verdict on an error of a Session or an optional interface. It is pure.
	Classify(err error) Verdict
}

// Loader is a back-end opened on one table. It is safe for concurrent use.
type Loader interface {
	// Server describes the server for the report.
	Server() Server
	// Caps returns what the method can do on this server.
	Caps() Caps
	// Prepare makes the table and the claim table as the contract needs them, or checks the existing ones. It is called
	// before the first Session.
	Prepare(ctx context.Context, p Preparation) (Table, error)
	// Session connects one worker, to the hosts of the target in turn.
	Session(ctx context.Context, c Contract) (Session, error)
	// Close closes what Open opened. Sessions are closed by their owners.
	Close() error
}

// Session is one worker's connection, used by one goroutine.
type Session interface {
	// Load sends the batch once and waits for the answer. It opens the batch's body, and closes it before it returns or
	// as soon as nothing reads it any more. When ctx ends it closes the connection; it must never make the body fail.
	//
	// If the session knows whether the rows were applied, the error is an *Error.
	Load(ctx context.Context, b *batch.Batch) (Ack, error)
	Close() error
}

// Sifter is a Session that can leave records of a user's file out of a batch: those that the server refuses.
type Sifter interface {
	// Sift is Load of a batch that goes in part by part. What load has put in is committed, with the claim of so many
	// rows; nothing is if load returns an error.
	Sift(ctx context.Context, b *batch.Batch, load PutParts) (Ack, error)
}

// PutParts puts parts of a batch in, and returns how many rows they have together. put puts all of a part in, or else
// returns the server's error; nothing reads the part any more then.
type PutParts func(put func(ctx context.Context, part *batch.Batch) error) (rows int64, err error)

// Ack is the server's answer for one attempt.
type Ack struct {
	// Rows is the server's count of loaded rows: the engine compares it with Batch.Rows.
	Rows int64
	// AlreadyApplied reports whether an earlier attempt had loaded the batch, and this one added nothing.
	AlreadyApplied bool
	// Stored reports whether the rows are in the store, and Committer is to load them.
	Stored bool
	// Detail has the server's warnings and notices.
	Detail []string
}

// Method is a way to load into a database.
type Method struct {
	Name string
	Help string // one line for list and --help
	// Caps on any server; Loader.Caps replaces them.
	Caps Caps
	// Options become flags, environment variables, help texts and report entries. OptionsOf makes them.
	Options []Option
}

// Statement is something that a run would send to a server, for --dry-run.
type Statement struct {
	// When is "once", "per session", "per batch", "per row", "per group", "after a lost answer", "when a session ends",
	// "at the end", "before verification", "to verify" or "afterwards", with a condition behind it where there is one;
	// or "refused: " and why no server would take the run.
	When string
	Text string // without secrets; "" where the run is refused
}

// Deps are what a back-end uses of its surroundings.
type Deps struct {
	// Dial opens connections, with keep-alives and a count of sent bytes.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Spread is Dial that takes the addresses of a name in turn; nil is Dial. It must not be used where two connections
	// have to reach the same server, as to end a session by its number from another one.
	Spread func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS returns the client configuration for a host, nil for no TLS. plain reports whether to connect without TLS if
	// the server has none.
	TLS func(mode TLSMode, host string) (config *tls.Config, plain bool, err error)
	Log *slog.Logger
}

// DialAny returns Spread, or Dial if that is nil.
func (d Deps) DialAny() func(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Spread != nil {
		return d.Spread
	}
	return d.Dial
}

// Server describes a server.
type Server struct {
	Product  string            // "PostgreSQL", "MariaDB", "TiDB" …
	Version  string            // as the server reports it
	Endpoint string            // host:port of the first connection, the socket's path, or NoEndpoint
	Settings map[string]string // that decide durability and speed, and those of --set
}

// CreateMode is what Prepare may do to the table.
type CreateMode string

// The create modes.
const (
	CreateNever     CreateMode = "never"
	CreateIfMissing CreateMode = "if-missing"
	// CreateRecreate drops the table first, if terapush made it or Preparation.MayDrop names it.
	CreateRecreate CreateMode = "recreate"
	// CreateTruncate empties the table and keeps its indexes and properties; a missing one is made. A table may be
	// emptied if it may be dropped.
	CreateTruncate CreateMode = "truncate"
)

// Preparation is the input of Prepare.
type Preparation struct {
	Run    string
	Schema rows.Schema
	// Records reports whether the rows are those of a user's files. The server parses them, so the columns of Schema have
	// names only, and no row has a number.
	Records bool
	// UUID returns the text of the key in the row with a number, if that is a UUID: a server with an index on it finds no
	// row by the number. nil of any other key.
	UUID func(number int64) string
	// Layout is how they are written in the first file, for Explain; nil without Records.
	Layout *batch.Layout
	// Began is when the run began; it may be zero unless Records is set. What a server has forgotten since is not
	// known.
	Began      time.Time
	Contract   Contract
	Create     CreateMode
	MayDrop    string // a table that may be dropped or emptied although terapush did not make it
	PrimaryKey bool   // of Schema.Primary, or else of the columns of Schema.Number; a table that is there has to have it
	// Like is the table that a missing one is made like, with all that the server copies; the zero value: it is made of
	// the schema.
	Like TableName
	// Resume reports whether an earlier process worked on the run. A missing claim table is then an error and is not
	// made, since with an empty one every batch would look lost.
	Resume bool
	// Begin makes the run's rows, before the table is dropped or emptied. nil: the run has begun, or only looks. If a
	// run is open that has the table, Prepare returns the error of Busy.
	Begin *Beginning
	// Owner is who begins the run or takes it over, for messages to others.
	Owner string
	// Shard names the part of the run that this process sends, if others send the rest or it may be started elsewhere.
	Shard string
	// Silent reports whether the user wants nothing but the load: Prepare keeps its input and sends no statement. The
	// table it returns has the target's name and no identity.
	Silent bool
}

// TableName is a table as the server has it, without quotation marks.
type TableName struct{ Schema, Name string }

// Beginning is what the rows of a new run say.
type Beginning struct {
	Appends bool // see RunRow
	Shards  int  // at least 1
}

// MadeBy is the comment on tables that terapush has made.
const MadeBy = "made by terapush"

// madeLike is in the comment on those that are like another, before its name.
const madeLike = MadeBy + ", like "

// Comment is the comment on the table that is made: MadeBy, and the table of Like, if there is one.
func (p Preparation) Comment() string {
	if p.Like.Name == "" {
		return MadeBy
	}
	return madeLike + p.Like.Schema + "." + p.Like.Name
}

// IsMade reports whether a table with the comment was made by terapush. like is the table that it was made like; "" if
// there was none.
func IsMade(comment string) (like string, is bool) {
	like, copied := strings.CutPrefix(comment, madeLike)
	if !copied {
		return "", comment == MadeBy
	}
	return like, true
}

// MayRemove returns nil if an existing table may be dropped or emptied: terapush has made it, or MayDrop is one of the
// names that users may use for it. table is its name in the error.
func (p Preparation) MayRemove(table, comment string, names ...string) error {
	if _, is := IsMade(comment); is || p.MayDrop != "" && slices.Contains(names, p.MayDrop) {
		return nil
	}
	done, do := "emptied", "empty"
	if p.Create == CreateRecreate {
		done, do = "dropped", "drop"
	}
	return &Error{
		Op: string(p.Create), Applied: No,
		Err:  fmt.Errorf("table %s was not made by terapush (its comment does not say %q), so it is not %s", table, MadeBy, done),
		Hint: fmt.Sprintf("%s it yourself, allow it with --allow-drop %s, or choose another --table", do, names[0]),
	}
}

// ErrNoTable is the cause of Prepare's error if there is no table and CreateNever forbids making one.
var ErrNoTable = errors.New("does not exist")

// Missing returns the error of a missing table under CreateNever.
func (p Preparation) Missing(table string) error {
	err := &Error{Op: "prepare", Applied: No, Err: fmt.Errorf("table %s %w", table, ErrNoTable), Hint: "--create if-missing makes it"}
	if p.Records {
		err.Hint = "a load makes no table: create it first, with the columns of the files"
	}
	if p.Resume {
		err.Err, err.Hint = Final(err.Err), "the rows of the run are gone with it: start a new run"
	}
	return err
}

// NoClaims returns the error of a claim table that Resume requires and that is missing.
func NoClaims(table string) error {
	return &Error{
		Op: "look for the claim table", Applied: No,
		Err: Final(fmt.Errorf("the claim table %s is gone, so it is unknown which batches are applied", table)),
		Hint: "start a new run into another table, or verify this one; if the claim table is there, " +
			"this user needs SELECT, INSERT, DELETE on it to see it",
	}
}

// Table is what Prepare found or made.
type Table struct {
	Name string // as the server knows it, qualified
	// Identity changes when the table is dropped, made again or emptied by others. It may also change when the table is
	// rewritten; a resume then looks for the run's rows. Empty if the server has none.
	Identity string
	Created  bool
	HasRows  bool // it held rows before the run
	// Row is the run's row, or that of the shard; the zero value if Prepare made none.
	Row RunRow
	// LongScan reports that it is large and has no index on the key: to find a row by its number takes a long scan.
	LongScan bool
	// Numbered are the columns that the server numbers in the rows, since they have no value there. Numbers are used up,
	// whatever is rolled back.
	Numbered []string
	// Moved reports whether the rows have a column that the server numbers, whose count a value moves behind itself, as an
	// AUTO_INCREMENT: for good, whatever is rolled back.
	Moved bool
}

// NoEndpoint is Server.Endpoint of a back-end that discards rows instead of sending them.
const NoEndpoint = "none"

// SinkMark is part of a sink's version, NoCountMark of that of a sink that does not count rows.
const (
	SinkMark    = "terapush-sink"
	NoCountMark = SinkMark + "-no-count"
)
