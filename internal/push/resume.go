package push

import (
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// catchUp finds what earlier processes of the run, or of its shard, have done, and plans for what is left.
func (p *push) catchUp(ctx context.Context) error {
	s := p.progress
	record := s.Log().Record()
	if err := p.input.recall(); err != nil {
		return err
	}
	if record.Stage == runlog.Verified { // only the table is looked at again
		return s.SameTable(ctx, &record)
	}
	if err := p.replanRun(record, facts{record.Plan.Spec, p.target.Loader.Caps(), p.resources}); err != nil {
		return err
	}
	p.endByLastGroup() // before claims are read: that of the last group may have fewer rows than the others
	if err := s.TakeClaims(ctx); err != nil {
		return err
	}
	if err := p.emptied(); err != nil {
		return err
	}
	if err := s.SameTable(ctx, &record); err != nil {
		return err
	}
	p.warnOfDoubles()
	if p.plan.ByDuration() {
		if err := p.endByLastBatch(); err != nil {
			return err
		}
	}
	if err := s.FindStored(ctx); err != nil {
		return err
	}
	if record.Stage == runlog.Loaded && s.Left() == 0 {
		return nil
	}

	left := p.facts
	left.resources.Made, left.resources.Unfilled = p.plan.ShardBatches()-s.ToUpload(), s.ToUpload() == 0
	if err := p.replan(left); err != nil {
		return err
	}
	record.Stage, record.Plan = runlog.Loading, p.plan
	return s.Log().Save(record)
}

// emptied returns an error if a named run has claims and no rows. The record of a run without a name knows the table.
func (p *push) emptied() error {
	if !p.named() || p.store.shared != nil || p.progress.In() == 0 || p.target.Found.HasRows {
		return nil
	}
	return loader.Final(fmt.Errorf("run %s has claims and table %s has no rows: it was emptied or made again; "+
		"terapush forget removes the claims, so that the run can begin anew", p.progress.ID(), p.target.Found.Name))
}

// warnOfDoubles says how many batches may be in the table twice.
func (p *push) warnOfDoubles() {
	s := p.progress
	if p.plan.Dedup != loader.DedupNone || s.Left() == 0 {
		return
	}
	onTheWay := s.OnTheWay()
	if p.plan.Staged() {
		onTheWay = int64(p.plan.Commits) * min(p.plan.GroupBatches, s.Left())
	}
	acked := ""
	if p.store.shared != nil {
		acked = " and those acknowledged in its last two seconds,"
	}
	p.notes.Warnf("delivery is at least once: batches that were on their way when the earlier process ended, "+
		"%d at most,%s may be duplicated",
		onTheWay, acked)
}

// endByLastGroup ends a run by duration where an earlier process had ended it: a group that is shorter than the others
// is the last, and must not grow after it was sent.
func (p *push) endByLastGroup() {
	first, batches := p.progress.LastGroup()
	if p.plan.ByDuration() && first >= 0 && batches < p.plan.GroupBatches {
		p.endAt(first + batches)
	}
}

// endByLastBatch ends a run by duration, whose time is over, behind the batches that were begun. They are handed out in
// order, so behind the last known one each worker may have begun one more.
func (p *push) endByLastBatch() error {
	last := p.progress.LastKnown()
	if last < 0 {
		return loader.Final(errors.New("the run had not begun to load: start a new one"))
	}
	p.endAt(last + 1 + p.progress.OnTheWay())
	return nil
}
