package databend

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// skipped is for a statement that succeeded and wrote nothing: either its label is taken, or the server read an empty
// file, or COPY has loaded the files before. The rows tell.
func (db *database) skipped(ctx context.Context, p *prepared, k kind, m marks, ref loader.Ref) (loader.Ack, error) {
	if m.label == "" && k == ofBatch {
		// Without a label nothing was skipped, and of a load that promises nothing the rows could be anybody's.
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: &spentError{again: true}}
	}
	found, err := db.count(ctx, p, ref)
	if err != nil {
		return loader.Ack{}, &loader.Error{Op: "count the rows of a batch that the server skipped", Applied: loader.Unknown,
			Err: err, Hint: hint(err)}
	}
	e := &spentError{label: m.label}
	switch sqlload.Outcome(found, ref.Rows) {
	case loader.Unknown:
		return loader.Ack{}, partly(ref, found)
	case loader.Yes:
		if ref.Attempt > 1 {
			return loader.Ack{Rows: ref.Rows, AlreadyApplied: true}, nil
		}
		e.rows = found // nobody has sent them yet, so they are not this run's; to look once more would not show it
	case loader.No:
		if e.again = ref.Attempt > 1; e.again { // an earlier attempt took the label; on a first one it is somebody else's
			db.labels.spendThis(label(db.plan.name, k, ref.ID), m.label)
		}
	}
	return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: e, Hint: e.hint()}
}

// spentError says that the server wrote nothing although none of the rows is there: the label is taken by a statement
// that wrote nothing either, or whose rows are gone. Or, at a first attempt, that rows are there which are somebody
// else's.
type spentError struct {
	label string
	rows  int64 // that are there
	again bool  // it can be sent again: under the next label, if it has one
}

func (e *spentError) Error() string {
	const nothing = "the server took the statement and wrote no row"
	switch {
	case e.rows > 0 && e.label == "":
		return fmt.Sprintf("%s: %d rows with the keys of the batch are in the table, which this run has not sent", nothing, e.rows)
	case e.rows > 0:
		return fmt.Sprintf("%s: label %s is taken at the first attempt, and %d rows with the keys of the batch are in the table, "+
			"which this run has not sent", nothing, e.label, e.rows)
	case e.label == "":
		return nothing
	}
	return fmt.Sprintf("%s: label %s is taken, and its rows are not there", nothing, e.label)
}

func (e *spentError) hint() string {
	if e.again {
		return "it is sent again under the next label"
	}
	return "was the run started twice, or were rows deleted behind its back? start a new run"
}

// partlyError says that a batch is there in part, which a method that loads a batch at once must never leave.
type partlyError struct {
	first, rows, found int64
}

func (e *partlyError) Error() string {
	return fmt.Sprintf("%d rows with keys %d to %d are in the table, where a batch of %d was sent",
		e.found, e.first, e.first+e.rows-1, e.rows)
}

// partlyHint is what to do about rows that nobody can explain.
const partlyHint = "find out who put them there; with the rows of these keys deleted, a resume sends the batch again"

// partly is the error of an attempt that has found a part of its rows there. Resolve is what comes next.
func partly(ref loader.Ref, found int64) error {
	return &loader.Error{Op: "look for the rows", Applied: loader.Unknown, Err: &partlyError{ref.First, ref.Rows, found}, Hint: partlyHint}
}

// undecided is Resolve's answer where a part of the rows is there that stays. advice says why and what to do.
func undecided(ref loader.Ref, found int64, advice string) loader.Resolution {
	if advice == "" {
		advice = partlyHint
	}
	return loader.Resolution{Reason: fmt.Sprintf("%v (%s)", &partlyError{ref.First, ref.Rows, found}, advice)}
}
