// Package loader is the contract between the engine and a database: what a back-end is asked, what it answers, and
// what the two agree on before the first row is sent.
//
// A back-end is a Driver, a value without state. Opened on one table it becomes a Loader, and every worker holds a
// Session of it. A Session sends one batch once and returns the server's answer; retries, deadlines, counting and
// timing are the engine's. What differs between databases is data (Caps, Verdict) or one of the optional interfaces of
// optional.go, found once at the start; nothing outside a back-end asks for its name.
package loader

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// Driver is one database's methods. It holds no state and is safe for concurrent use.
type Driver interface {
	// Name is the back-end's name in reports and labels, for example "postgres".
	Name() string
	// Schemes lists the URL schemes it answers to. A scheme that names a flavour ("mariadb") asserts it: Open fails
	// when the server turns out to be another.
	Schemes() []string
	// Methods lists the ways into the database, the default first.
	Methods() []Method
	// Check refuses a target that no server could serve, and returns what the method can do under the target's options
	// before a server was asked. It is pure.
	Check(t Target) (Caps, error)
	// Explain returns what a run would send to the server, without a server: for --dry-run. It is pure.
	Explain(t Target, p Preparation) []Statement
	// Open connects, probes server and flavour and applies nothing yet. It is called once, without retries, so that a
	// wrong address is reported at once; later questions are repeated where the answer is lost.
	Open(ctx context.Context, t Target, d Deps) (Loader, error)
	// Classify answers the questions a retry asks of an error that came out of a Session or an optional interface.
	// It is pure.
	Classify(err error) Verdict
}

// Loader is a back-end opened on one table. It is safe for concurrent use.
type Loader interface {
	// Server returns the server that was found, for the report.
	Server() Server
	// Caps are the method's, as probed on this server.
	Caps() Caps
	// Prepare makes the table and the claim table as the contract needs them, or checks the ones that are there. It
	// comes before the first Session.
	Prepare(ctx context.Context, p Preparation) (Table, error)
	// Session connects one worker. Hosts of the target are taken in turn.
	Session(ctx context.Context, c Contract) (Session, error)
	// Close ends what Open began; sessions are closed by their openers.
	Close() error
}

// Session is one worker's connection, used by one goroutine.
type Session interface {
	// Load sends the batch once and waits for the answer. It opens the batch's body and closes it before it returns,
	// or as soon as nothing reads it any more. When ctx ends the connection is closed, never the body failed.
	//
	// An error whose outcome the session knows better than Classify could is an *Error.
	Load(ctx context.Context, b *batch.Batch) (Ack, error)
	Close() error
}

// Ack is the server's answer for one attempt.
type Ack struct {
	// Rows is how many rows went in as the server counts them: the engine compares it with Batch.Wanted.
	Rows int64
	// AlreadyApplied reports whether an earlier attempt had put the batch in and this one added nothing.
	AlreadyApplied bool
	// Stored reports whether the rows are in the store and not in the table: Committer brings them there.
	Stored bool
	// Detail holds the server's own words: warnings, notices, the reason for missing rows.
	Detail []string
}

// Method is one way into one database.
type Method struct {
	Name string
	Help string // one line for list and --help
	// Caps before a server was asked; Loader.Caps is what counts.
	Caps Caps
	// Options are declared once, here, and become flag, environment variable, help text and report entry.
	Options []Option
}

// Option is a setting of a method.
type Option struct {
	Name    string // also the flag's name, without dashes in front
	Kind    OptionKind
	Default string
	Help    string
}

// OptionKind is how an option's text is read.
type OptionKind uint8

// The kinds of option.
const (
	StringOption OptionKind = iota
	BoolOption
	IntOption
)

// Statement is one thing a run would send to a server, for --dry-run.
type Statement struct {
	// When is "once", "per session", "per batch", "per row", "per group", "after a lost answer", "when a session ends",
	// "before verification", "to verify" or "afterwards".
	When string
	Text string // without secrets
}

// Deps is what a back-end takes from its surroundings instead of making it itself.
type Deps struct {
	// Dial opens every connection, so that one place sets keep-alives and counts what the sockets took.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Spread is Dial that takes the addresses of a name in turn; nil is Dial. It is for connections that any address
	// of the name serves alike, and that need not be found again: Dial is for those of a back-end that asks the same
	// server twice, or ends one session from another by a number that only its server knows.
	Spread func(ctx context.Context, network, address string) (net.Conn, error)
	// TLS makes the client configuration for a host. plain reports whether to go on without TLS when the server has
	// none; a nil config means no TLS at all.
	TLS func(mode TLSMode, host string) (config *tls.Config, plain bool, err error)
	Log *slog.Logger
}

// DialAny is Spread, or Dial where there is none.
func (d Deps) DialAny() func(ctx context.Context, network, address string) (net.Conn, error) {
	if d.Spread != nil {
		return d.Spread
	}
	return d.Dial
}

