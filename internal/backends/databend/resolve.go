package databend

import (
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// Resolve ends the queries of earlier attempts on every host, waits until none is at work, and then looks for the rows.
// The label alone would not do: the server looks at it before a statement and not when it commits, so a query that is
// still running could put the rows in a second time.
func (l *opened) Resolve(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	s, err := l.State()
	if err != nil {
		return loader.Resolution{}, err
	}
	k := ofBatch
	if s.Want.Contract.Staged() {
		k = ofGroup
	}
	if err := l.endAttempts(ctx, k, ref.ID, max(ref.Attempt, 1)); err != nil {
		return loader.Resolution{}, err
	}
	found, err := l.count(ctx, ref)
	if err != nil {
		return loader.Resolution{}, err
	}
	switch applied := sqlload.Outcome(found, ref.Rows); {
	case applied != loader.Unknown:
		l.removeAttached(ctx, s, ref)
		return loader.Resolution{Applied: applied}, nil
	case found < ref.Rows && l.plan.method.Name == streamingLoad:
		return l.removePart(ctx, s, ref, found)
	}
	return undecided(ref, found, ""), nil
}

func keysOf(ref loader.Ref) loader.KeyRange {
	return loader.KeyRange{First: ref.First, Last: ref.First + ref.Rows - 1}
}

// count counts the rows of a batch or group by their numbers. Whatever keeps it from that, the batch may be in.
func (l *opened) count(ctx context.Context, ref loader.Ref) (int64, error) {
	n, err := l.CountRows(ctx, keysOf(ref))
	if known := (*loader.Error)(nil); errors.As(err, &known) {
		known.Applied = loader.Unknown
	}
	return n, err
}

// maxRemovals is how often the rows of one attempt are tried to be deleted, in one process of the run. Every try has a
// query id of its own, since the server answers a known one with what became of the earlier query.
const maxRemovals = 4

// removePart deletes the rows that a streaming load left whose connection broke.
//
// Every connection that breaks in the middle of a body leaves some (see endFirst), so this is no rare accident. No
// query of the batch is at work any more; the rows have numbers of this batch; the table is one that terapush made,
// so nobody else has put rows of such numbers there; and they were never acknowledged. Their label is spent: it was
// written with them.
//
// The deletion can lose its answer like any statement, and would then delete what a later attempt has put in. So it is
// marked as an attempt is: the id lets Resolve end it, and the label, one for each attempt that it follows, lets no
// second one run after it. An error is no answer, and Resolve is asked again.
func (l *opened) removePart(
	ctx context.Context, s *sqlload.State, ref loader.Ref, found int64,
) (loader.Resolution, error) {
	deletion := statements{s.Statements}.deleteRows(keysOf(ref))
	// Of a table that nobody has looked at it is not known who made it.
	ours := s.Relation != nil && s.Relation.Comment == loader.MadeBy
	if s.Want.Contract.Dedup != loader.DedupKey || !ours {
		return undecided(ref, found, fmt.Sprintf("table %s was not made by terapush, so they may be somebody's; "+
			"if they are not: %s, and resume", l.plan.name, deletion)), nil
	}
	first := label(l.plan.name, ofBatch, ref.ID)
	try := l.labels.removes(first)
	if try > maxRemovals {
		return undecided(ref, found,
			fmt.Sprintf("to delete them failed %d times: %s, and resume", maxRemovals, deletion)), nil
	}
	l.log.Warn("removing the rows that a broken streaming load left behind, to send the batch again",
		"batch", ref.ID.Number, "rows", found, "of", ref.Rows)
	attempt := max(ref.Attempt, 1)
	m := marks{label: removalLabel(l.plan.name, ref.ID, attempt), queryID: queryID(removal(try), ref.ID, attempt)}
	if _, err := l.run(ctx, statement{sql: deletion, marks: m}, nil); err != nil {
		if v := verdict(err); v.Applied == loader.No && !v.Retry {
			return undecided(ref, found, fmt.Sprintf("the server does not delete them: %v; %s, and resume", err, deletion)), nil
		}
		return loader.Resolution{}, failed("remove a part of the rows", err)
	}
	left, err := l.count(ctx, ref)
	switch {
	case err != nil:
		return loader.Resolution{}, err
	case left > 0:
		return undecided(ref, left, "they are there although they were deleted"), nil
	}
	l.labels.spend(first)
	return loader.Resolution{Applied: loader.No}, nil
}

// removeAttached removes the files that earlier attempts at a batch have left in the stage: whoever was killed, or
// had no answer, could not. No query reads them any more. What cannot be removed is in nobody's way.
func (l *opened) removeAttached(ctx context.Context, s *sqlload.State, ref loader.Ref) {
	if m := l.plan.method.Name; m != insert && m != insertNoPresign {
		return
	}
	if err := l.exec(ctx, removeAttempts(l.plan.stage, ref.ID, s.Want.Contract.Format)); err != nil {
		l.log.Warn("files of earlier attempts may be left in stage @"+l.plan.stage, "batch", ref.ID.Number, "error", err)
	}
}

// skipped is for a statement that succeeded and wrote nothing: either its label is taken, or the server read an empty
// file, or COPY has loaded the files before. The rows tell.
func (l *opened) skipped(ctx context.Context, k kind, m marks, ref loader.Ref) (loader.Ack, error) {
	if m.label == "" && k == ofBatch {
		// Without a label nothing was skipped, and of a load that promises nothing the rows could be anybody's.
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: &spentError{again: true}}
	}
	found, err := l.count(ctx, ref)
	if err != nil {
		return loader.Ack{}, err
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
			l.labels.spendThis(label(l.plan.name, k, ref.ID), m.label)
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
	theirs := fmt.Sprintf("%d rows with the keys of the batch are in the table, which this run has not sent", e.rows)
	switch {
	case e.rows > 0 && e.label == "":
		return nothing + ": " + theirs
	case e.rows > 0:
		return fmt.Sprintf("%s: label %s is taken at the first attempt, and %s", nothing, e.label, theirs)
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
	return &loader.Error{Op: "look for the rows", Applied: loader.Unknown, Hint: partlyHint,
		Err: &partlyError{ref.First, ref.Rows, found}}
}

// undecided is Resolve's answer where a part of the rows is there that stays. advice says why and what to do.
func undecided(ref loader.Ref, found int64, advice string) loader.Resolution {
	if advice == "" {
		advice = partlyHint
	}
	return loader.Resolution{Reason: fmt.Sprintf("%v (%s)", &partlyError{ref.First, ref.Rows, found}, advice)}
}
