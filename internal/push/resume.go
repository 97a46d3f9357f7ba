package push

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// catchUp finds what earlier processes of the run, or of its shard, have done, and plans for what is left.
func (p *push) catchUp(ctx context.Context) error {
	s := &p.state
	record := s.log.Record()
	if record.Stage == runlog.Verified { // only the table is looked at again
		return s.sameTable(ctx, &record)
	}
	if err := p.replanRun(record, p.target.loader.Caps()); err != nil {
		return err
	}
	p.endByLastGroup() // before claims are read: that of the last group may have fewer rows than the others
	if err := s.takeClaims(ctx); err != nil {
		return err
	}
	if err := p.emptied(); err != nil {
		return err
	}
	if err := s.sameTable(ctx, &record); err != nil {
		return err
	}
	p.warnOfDoubles()
	if p.plan.ByDuration() {
		if err := p.endByLastBatch(); err != nil {
			return err
		}
	}
	if err := s.findStored(ctx); err != nil {
		return err
	}
	if record.Stage == runlog.Loaded && s.left() == 0 {
		return nil
	}

	p.resources.Made = p.plan.PartBatches() - s.toUpload()
	if err := p.replan(p.caps); err != nil {
		return err
	}
	record.Stage, record.Plan = runlog.Loading, p.plan
	return s.log.Save(record)
}

// emptied returns an error if a named run has claims and no rows. The record of a run without a name knows the table.
func (p *push) emptied() error {
	if !p.named() || p.common.shared != nil || p.state.done.Len() == 0 || p.target.table.HasRows {
		return nil
	}
	return loader.Final(fmt.Errorf("run %s has claims and table %s has no rows: it was emptied or made again; "+
		"terapush forget removes the claims, so that the run can begin anew", p.state.id, p.target.table.Name))
}

// warnOfDoubles says how many batches may be in the table twice.
func (p *push) warnOfDoubles() {
	s := &p.state
	if p.plan.Dedup != loader.DedupNone || s.left() == 0 {
		return
	}
	onTheWay := int64(s.earlier.Workers)
	if p.plan.Staged() {
		onTheWay = int64(p.plan.Commits) * min(p.plan.GroupBatches, s.left())
	}
	acked := ""
	if p.common.shared != nil {
		acked = ", and those acknowledged in its last two seconds,"
	}
	p.notes.warnf("delivery is at least once: batches that were on their way when the earlier process ended, %d at most,%s may be there twice",
		onTheWay, acked)
}

// endByLastGroup ends a run by duration where an earlier process had ended it: a group that is shorter than the others
// is the last, and must not grow after it was sent.
func (p *push) endByLastGroup() {
	h := &p.state.history
	if p.plan.ByDuration() && h.newest >= 0 && h.newestLength < p.plan.GroupBatches {
		p.endAt(h.newest + h.newestLength)
	}
}

// lastKnown returns the last batch in journal and claims, −1 without one.
func (s *state) lastKnown() int64 { return max(s.history.last, s.done.Last()) }

// endByLastBatch ends a run by duration, whose time is over, behind the batches that were begun. They are handed out in
// order, so behind the last known one each worker may have begun one more.
func (p *push) endByLastBatch() error {
	last := p.state.lastKnown()
	if last < 0 {
		return loader.Final(errors.New("the run had not begun to load: start a new one"))
	}
	p.endAt(last + 1 + int64(p.state.earlier.Workers))
	return nil
}

// takeClaims replaces what the journal has as applied by the claims, if the contract makes any.
func (s *state) takeClaims(ctx context.Context) error {
	claimed, ok, err := s.claimed(ctx)
	if err != nil || !ok {
		return err
	}
	if lost := s.done.Without(&claimed); lost.Len() > 0 {
		if err := s.requireNoRows(ctx, lost.Has); err != nil {
			return err
		}
		s.warnOfLoss(lost.Len())
	}
	if s.log.Damage() != nil { // acknowledged batches are not known, so none can be missed
		if err := s.requireNoRows(ctx, func(number int64) bool { return !claimed.Has(number) }); err != nil {
			return err
		}
	}
	s.done = claimed
	return nil
}

// findLost returns the batches that were acknowledged and have no claim any more, which are to be sent again. A server
// that crashed may have lost commits it had confirmed, by its settings or because the table is unlogged.
func (s *state) findLost(ctx context.Context) (lost runlog.Done, err error) {
	s.done.Merge(&s.acked)
	s.acked = runlog.Done{}
	claimed, ok, err := s.claimed(ctx)
	if err != nil || !ok {
		return lost, err
	}
	if lost = s.done.Without(&claimed); lost.Len() > 0 {
		if err := s.requireNoRows(ctx, lost.Has); err != nil {
			return runlog.Done{}, err
		}
		s.lost = true
	}
	s.done = claimed
	return lost, nil
}

func (s *state) warnOfLoss(batches int64) {
	s.notes.warnf("the server lost %s that it had acknowledged; the lost rows are sent again",
		english.Plural(int(batches), "batch", "batches"))
}

// requireNoRows checks, by one scan, that batches without claims have no rows. A crash takes both; rows without claims
// mean that somebody emptied the claim table, and sending them again would double them.
func (s *state) requireNoRows(ctx context.Context, unclaimed func(number int64) bool) error {
	if s.target.can.Counter == nil {
		return nil
	}
	counted, err := s.countRows(ctx)
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
		"nothing is sent again, since that would double rows", rest, s.target.table.Name, s.run()))
}

// countRows returns, by one scan, the number of rows of every batch of this process that has some.
func (s *state) countRows(ctx context.Context) (map[int64]int64, error) {
	counted, err := s.target.rowsIn(ctx, "rows", s.plan.PartKeys(), s.plan.BatchRows)
	if err != nil {
		return nil, fmt.Errorf("looking for rows of run %s: %w", s.run(), err)
	}
	first, _ := s.plan.Part()
	numbered := make(map[int64]int64, len(counted))
	for n, rows := range counted {
		numbered[first+n] = rows
	}
	return numbered, nil
}