// Server is what is known of the server.
type Server struct {
	Product  string            // "PostgreSQL", "MariaDB", "TiDB" …
	Version  string            // as the server reports it
	Endpoint string            // host:port of the first connection, or the socket's path
	Settings map[string]string // the settings that decide durability and speed, and those of --set
}

// CreateMode is what Prepare may do to the table.
type CreateMode string

// The create modes.
const (
	CreateNever     CreateMode = "never"
	CreateIfMissing CreateMode = "if-missing"
	// CreateRecreate drops the table first, but only one with the comment of a table that terapush made, or the
	// one named in Preparation.MayDrop.
	CreateRecreate CreateMode = "recreate"
	// CreateTruncate empties the table and keeps it as it is, with its indexes and properties; one that is missing is
	// made. The same tables may be emptied that may be dropped.
	CreateTruncate CreateMode = "truncate"
)

// Preparation is what Prepare is asked for.
type Preparation struct {
	Run        string
	Schema     rows.Schema
	Contract   Contract
	Create     CreateMode
	MayDrop    string // a table the user allows to be dropped or emptied although terapush did not make it
	PrimaryKey bool   // make the columns of Schema.Number a primary key even if the method does not need it
	// Resume reports whether an earlier process worked on the run: its claims must be there. A claim table that is
	// missing is an error then and never created again, since by an empty one every batch would be lost.
	Resume bool
	// Hold is which runs to keep off the table from now on until Close, where the server has a lock that ends with a
	// connection. It comes before the table is dropped or emptied. Where another run holds it, Prepare's error is
	// Busy's; what an earlier process of the same run has left is no other run.
	Hold Hold
	// Silent reports whether the user asked for nothing but the load: Prepare remembers what it is given and sends the
	// server no statement at all. The table it returns has the target's name and no identity.
	Silent bool
}

// Hold is which other runs a run keeps off its table.
type Hold string

// The holds. A run with HoldShared keeps off those with HoldAlone, and one with HoldAlone all others but HoldNone.
const (
	HoldNone   Hold = ""
	HoldShared Hold = "shared"
	HoldAlone  Hold = "alone"
)

// Busy returns Prepare's error where another run holds the table. run is its id, "" where it is not known, and end the
// statement that ends its hold.
func Busy(table, run, end string) error {
	by := "another run"
	if run != "" {
		by = "run " + run
	}
	return &Error{
		Op: "prepare", Applied: No, Err: fmt.Errorf("table %s is being filled by %s", table, by),
		Hint: "wait until that has ended; runs with --append can fill one table at the same time; if its client is gone: " + end,
	}
}

// MadeBy is the comment on tables that terapush has made.
const MadeBy = "made by terapush"

// MayRemove returns nil if an existing table may be dropped (CreateRecreate) or emptied (CreateTruncate): its comment
// is MadeBy, or MayDrop is one of names, all of which a user may use for it. table is its name in the error.
func (p Preparation) MayRemove(table, comment string, names ...string) error {
	if comment == MadeBy || p.MayDrop != "" && slices.Contains(names, p.MayDrop) {
		return nil
	}
	done, do := "emptied", "empty"
	if p.Create == CreateRecreate {
		done, do = "dropped", "drop"
	}
	return &Error{
		Op: string(p.Create), Applied: No,
		Err:  fmt.Errorf("table %s was not made by terapush (its comment does not say %q), so it is not %s", table, MadeBy, done),
		Hint: fmt.Sprintf("%s it yourself, allow it with --yes-drop %s, or choose another --table", do, names[0]),
	}
}

// ErrNoTable is wrapped by Prepare's error if there is no table and Preparation.Create forbids making one.
var ErrNoTable = errors.New("does not exist")

// Missing returns the error of a table that is not there, where Create is CreateNever.
func (p Preparation) Missing(table string) error {
	err := &Error{Op: "prepare", Applied: No, Err: fmt.Errorf("table %s %w", table, ErrNoTable), Hint: "--create if-missing makes it"}
	if p.Resume {
		err.Err, err.Hint = Final(err.Err), "the rows of the run are gone with it: start a new run"
	}
	return err
}

// NoClaims returns the error of a claim table that is not there, where Resume requires it.
func NoClaims(table string) error {
	return &Error{
		Op: "look for the claim table", Applied: No,
		Err: Final(fmt.Errorf("the claim table %s is gone, so nobody can tell which batches are in", table)),
		Hint: "start a new run into another table, or verify this one; if the claim table is there, " +
			"this user needs SELECT, INSERT, DELETE on it to see it",
	}
}

// Table is what Prepare found or made.
type Table struct {
	Name string // as the server knows it, qualified
	// Identity changes when the table is dropped, made again or emptied by others. It may change when the table
	// is rewritten, too: where it has, a resume looks for the run's rows. Empty where a server has no such thing.
	Identity string
	Created  bool
	HasRows  bool // it held rows before the run
}

// SinkMark is part of the version of a server that keeps nothing of what it is sent, and NoCountMark of one that does
// not even count it.
const (
	SinkMark    = "terapush-sink"
	NoCountMark = SinkMark + "-no-count"
)
