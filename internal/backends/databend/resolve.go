package databend

import (
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Resolve ends the queries of earlier attempts on every host, waits until none is running, and then counts the rows.
// The label alone is not enough: the server checks it before a statement and not when it commits, so a query that is
// still running could insert the rows a second time.
func (l *opened) Resolve(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	s, err := l.State()
	if err != nil {
		return loader.Resolution{}, err
	}
	if s.Want.Records {
		return l.resolveRecords(ctx, s, ref)
	}
	k := batchKind
	if s.Want.Contract.Staged() {
		k = groupKind
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
		l.removeUploads(ctx, s, ref)
		return loader.Resolution{Applied: applied}, nil
	case found < ref.Rows && l.plan.method.Name == methodStreamingLoad:
		return l.removePart(ctx, s, ref, found)
	}
	return unresolved(ref, found, partialHint), nil
}

func keysOf(ref loader.Ref) loader.KeyRange {
	return loader.KeyRange{First: ref.First, Last: ref.First + ref.Rows - 1}
}

// count counts the rows of a batch or group by their keys. Where that fails, the batch may be in.
func (l *opened) count(ctx context.Context, ref loader.Ref) (int64, error) {
	n, err := l.CountRows(ctx, keysOf(ref))
	if known := (*loader.Error)(nil); errors.As(err, &known) {
		known.Applied = loader.Unknown
	}
	return n, err
}

// maxRemovals is how often one process tries to delete the rows of an attempt. Every try has a query id of its own,
// since the server answers a known one with the outcome of the earlier query.
const maxRemovals = 4

// removePart deletes the rows that a streaming load has left whose connection broke. Every connection that breaks in
// the middle of a body leaves some: see killOnCancel.
//
// That is safe: no query of the batch is running; the rows have keys of this batch and were never acknowledged; and
// terapush made the table, so no one else has put rows with such keys there. Their label is spent: it was written with
// them.
//
// The deletion may lose its answer like any statement, and would then delete what a later attempt has inserted. So it
// is tagged as an attempt is: by the id Resolve ends it, and the label, one for each attempt that it follows, keeps a
// second one from running. After an error Resolve is called again.
func (l *opened) removePart(
	ctx context.Context, s *sqlload.State, ref loader.Ref, found int64,
) (loader.Resolution, error) {
	deletion := statements{s.Statements}.deleteRows(keysOf(ref))
	// A silent Prepare does not know who made the table.
	ours := false
	if s.Relation != nil {
		_, ours = loader.IsMade(s.Relation.Comment)
	}
	if s.Want.Contract.Dedup != loader.DedupKey || !ours {
		return unresolved(ref, found, fmt.Sprintf("table %s was not made by terapush, so they may be someone else's; "+
			"if not: %s, and resume", l.plan.name, deletion)), nil
	}
	first := label(l.plan.name, batchKind, ref.ID)
	n := l.labels.nextRemoval(first)
	if n > maxRemovals {
		return unresolved(ref, found, fmt.Sprintf("deleting them failed %d times: %s, and resume", maxRemovals, deletion)), nil
	}
	l.log.Warn("deleting the rows of a broken streaming load, to send the batch again",
		"batch", ref.ID.Number, "rows", found, "of", ref.Rows)
	attempt := max(ref.Attempt, 1)
	t := tags{label: removalLabel(l.plan.name, ref.ID, attempt), queryID: queryID(removalKind(n), ref.ID, attempt)}
	if _, err := l.run(ctx, statement{sql: deletion, tags: t}, nil); err != nil {
		if v := verdict(err); v.Applied == loader.No && !v.Retry {
			return unresolved(ref, found, fmt.Sprintf("the server does not delete them: %s; %s, and resume", loader.Explain(err), deletion)), nil
		}
		return loader.Resolution{}, failed("delete a part of the rows", err)
	}
	left, err := l.count(ctx, ref)
	switch {
	case err != nil:
		return loader.Resolution{}, err
	case left > 0:
		return unresolved(ref, left, "they are there after they were deleted"), nil
	}
	l.labels.spend(first, l.labels.current(first))
	return loader.Resolution{Applied: loader.No}, nil
}

// removeUploads removes the files that earlier attempts have left in the stage. No query reads them any more, and one
// that cannot be removed does no harm.
func (l *opened) removeUploads(ctx context.Context, s *sqlload.State, ref loader.Ref) {
	if m := l.plan.method.Name; m != methodInsert && m != methodInsertNoPresign {
		return
	}
	if err := l.exec(ctx, removeAttempts(l.plan.Stage, ref.ID, s.Want.Contract.Format)); err != nil {
		l.log.Warn("files of earlier attempts may remain in stage @"+l.plan.Stage, "batch", ref.ID.Number, "error", err)
	}
}

// skipped handles a statement that succeeded and wrote nothing: its label is taken, the server has read an empty file,
// or COPY has loaded the files before. The rows in the table decide.
func (l *opened) skipped(ctx context.Context, k kind, t tags, ref loader.Ref) (loader.Ack, error) {
	refuse := func(err *noRowsError) (loader.Ack, error) {
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: err, Hint: err.hint()}
	}
	if t.label == "" && k == batchKind {
		// Nothing was skipped, and without a promise the rows in the table may be anybody's.
		return refuse(&noRowsError{retry: true})
	}
	found, err := l.count(ctx, ref)
	if err != nil {
		return loader.Ack{}, err
	}
	again := ref.Attempt > 1
	switch sqlload.Outcome(found, ref.Rows) {
	case loader.Yes:
		if again {
			return loader.Ack{Rows: ref.Rows, AlreadyApplied: true}, nil
		}
		return refuse(&noRowsError{label: t.label, found: found}) // this run has not sent them yet
	case loader.No:
		if again { // an earlier attempt has taken the label; at the first one another run has
			l.labels.spend(label(l.plan.name, k, ref.ID), t.label)
		}
		return refuse(&noRowsError{label: t.label, retry: again})
	}
	return loader.Ack{}, &loader.Error{Op: "look for the rows", Applied: loader.Unknown, Hint: partialHint,
		Err: &partialError{ref, found}}
}

