package progress

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// SameTable checks that the table is the one that the run was filling. If its identity has changed, because it was
// rewritten (VACUUM FULL, OPTIMIZE, ALTER), dropped or emptied, one scan of the rows decides: those of every batch that
// is in must be there, and no others, which another run may have put into a table of the same name.
func (p *Progress) SameTable(ctx context.Context, r *runlog.Record) error {
	table := p.target.Found
	if table.Identity == r.Identity {
		return nil
	}
	changed := fmt.Sprintf("table %s has changed since run %s was filling it (it was %s, now it is %s)",
		table.Name, r.Run, r.Identity, table.Identity)
	were, in := p.done.Len(), p.done.Has
	if r.Stage == runlog.Verified {
		were, in = p.plan.ShardBatches(), func(int64) bool { return true }
	}
	switch {
	case p.plan.Files != nil && were == 0:
		r.Identity = table.Identity
		return p.log.Save(*r)
	case p.plan.Files != nil:
		return loader.Final(fmt.Errorf("%s: it was rewritten, emptied or made again, and the records of files have no keys "+
			"by which one could tell: compare it with the files, and load into a new one", changed))
	case p.target.Can.Counter == nil || were == 0:
		return loader.Final(fmt.Errorf("%s, and there are no rows to recognize it by; start a new run", changed))
	}

	// Without claims, batches that were on their way may be in. Batches are handed out in order.
	onTheWay := p.LastKnown() + p.OnTheWay()
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
		return loader.Final(fmt.Errorf("%s: %d of the %d batches that were in are missing or incomplete, "+
			"so it was made again or emptied; start a new run", changed, were-whole, were))
	case others > 0:
		return loader.Final(fmt.Errorf("%s: %d batches have rows that this run has not sent, "+
			"so something else has filled it; start a new run", changed, others))
	}
	p.notes.Warnf("table %s was rewritten since the earlier process (it was %s, now it is %s); "+
		"the batches that were in still are", table.Name, r.Identity, table.Identity)
	r.Identity = table.Identity
	return p.log.Save(*r)
}
