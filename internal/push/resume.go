package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// resume takes the place of the preflight for a run that another process left: the plan is the run's, the machine is ours.
func (p *push) resume(ctx context.Context) error {
	s := &p.state
	record, err := p.reopen(ctx, s.replay, func(r runlog.Record) bool {
		return r.Plan.Dedup == loader.DedupTx && r.Stage != runlog.Verified
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
	verified := record.Stage == runlog.Verified // its claims are gone
	if !verified {
		caps := p.target.loader.Caps()
		if caps.Dedup == loader.DedupNone && p.plan.Dedup != loader.DedupNone {
			return fmt.Errorf("run %s is to deliver exactly once, and table %s cannot any more: %s", record.Run, p.target.table.Name, caps.Reason)
		}
		p.plan.adjustWorkers(caps)
		s.endByLastGroup() // before claims are read: that of the last group has fewer rows than the others
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
		p.notes.warnf("delivery is at least once: batches that were on their way when the earlier process ended, %d at most, may be there twice",
			onTheWay)
	}
	s.endSessions(ctx)
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

// reopen takes over a run's folder, handing its journal to each, and connects. A journal that is missing or damaged is
// begun anew where needless says that everything can be learned elsewhere.
func (p *push) reopen(ctx context.Context, each func(event.Event), needless func(runlog.Record) bool) (runlog.Record, error) {
	c := &p.Config
	p.state.resumed = true
	before, err := runlog.Read(c.State, c.Resume)
	if err != nil {
		return runlog.Record{}, err
	}
	p.plan.Contract = before.Plan.Contract // each may ask
	p.state.log, err = runlog.Open(c.State, c.Resume, each)
	if errors.As(err, new(*runlog.DamagedError)) {
		if !needless(before) {
			err = fmt.Errorf("%w; only the journal knows what was sent of run %s, so it cannot be resumed: start a new one", err, before.Run)
		} else {
			p.notes.warnf("%v; the run goes on without it and begins a new one", err)
			if err = runlog.Renew(c.State, c.Resume); err == nil {
				p.state.log, err = runlog.Open(c.State, c.Resume, each)
			}
		}
	}
	if err != nil {
		p.plan.Contract = loader.Contract{} // of a run that is another's there is nothing to report
		return runlog.Record{}, err
	}
	r := p.state.log.Record()
	if err := refuseChanges(c, r, p.Explicit); err != nil {
		return r, failed(Usage, err)
	}
	if err := p.sameDatabase(r); err != nil {
		return r, failed(Usage, err)
	}
	p.plan.Plan = r.Plan
	// What makes the rows comes from the plan and not from the flags: defaults may be others in this version.
	c.Method, c.Dataset, c.Seed = r.Plan.Method, r.Plan.Dataset, r.Plan.Seed
	c.PayloadBytes, c.PayloadKind = r.Plan.PayloadBytes, r.Plan.PayloadKind
	c.Table, c.Earlier = tableOf(r), r.Target
	if c.Via.Target() == nil && r.Via != "" {
		if err := c.Via.Set(r.Via); err != nil {
			return r, err
		}
	}
	if err := p.configure(); err != nil {
		return r, failed(Usage, err)
	}
	return r, p.target.open(ctx)
}

// endByLastGroup ends a run by duration where an earlier process had ended it: a group that is shorter than the others is
// the last one, and must stay what it was when it was sent.
func (s *state) endByLastGroup() {
	h := &s.history
	if s.plan.ByDuration && h.newest >= 0 && h.newestLength < s.plan.GroupBatches {
		s.plan.ByDuration = false
		s.plan.Rows = min(s.plan.Rows, (h.newest+h.newestLength)*s.plan.BatchRows)
	}
}

// lastKnown is the last batch that anybody knows of, −1 without one.
func (s *state) lastKnown() int64 { return max(s.history.last, s.done.Last()) }

// endByLastBatch ends a run by duration, whose time is over: what was begun is finished, and that is the run. Batches are
// handed out in order, so behind the last one that anybody knows of each worker may have begun one more.
func (s *state) endByLastBatch() error {
	last := s.lastKnown()
	if last < 0 {
		return loader.Final(errors.New("the run had not begun to load: start a new one"))
	}
	s.plan.ByDuration = false
	s.plan.Rows = min(s.plan.Rows, (last+1+int64(s.plan.Workers))*s.plan.BatchRows)
	return nil
}

// takeClaims replaces what the journal says was applied by what the claim table says, where there is one.
func (s *state) takeClaims(ctx context.Context) error {
	claimed, can, err := s.claimed(ctx)
	if err != nil || !can {
		return err
	}
	if lost := s.done.Without(&claimed); lost.Len() > 0 {
		if err := s.rowsGone(ctx, lost.Has); err != nil {
			return err
		}
		s.warnOfLoss(lost.Len())
	}
	if s.log.Renewed() { // what was acknowledged is not known, so that it could be missed
		if err := s.rowsGone(ctx, func(number int64) bool { return !claimed.Has(number) }); err != nil {
			return err
		}
	}
	s.done = claimed
	return nil
}

// findLost finds the batches that were acknowledged and are claimed no more, and takes them back: a server that crashed may
// have given back commits it had confirmed, by its own settings or because the table is unlogged.
func (s *state) findLost(ctx context.Context) (lost runlog.Done, err error) {
	s.done.Merge(&s.acked)
	s.acked = runlog.Done{}
	claimed, can, err := s.claimed(ctx)
	if err != nil || !can {
		return lost, err
	}
	if lost = s.done.Without(&claimed); lost.Len() > 0 {
		if err := s.rowsGone(ctx, lost.Has); err != nil {
			return runlog.Done{}, err
		}
		s.lost = true
	}
	s.done = claimed
	return lost, nil
}

func (s *state) warnOfLoss(batches int64) {
	what := fmt.Sprintf("%d batches that it had acknowledged; they are", batches)
	if batches == 1 {
		what = "a batch that it had acknowledged; it is"
	}
	s.notes.warn("the server lost " + what + " sent again")
}

// rowsGone makes sure, by one scan, that batches whose claims are missing have no rows in the table. A crash takes rows
// and claims together; rows without claims mean that somebody emptied the claim table, and to send them again would
// double them.
func (s *state) rowsGone(ctx context.Context, unclaimed func(number int64) bool) error {
	if s.target.can.Counter == nil {
		return nil
	}
	found, err := s.rowsThere(ctx)
	if err != nil {
		return err
	}
	there := 0
	for number := range found {
		if unclaimed(number) {
			there++
		}
	}
	if there == 0 {
		return nil
	}
	return loader.Final(fmt.Errorf("%d batches have rows in %s and no claims: somebody removed claims of run %s; "+
		"nothing is sent again, since that would double rows", there, s.target.table.Name, s.run()))
}

// rowsThere counts the run's rows by one scan: the number of rows of every batch that has some.
func (s *state) rowsThere(ctx context.Context) (map[int64]int64, error) {
	all := loader.KeyRange{First: s.plan.FirstKey, Last: s.plan.LastKey()}
	there, err := s.target.rowsIn(ctx, "rows", all, s.plan.BatchRows)
	if err != nil {
		return nil, fmt.Errorf("looking for rows of run %s: %w", s.run(), err)
	}
	return there, nil
}

// endSessionsTime bounds the wait for the end of an earlier process's sessions, which roll back first.
const endSessionsTime = time.Minute

// endSessions ends what earlier processes left at work on the server: the sessions of one that was killed or cut off
// hold their claims until the server notices, which can take minutes. Batches are handed out in order, so those on
// their way were among the first that are not in, one a worker. It is not needed for the rows to be right: where it
// fails, the claims make the load wait.
func (s *state) endSessions(ctx context.Context) {
	resolver := s.target.can.Resolver
	if resolver == nil || s.plan.Dedup != loader.DedupTx || s.plan.Staged() {
		return // the commit groups that were begun are known by name, and the engine asks for each before it goes on
	}
	ctx, cancel := context.WithTimeout(ctx, endSessionsTime)
	defer cancel()
	var open []int64
	for n := int64(0); n < s.plan.Batches() && len(open) < s.plan.Workers; n++ {
		if !s.done.Has(n) {
			open = append(open, n)
		}
	}
	in := make([]bool, len(open))
	var asked errgroup.Group
	asked.SetLimit(8)
	for i, n := range open {
		asked.Go(func() error {
			ref := s.ref(n)
			ref.Attempt = s.history.begun[n].newest
			return s.target.ask(ctx, fmt.Sprintf("batch %d", n), func(ctx context.Context) error {
				found, err := resolver.Resolve(ctx, ref)
				in[i] = found.Applied == loader.Yes
				return err
			})
		})
	}
	if err := asked.Wait(); err != nil {
		s.notes.warnf("sessions of an earlier process may still be at work, and batches wait for them: %v", err)
	}
	for i, n := range open {
		if in[i] {
			s.done.Add(n)
		}
	}
}
