package push

import (
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// resume replaces the preflight for a run that another process began. The plan is the run's; only what this machine
// decides is fitted to it.
func (p *push) resume(ctx context.Context) error {
	record, err := p.reopen(ctx, p.state.replay, func(r runlog.Record) bool {
		return r.Plan.Dedup == loader.DedupTx
	})
	if err == nil {
		err = p.checkLimits()
	}
	if err == nil {
		err = p.target.prepare(ctx, p.preparation(record.Run, loader.CreateNever))
	}
	if err != nil {
		return err
	}
	if record.Stage != runlog.Verified {
		err = p.take(ctx)
	} else { // before the rows of another database are counted
		_, err = p.closed(ctx, record.Run)
	}
	if err != nil {
		return err
	}
	return p.proceed(ctx, record)
}

// take makes this process the run's owner in the database. A run without claims may have no row there.
func (p *push) take(ctx context.Context) error {
	claims := p.target.can.Claims
	if claims == nil || p.silent() {
		return p.samePlace()
	}
	err := p.target.ask(ctx, "run", func(ctx context.Context) (err error) {
		p.state.row, err = claims.Take(ctx, p.state.runName())
		return err
	})
	if errors.Is(err, loader.ErrUnknownRun) && p.plan.Dedup != loader.DedupTx {
		return p.samePlace()
	}
	return err
}

// proceed continues a run whose journal was replayed and whose table is prepared.
func (p *push) proceed(ctx context.Context, record runlog.Record) error {
	s := &p.state
	verified := record.Stage == runlog.Verified
	if !verified {
		caps := p.target.loader.Caps()
		if caps.Dedup == loader.DedupNone && p.plan.Dedup != loader.DedupNone {
			return fmt.Errorf("run %s is to deliver exactly once, and table %s cannot any more: %s", record.Run, p.target.table.Name, caps.Reason)
		}
		p.plan.adjustWorkers(caps)
		s.endByLastGroup() // before claims are read: that of the last group may have fewer rows than the others
		if err := s.takeClaims(ctx); err != nil {
			return err
		}
	}
	if err := s.sameTable(ctx, &record); err != nil || verified {
		return err
	}
	if p.plan.Dedup == loader.DedupNone && s.left() > 0 {
		onTheWay := int64(p.plan.Workers)
		if p.plan.Staged() {
			onTheWay = int64(p.plan.Commits) * min(p.plan.GroupBatches, s.left())
		}
		acked := ""
		if p.shared != nil {
			acked = ", and those acknowledged in its last two seconds,"
		}
		p.notes.warnf("delivery is at least once: batches that were on their way when the earlier process ended, %d at most,%s may be there twice",
			onTheWay, acked)
	}
	if p.plan.ByDuration {
		if err := s.endByLastBatch(); err != nil {
			return err
		}
	}
	if err := s.findStored(ctx); err != nil {
		return err
	}
	if record.Stage == runlog.Loaded && s.left() == 0 {
		return nil
	}
	if err := p.plan.refit(s.toUpload()); err != nil {
		return err
	}
	record.Stage, record.Plan = runlog.Loading, p.plan.Plan
	return s.log.Save(record)
}

// reopen takes over a run's folder, passes its journal to each, and connects. A damaged journal will do if dispensable reports
// that the database knows all that it held.
func (p *push) reopen(ctx context.Context, each func(event.Event), dispensable func(runlog.Record) bool) (runlog.Record, error) {
	c := &p.Config
	p.state.resumed = true
	before, err := runlog.Read(c.State, c.Resume)
	if err != nil {
		return runlog.Record{}, err
	}
	p.plan.Contract = before.Plan.Contract // each needs it
	p.state.log, err = runlog.Open(c.State, c.Resume, each, dispensable)
	if errors.As(err, new(*runlog.DamagedError)) {
		err = fmt.Errorf("%w; only the journal knows what was sent of run %s, so it cannot be resumed: start a new one", err, before.Run)
	}
	if err != nil {
		p.plan.Contract = loader.Contract{} // nothing to report of a run that another process owns
		return runlog.Record{}, err
	}
	if damage := p.state.log.Damage(); damage != nil {
		p.notes.warnf("%v; the run continues without it", damage)
	}
	r := p.state.log.Record()
	if config.IsRunName(r.Run) {
		return r, failed(Usage, fmt.Errorf("run %s is continued with --run-id %s and the flags that it was begun with, and verified with them", r.Run, r.Run))
	}
	if err := refuseChanges(c, r, p.Explicit); err != nil {
		return r, failed(Usage, err)
	}
	if err := p.sameDatabase(r); err != nil {
		return r, failed(Usage, err)
	}
	if err := p.adopt(r); err != nil {
		return r, err
	}
	return r, p.target.open(ctx)
}

// adopt takes method, rows and store from a record. The plan and not the flags decide about the rows: this version may
// have other defaults.
func (p *push) adopt(r runlog.Record) error {
	c := &p.Config
	p.plan.Plan = r.Plan
	c.Method, c.Dataset, c.Seed = r.Plan.Method, r.Plan.Dataset, r.Plan.Seed
	c.PayloadBytes, c.PayloadKind = r.Plan.PayloadBytes, r.Plan.PayloadKind
	c.Table, c.Earlier = tableOf(r), r.Target
	if c.Staging.Target() == nil && r.Via != "" {
		if err := c.Staging.Set(r.Via); err != nil {
			return err
		}
	}
	return failed(Usage, p.configure())
}

// endByLastGroup ends a run by duration where an earlier process had ended it: a group that is shorter than the others
// is the last, and must not grow after it was sent.
func (s *state) endByLastGroup() {
	h := &s.history
	if s.plan.ByDuration && h.newest >= 0 && h.newestLength < s.plan.GroupBatches {
		s.plan.EndAt(h.newest + h.newestLength)
	}
}

// lastKnown returns the last batch in journal and claims, −1 without one.
func (s *state) lastKnown() int64 { return max(s.history.last, s.done.Last()) }

// endByLastBatch ends a run by duration, whose time is over, behind the batches that were begun. They are handed out in
// order, so behind the last known one each worker may have begun one more.
func (s *state) endByLastBatch() error {
	last := s.lastKnown()
	if last < 0 {
		return loader.Final(errors.New("the run had not begun to load: start a new one"))
	}
	s.plan.EndAt(last + 1 + int64(s.plan.Workers))
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