// noRowsError says that the server wrote nothing and that the batch is not in.
type noRowsError struct {
	label string // that is taken
	found int64  // rows with the keys of the batch, which are not of this run
	retry bool   // under the next label, if it has one
}

func (e *noRowsError) Error() string {
	text := "the server accepted the statement and wrote no row"
	if e.label != "" {
		text += fmt.Sprintf("; label %s is taken", e.label)
	}
	if e.found > 0 {
		text += fmt.Sprintf("; %d rows with the keys of the batch are in the table, which this run has not sent", e.found)
	}
	return text
}

func (e *noRowsError) hint() string {
	switch {
	case e.retry && e.label == "":
		return ""
	case e.retry:
		return "it is sent again under the next label"
	}
	return "was the run started twice, or were rows deleted meanwhile? start a new run"
}

// partialError says that a part of a batch is in the table, which a method that loads a batch at once must never leave.
type partialError struct {
	ref   loader.Ref
	found int64
}

func (e *partialError) Error() string {
	keys := keysOf(e.ref)
	return fmt.Sprintf("%d rows with keys %d to %d are in the table, where a batch of %d was sent",
		e.found, keys.First, keys.Last, e.ref.Rows)
}

const partialHint = "find out who put them there; with the rows of these keys deleted, a resume sends the batch again"

// unresolved is Resolve's answer where a part of the rows stays in the table.
func unresolved(ref loader.Ref, found int64, advice string) loader.Resolution {
	return loader.Resolution{Reason: fmt.Sprintf("%v (%s)", &partialError{ref, found}, advice)}
}
