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
	lost, ok, err := p.replaceByClaims(ctx)
	if err != nil || !ok {
		return err
	}
	if lost.Len() > 0 {
		p.WarnOfLoss(lost.Len())
	}
	if p.log.Damage() == nil {
		return nil
	}
	// Acknowledged batches are not known, so none can be missed.
	return p.requireNoRows(ctx, func(number int64) bool { return !p.done.Has(number) })
}

// replaceByClaims replaces the batches that are known to be in by those with claims, and returns those of them that
// have none any more. ok is false if the contract makes none.
func (p *Progress) replaceByClaims(ctx context.Context) (lost runlog.Done, ok bool, err error) {
	claimed, ok, err := p.claimed(ctx)
	if err != nil || !ok {
		return lost, ok, err
	}
	if lost = p.done.Without(&claimed); lost.Len() > 0 {
		if err := p.requireNoRows(ctx, lost.Has); err != nil {
			return lost, true, err
		}
	}
	p.done = claimed
	return lost, true, nil
}

// FirstIn reports whether batch 0 is in, whichever shard sends it.
func (p *Progress) FirstIn(ctx context.Context) (is bool, err error) {
	err = p.target.Ask(ctx, "claims", func(ctx context.Context) error {
		return p.target.Can.Claims.Claimed(ctx, p.row.Run, func(number, _ int64) error {
			is = is || number == 0
			return nil
		})
	})
	if err != nil {
		return false, fmt.Errorf("reading the claims of run %s: %w", p.id, err)
	}
	return is, nil
}

// FindLost returns the batches that were acknowledged and have no claim any more, which are to be sent again. A server
// that crashed may have lost commits it had confirmed, by its settings or because the table is unlogged.
func (p *Progress) FindLost(ctx context.Context) (lost runlog.Done, err error) {
	p.done.Merge(&p.acked)
	p.acked = runlog.Done{}
	lost, _, err = p.replaceByClaims(ctx)
	p.lost = p.lost || lost.Len() > 0
	return lost, err
}

// CountClaims reads how many rows the claims of the run have, and how many records of files those batches left
// out. From then on Before and AmountOf know these.
func (p *Progress) CountClaims(ctx context.Context) (rows, rejected int64, err error) {
	claims := p.target.Can.Claims
	err = p.target.Ask(ctx, "claims", func(ctx context.Context) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		rows, rejected = 0, 0
		clear(p.rejected)
		return claims.Claimed(ctx, p.id, func(number, n int64) error {
			rows += n
			if number < p.plan.Cut.Len() {
				p.rejected[number] = p.plan.BatchSize(number) - n
				rejected += p.rejected[number]
			}
			return nil
		})
	})
	if err != nil {
		return 0, 0, fmt.Errorf("reading the claims of run %s: %w", p.id, err)
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
		"nothing is sent again, since that would double rows: put the claims back from a backup, or start a new run into "+
		"another table", rest, p.target.Found.Name, p.id))
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
	return loader.Final(fmt.Errorf("%d batches of run %s were acknowledged and have no claims any more: either the "+
		"server has lost what it had committed, or somebody removed claims. The records of files have no keys by which one "+
		"could tell, so nothing is sent again: "+
		"compare table %s with the files", lost, p.id, p.target.Found.Name))
}

// acknowledged reports whether a process has noted that a batch is in.
func (p *Progress) acknowledged(number int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done.Has(number) || p.acked.Has(number)
}

// countRows returns, by one scan, the number of rows of every batch of this process that has some.
func (p *Progress) countRows(ctx context.Context) (map[int64]int64, error) {
	counted, err := p.target.RowsIn(ctx, "rows", p.plan.ShardKeys(), p.plan.BatchRows)
	if err != nil {
		return nil, fmt.Errorf("looking for rows of run %s: %w", p.id, err)
	}
	first, _ := p.plan.ShardRange()
	numbered := make(map[int64]int64, len(counted))
	for n, rows := range counted {
		numbered[first+n] = rows
	}
	return numbered, nil
}
