package databend

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// Resolve ends the queries of earlier attempts on every host, waits until none is at work, and then looks for the rows.
// The label alone would not do: the server looks at it before a statement and not when it commits, so a query that is
// still running could put the rows in a second time.
func (db *database) Resolve(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	p, err := db.prepared()
	if err != nil {
		return loader.Resolution{}, err
	}
	k := ofBatch
	if p.contract.Staged() {
		k = ofGroup
	}
	if err := db.endAttempts(ctx, k, ref.ID, max(ref.Attempt, 1)); err != nil {
		return loader.Resolution{}, err
	}
	found, err := db.count(ctx, p, ref)
	if err != nil {
		return loader.Resolution{}, failed("look for the rows", err)
	}
	switch applied := sqlload.Outcome(found, ref.Rows); {
	case applied != loader.Unknown:
		db.removeAttached(ctx, p, ref)
		return loader.Resolution{Applied: applied}, nil
	case found < ref.Rows && db.plan.method.Name == streamingLoad:
		return db.removePart(ctx, p, ref, found)
	}
	return undecided(ref, found, ""), nil
}

// maxRemovals is how often the rows of one attempt are tried to be deleted, in one process of the run. Every try has a
// query id of its own, since the server answers a known one with what became of the earlier query.
const maxRemovals = 4

// removePart deletes the rows that a streaming load left whose connection broke.
//
// Every connection that breaks in the middle of a body leaves some (see endFirst), so this is no rare accident. No query
// of the batch is at work any more; the rows have numbers of this batch; the table is one that terapush made, so nobody
// else has put rows of such numbers there; and they were never acknowledged. Their label is spent: it was written with
// them.
//
// The deletion can lose its answer like any statement, and would then delete what a later attempt has put in. So it is
// marked as an attempt is: the id lets Resolve end it, and the label, one for each attempt that it follows, lets no
// second one run after it. An error is no answer, and Resolve is asked again.
func (db *database) removePart(ctx context.Context, p *prepared, ref loader.Ref, found int64) (loader.Resolution, error) {
	deletion := p.deleteRows(rangeOf(ref))
	if p.contract.Dedup != loader.DedupKey || !p.ours {
		return undecided(ref, found, fmt.Sprintf("table %s was not made by terapush, so they may be somebody's; "+
			"if they are not: %s, and resume", db.plan.name, deletion)), nil
	}
	try := db.labels.removes(label(db.plan.name, ofBatch, ref.ID))
	if try > maxRemovals {
		return undecided(ref, found, fmt.Sprintf("to delete them failed %d times: %s, and resume", maxRemovals, deletion)), nil
	}
	db.log.Warn("removing the rows that a broken streaming load left behind, to send the batch again",
		"batch", ref.ID.Number, "rows", found, "of", ref.Rows)
	attempt := max(ref.Attempt, 1)
	m := marks{label: removalLabel(db.plan.name, ref.ID, attempt), queryID: queryID(removal(try), ref.ID, attempt)}
	if err := db.run(ctx, statement{sql: deletion, marks: m}, nil); err != nil {
		if v := verdict(err); v.Applied == loader.No && !v.Retry {
			return undecided(ref, found, fmt.Sprintf("the server does not delete them: %v; %s, and resume", err, deletion)), nil
		}
		return loader.Resolution{}, failed("remove a part of the rows", err)
	}
	left, err := db.count(ctx, p, ref)
	switch {
	case err != nil:
		return loader.Resolution{}, failed("look for the rows", err)
	case left > 0:
		return undecided(ref, left, "they are there although they were deleted"), nil
	}
	db.labels.spend(label(db.plan.name, ofBatch, ref.ID))
	return loader.Resolution{Applied: loader.No}, nil
}

// removeAttached removes the files that earlier attempts at a batch have left in the stage: whoever was killed, or had no
// answer, could not. No query reads them any more. What cannot be removed is in nobody's way.
func (db *database) removeAttached(ctx context.Context, p *prepared, ref loader.Ref) {
	if m := db.plan.method.Name; m != insert && m != insertNoPresign {
		return
	}
	err := db.run(ctx, statement{sql: removeAttempts(db.plan.stage, ref.ID, p.contract.Format)}, nil)
	if err != nil {
		db.log.Warn("files of earlier attempts may be left in stage @"+db.plan.stage, "batch", ref.ID.Number, "error", err)
	}
}

func rangeOf(ref loader.Ref) loader.KeyRange {
	return loader.KeyRange{First: ref.First, Last: ref.First + ref.Rows - 1}
}

// count counts the rows of a batch or group by their numbers.
func (db *database) count(ctx context.Context, p *prepared, ref loader.Ref) (int64, error) {
	return db.number(ctx, p.SelectCount(rangeOf(ref)))
}
