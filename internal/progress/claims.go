package progress

import (
	"context"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// TakeClaims replaces what the journal has as applied by the claims, if the contract makes any.
func (p *Progress) TakeClaims(ctx context.Context) error {
	claimed, ok, err := p.claimed(ctx)
	if err != nil || !ok {
		return err
	}
	if lost := p.done.Without(&claimed); lost.Len() > 0 {
		if err := p.requireNoRows(ctx, lost.Has); err != nil {
			return err
		}
		p.WarnOfLoss(lost.Len())
	}
	if p.Log.Damage() != nil { // acknowledged batches are not known, so none can be missed
		if err := p.requireNoRows(ctx, func(number int64) bool { return !claimed.Has(number) }); err != nil {
			return err
		}
	}
	p.done = claimed
	return nil
}

// FirstIn reports whether batch 0 is in, whichever shard sends it.
func (p *Progress) FirstIn(ctx context.Context) (is bool, err error) {
	err = p.target.Ask(ctx, "claims", func(ctx context.Context) error {
		return p.target.Can.Claims.Claimed(ctx, p.Row.Run, func(number, _ int64) error {
			is = is || number == 0
			return nil
		})
	})
	if err != nil {
		return false, fmt.Errorf("reading the claims of run %s: %w", p.ID, err)
	}
	return is, nil
}

// FindLost returns the batches that were acknowledged and have no claim any more, which are to be sent again. A server
// that crashed may have lost commits it had confirmed, by its settings or because the table is unlogged.
func (p *Progress) FindLost(ctx context.Context) (lost runlog.Done, err error) {
	p.done.Merge(&p.acked)
	p.acked = runlog.Done{}
	claimed, ok, err := p.claimed(ctx)
	if err != nil || !ok {
		return lost, err
	}
	if lost = p.done.Without(&claimed); lost.Len() > 0 {
		if err := p.requireNoRows(ctx, lost.Has); err != nil {
			return runlog.Done{}, err
		}
		p.lost = true
	}
	p.done = claimed
	return lost, nil
}

// CountClaims reads how many rows the claims of the run have, and how many records of files their batches went in without.
// From then on Amount knows these.
func (p *Progress) CountClaims(ctx context.Context) (rows, rejected int64, err error) {
	claims := p.target.Can.Claims
	err = p.target.Ask(ctx, "claims", func(ctx context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		rows, rejected = 0, 0
		clear(p.rejected)
		return claims.Claimed(ctx, p.ID, func(number, n int64) error {
			rows += n
			if number < p.plan.Cut.Len() {
				p.rejected[number] = p.plan.BatchSize(number) - n
				rejected += p.rejected[number]
			}
			return nil
		})
	})
	if err != nil {
		return 0, 0, fmt.Errorf("reading the claims of run %s: %w", p.ID, err)
	}
	return rows, rejected, nil
}

// WarnOfLoss says that batches which were acknowledged are gone.
func (p *Progress) WarnOfLoss(batches int64) {
	p.notes.Warnf("the server lost %s that it had acknowledged; the lost rows are sent again",
		english.Plural(int(batches), "batch", "batches"))
}

// requireNoRows checks, by one scan, that batches without claims have no rows. A crash takes both; rows without claims
// mean that somebody emptied the claim table, and sending them again would double them.
func (p *Progress) requireNoRows(ctx context.Context, unclaimed func(number int64) bool) error {
	if p.target.Can.Counter == nil {
		return p.requireKnown(unclaimed)
	}
	counted, err := p.countRows(ctx)
	if err != nil {
		return err
	}
	rest := 0
	for number := range counted {
		if unclaimed(number) {
			rest++
		}
	}
	if rest == 0 {
		return nil
	}
	return loader.Final(fmt.Errorf("%d batches have rows in %s and no claims: somebody removed claims of run %s; "+
		"nothing is sent again, since that would double rows: put the claims back from a backup, or start a new run into another table", rest, p.target.Found.Name, p.ID))
}

// requireKnown is requireNoRows for rows without keys, which nobody can look for.
func (p *Progress) requireKnown(unclaimed func(number int64) bool) error {
	if p.plan.Files == nil {
		return nil
	}
	lost := 0
	for n := range p.plan.Cut.Len() {
		if p.acknowledged(n) && unclaimed(n) {
			lost++
		}
	}
	if lost == 0 {
		return nil
	}
	return loader.Final(fmt.Errorf("%d batches of run %s were acknowledged and have no claims any more: either the server has lost what it had "+
		"committed, or somebody removed claims. The records of files have no keys by which one could tell, so nothing is sent again: "+
		"compare table %s with the files", lost, p.ID, p.target.Found.Name))
}

// acknowledged reports whether a process has noted that a batch is in.
func (p *Progress) acknowledged(number int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done.Has(number) || p.acked.Has(number)
}

// countRows returns, by one scan, the number of rows of every batch of this process that has some.
func (p *Progress) countRows(ctx context.Context) (map[int64]int64, error) {
	counted, err := p.target.RowsIn(ctx, "rows", p.plan.PartKeys(), p.plan.BatchRows)
	if err != nil {
		return nil, fmt.Errorf("looking for rows of run %s: %w", p.ID, err)
	}
	first, _ := p.plan.Part()
	numbered := make(map[int64]int64, len(counted))
	for n, rows := range counted {
		numbered[first+n] = rows
	}
	return numbered, nil
}

// SameTable checks that the table is the one that the run was filling. If its identity has changed, because it was
// rewritten (VACUUM FULL, OPTIMIZE, ALTER), dropped or emptied, one scan of the rows decides: those of every batch that
// is in must be there, and no others, which another run may have put into a table of the same name.
func (p *Progress) SameTable(ctx context.Context, r *runlog.Record) error {
	table := p.target.Found
	if table.Identity == r.Identity {
		return nil
	}
	changed := fmt.Sprintf("table %s has changed since run %s was filling it (it was %s, now it is %s)", table.Name, r.Run, r.Identity, table.Identity)
	were, in := p.done.Len(), p.done.Has
	if r.Stage == runlog.Verified {
		were, in = p.plan.PartBatches(), func(int64) bool { return true }
	}
	if p.plan.Files != nil && were == 0 {
		r.Identity = table.Identity
		return p.Log.Save(*r)
	}
	if p.plan.Files != nil {
		return loader.Final(fmt.Errorf("%s: it was rewritten, emptied or made again, and the records of files have no keys by which one "+
			"could tell: compare it with the files, and load into a new one", changed))
	}
	if p.target.Can.Counter == nil || were == 0 {
		return loader.Final(fmt.Errorf("%s, and there are no rows to recognize it by; start a new run", changed))
	}
	// Without claims, batches that were on their way may be in. Batches are handed out in order.
	onTheWay := p.LastKnown() + int64(p.Earlier.Workers)
	counted, err := p.countRows(ctx)
	if err != nil {
		return err
	}
	var whole, others int64
	for number, rows := range counted {
		switch {
		case in(number):
			if rows == p.plan.BatchSize(number) || p.plan.Delivery == loader.AtLeastOnce {
				whole++
			}
		case p.plan.Dedup == loader.DedupTx || number > onTheWay:
			others++
		}
	}
	switch {
	case whole < were:
		return loader.Final(fmt.Errorf("%s: %d of the %d batches that were in are missing or incomplete, so it was made again or emptied; start a new run",
			changed, were-whole, were))
	case others > 0:
		return loader.Final(fmt.Errorf("%s: %d batches have rows that this run has not sent, so something else has filled it; start a new run", changed, others))
	}
	p.notes.Warnf("table %s was rewritten since the earlier process (it was %s, now it is %s); the batches that were in still are",
		table.Name, r.Identity, table.Identity)
	r.Identity = table.Identity
	return p.Log.Save(*r)
}
