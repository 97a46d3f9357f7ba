package push

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// moving is the phase in which workers work.
func (p *push) moving() event.Phase {
	if p.contract.Staged() {
		return event.Stage
	}
	return event.Load
}

// ref is a batch of the run by its number.
func (p *push) ref(number int64) loader.Ref {
	return loader.Ref{
		ID: batch.ID{Run: p.id(), Number: number}, First: p.plan.FirstKey + number*p.plan.BatchRows, Rows: p.plan.BatchSize(number),
	}
}

// group is a commit group of the run by its number; without members where the run has no such group.
func (p *push) group(number int64) loader.Group {
	first := number * p.contract.GroupBatches
	g := loader.Group{Ref: p.ref(first)}
	g.ID.Number, g.Rows = number, 0
	for n := first; n >= 0 && n < min(first+p.contract.GroupBatches, p.plan.Batches()); n++ {
		g.Members = append(g.Members, p.ref(n))
		g.Rows += p.plan.BatchSize(n)
	}
	return g
}

// claimedAs gives the batches that a claim stands for: under a staged contract it is that of a group.
func (p *push) claimedAs(number, rows int64) ([]loader.Ref, error) {
	what, of := "batch", []loader.Ref{p.ref(number)}
	known := number >= 0 && number < p.plan.Batches() && rows == p.plan.BatchSize(number)
	if p.contract.Staged() {
		g := p.group(number)
		what, of, known = "commit group", g.Members, len(g.Members) > 0 && rows == g.Rows
	}
	if !known {
		return nil, loader.Final(fmt.Errorf("%s %d with %d rows is claimed, and the run has no such %s", what, number, rows, what))
	}
	return of, nil
}

// endOfGroups ends a run by duration where an earlier process had ended it: a group that is shorter than the others is
// the last one, and must stay what it was when it was sent.
func (p *push) endOfGroups() {
	h := &p.history
	if !p.plan.ByDuration || h.newest < 0 || h.newestLength >= p.contract.GroupBatches {
		return
	}
	p.plan.ByDuration = false
	p.plan.Rows = min(p.plan.Rows, (h.newest+h.newestLength)*p.plan.BatchRows)
}

// findStored finds the batches that earlier processes had put into the store and that need no second upload: those that
// the journal knows and the store still has with the same length. Everything else is uploaded again.
func (p *push) findStored(ctx context.Context) error {
	inventory, can := p.loader.(loader.Inventory)
	if !can || !p.contract.Staged() || len(p.history.stored) == 0 {
		return nil
	}
	found := make(map[int64]bool)
	err := inventory.Objects(ctx, p.id(), func(_ string, number, bytes int64) error {
		e, stored := p.history.stored[number]
		found[number] = stored && e.Encoded == bytes
		return nil
	})
	if err != nil {
		return fmt.Errorf("looking for what run %s has in the store: %w", p.id(), err)
	}
	for _, number := range slices.Sorted(maps.Keys(p.history.stored)) {
		e := p.history.stored[number]
		if found[number] && !p.done.Has(number) && number < p.plan.Batches() {
			p.waiting = append(p.waiting, engine.Stored{Ref: p.ref(number), Payload: e.Payload, Encoded: e.Encoded})
			p.skipped.Add(number)
		}
	}
	return nil
}

// toUpload is how many batches workers have something to do with.
func (p *push) toUpload() int64 { return p.left() - int64(len(p.waiting)) }

// needless tells whether a batch needs no buffer: it is in, or in the store.
func (p *push) needless(number int64) bool { return p.done.Has(number) || p.skipped.Has(number) }
