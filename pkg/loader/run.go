package loader

import (
	"errors"
	"fmt"
	"time"
)

// RunState is how far a run is.
type RunState string

// The states of a run's row.
const (
	RunOpen      RunState = "open"      // its owner may write
	RunClosed    RunState = "closed"    // its rows are in, and nobody may write
	RunProven    RunState = "proven"    // its rows were counted, and were all there
	RunForgotten RunState = "forgotten" // its claims are removed
	RunGone      RunState = "gone"      // its table was dropped or emptied for another run
)

// RunRow is what the database keeps of a run, or of one shard of it: who may write its rows. A claim is inserted from
// the row, under its epoch and while the run is open, so that nothing of a process that has lost its run is committed.
type RunRow struct {
	Name string // the user's, or else the id
	// Run is what its claims have: the id, or the name with letters of its own, since a name may be used again.
	Run   string
	Part  string // the shard; WholeRun if there are no others
	State RunState
	// Epoch is a number and random letters. It changes with every owner and state; the letters keep two epochs apart
	// that have the same number, as after a failover that has lost the newest one.
	Epoch       string
	Table       string    // without its schema
	Appends     bool      // other runs that append may fill the table as well
	Fingerprint int64     // of all that decides about rows and batches; 0 until the run is announced
	Keys        KeyRange  // the row numbers that no other run gets; none yet if Last is before First
	Owner       string    // who has changed the row
	Changed     time.Time // when, by the owner's clock
}

// WholeRun is RunRow.Part of a run without shards.
const WholeRun = "0/1"

// ErrBegun is the error of Prepare when another process has announced the run since it was looked for.
var ErrBegun = errors.New("another process has begun the run just now")

// ErrUnknownRun is in the error about a run that the database does not know.
var ErrUnknownRun = errors.New("this database does not know run")

// TakenOverError reports that another process has changed the row of a run: this one may not write any more.
type TakenOverError struct {
	Run string
	Row *RunRow // as it is now; nil if there is none
}

func (e *TakenOverError) Error() string {
	if e.Row == nil {
		return fmt.Sprintf("run %s has no row in the database any more", e.Run)
	}
	done := map[RunState]string{
		RunOpen: "taken over", RunClosed: "closed", RunProven: "closed and proven", RunForgotten: "forgotten",
		RunGone: "ended, since its table was dropped or emptied,",
	}
	return fmt.Sprintf("run %s was %s by %s at %s", e.Run, done[e.Row.State], e.Row.Owner, e.Row.Changed.UTC().Format(time.DateTime))
}

// BusyError reports that a run which is open has the table, or keys that another one asks for.
type BusyError struct {
	Table    string
	Row      RunRow
	Activity string // the time of its newest claim; "" without one
}

func (e *BusyError) Error() string {
	text := fmt.Sprintf("table %s belongs to run %s of %s", e.Table, e.Row.Name, e.Row.Owner)
	if e.Activity == "" {
		return text + ", which has claimed no batch yet"
	}
	return text + ", which claimed its newest batch at " + e.Activity
}

// Busy returns the error of a BusyError.
func Busy(busy *BusyError) error {
	return &Error{
		Op: "prepare", Applied: No, Err: busy,
		Hint: fmt.Sprintf("wait until it has ended, or resume it; only runs with --append fill a table together; if nobody needs "+
			"it any more, terapush forget TARGET --run %s frees the table and leaves the rows", busy.Row.Name),
	}
}
