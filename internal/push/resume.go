package push

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// takeOver goes on with a run that another process left: the plan is the run's, the machine is ours.
func (p *push) takeOver(ctx context.Context) error {
	record, err := p.reopen(ctx, func(e event.Event) {
		p.history.add(e, p.contract, &p.done)
		p.keepLength(e)
	}, func(r runlog.Record) bool {
		return r.Plan.Dedup == loader.DedupTx && r.Stage != runlog.Verified
	})
	if err == nil {
		err = p.fits()
	}
	if err == nil {
		err = p.prepareTable(ctx, record.Run, loader.CreateNever)
	}
	if err != nil {
		return err
	}
	verified := record.Stage == runlog.Verified // its claims are gone
	if !verified {
		caps := p.loader.Caps()
		if caps.Dedup == loader.DedupNone && p.contract.Dedup != loader.DedupNone {
			return fmt.Errorf("run %s is to deliver exactly once, and table %s cannot any more: %s", record.Run, p.table.Name, caps.Reason)
		}
		p.heed(caps)
		p.endOfGroups() // before claims are read: that of the last group has fewer rows than the others
		if err := p.believeClaims(ctx); err != nil {
			return err
		}
	}
	if err := p.sameTable(ctx, &record); err != nil || verified {
		return err
	}
	if p.contract.Dedup == loader.DedupNone && p.left() > 0 {
		onTheWay := int64(p.plan.Workers)
		if p.contract.Staged() {
			onTheWay = int64(p.contract.Commits) * min(p.contract.GroupBatches, p.left())
		}
		p.warn(fmt.Sprintf("delivery is at least once: batches that were on their way when the earlier process ended, %d at most, may be there twice",
			onTheWay))
	}
	p.endLeftovers(ctx)
	if p.plan.ByDuration {
		if err := p.endByNow(max(p.history.last, p.done.Last())); err != nil {
			return err
		}
	}
	if err := p.findStored(ctx); err != nil {
		return err
	}
	if record.Stage == runlog.Loaded && p.left() == 0 {
		return nil
	}
	if err := p.refit(); err != nil {
		return err
	}
	record.Stage, record.Plan = runlog.Loading, p.plan
	return p.ledger.Save(record)
}

// reopen takes over a run's folder, handing its journal to each, and connects. A journal that is missing or damaged is
// begun anew where needless says that everything can be learned elsewhere.
func (p *push) reopen(ctx context.Context, each func(event.Event), needless func(runlog.Record) bool) (runlog.Record, error) {
	p.resumed = true
	before, err := runlog.Read(p.Config.State, p.Config.Resume)
	if err != nil {
		return runlog.Record{}, err
	}
	p.contract = before.Plan.Contract // each may ask
	p.ledger, err = runlog.Open(p.Config.State, p.Config.Resume, each)
	if damaged := (*runlog.DamagedError)(nil); errors.As(err, &damaged) {
		if !needless(before) {
			p.contract = loader.Contract{}
			return runlog.Record{}, fmt.Errorf("%w; only the journal knows what was sent of run %s, so it cannot be resumed: start a new one",
				err, before.Run)
		}
		p.warn(fmt.Sprintf("%v; the run goes on without it and begins a new one", err))
		if err = runlog.Renew(p.Config.State, p.Config.Resume); err == nil {
			p.ledger, err = runlog.Open(p.Config.State, p.Config.Resume, each)
		}
	}
	if err != nil {
		p.contract = loader.Contract{} // of a run that is another's there is nothing to report
		return runlog.Record{}, err
	}
	p.unjournaled = p.ledger.Renewed()
	r := p.ledger.Record()
	if err := refuseChanges(&p.Config, r, p.Explicit); err != nil {
		return r, failed(Usage, err)
	}
	if err := p.sameDatabase(r); err != nil {
		return r, failed(Usage, err)
	}
	p.plan, p.contract = r.Plan, r.Plan.Contract
	// What makes the rows comes from the plan and not from the flags: defaults may be others in this version.
	c := &p.Config
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
	return r, p.open(ctx)
}

// sameDatabase refuses a target of another back-end than the run's, before its methods and its tables are looked for there.
func (p *push) sameDatabase(r runlog.Record) error {
	is, err := loader.ParseTarget(p.Config.Target)
	if err != nil {
		return err
	}
	was, err := loader.ParseTarget(r.Target)
	if err != nil {
		return fmt.Errorf("the target of run %s: %w", r.Run, err)
	}
	its, known := p.Drivers.Lookup(was.Scheme)
	if given, ok := p.Drivers.Lookup(is.Scheme); !known || !ok || given.Name() == its.Name() {
		return nil // what is wrong with a scheme is said where its driver is looked for
	}
	return fmt.Errorf("%s:// does not fit run %s, which was started with %s and method %s", is.Scheme, r.Run, was, r.Plan.Method)
}

// tableOf is the table as the user names it.
func tableOf(r runlog.Record) string {
	if name := r.Flag("table"); name != "" {
		return name
	}
	return r.Plan.Dataset
}

// endByNow ends a run by duration, whose time is over: what was begun is finished, and that is the run. Batches are
// handed out in order, so behind the last one that anybody knows of each worker may have begun one more.
func (p *push) endByNow(last int64) error {
	if last < 0 {
		return loader.Final(errors.New("the run had not begun to load: start a new one"))
	}
	p.plan.ByDuration = false
	p.plan.Rows = min(p.plan.Rows, (last+1+int64(p.plan.Workers))*p.plan.BatchRows)
	return nil
}

// left is how many batches are still to be sent.
func (p *push) left() int64 { return p.plan.Batches() - p.done.Len() }

// believeClaims replaces what the journal says was applied by what the claim table says, where there is one.
func (p *push) believeClaims(ctx context.Context) error {
	claimed, can, err := p.claimed(ctx)
	if err != nil || !can {
		return err
	}
	if lost := p.done.Without(&claimed); lost.Len() > 0 {
		if err := p.reallyGone(ctx, &lost); err != nil {
			return err
		}
		p.warnOfLoss(lost.Len())
	}
	if p.unjournaled { // what was acknowledged is not known, so that it could be missed
		there, err := p.batchesThere(ctx, func(number int64) bool { return !claimed.Has(number) })
		if err != nil || there > 0 {
			return errors.Join(err, p.claimsRemoved(there))
		}
	}
	p.done = claimed
	return nil
}

// sameTable makes sure that the table is the one that the run was filling. Its identity tells; where that has changed, by
// VACUUM FULL, OPTIMIZE or ALTER, or because the table was dropped, made anew or emptied, its rows tell, by one scan: those
// of every batch that is in are there, and no others, which another run may have put into a table of the same name.
func (p *push) sameTable(ctx context.Context, r *runlog.Record) error {
	if p.table.Identity == r.Identity {
		return nil
	}
	changed := fmt.Sprintf("table %s has changed since run %s was filling it (it was %s, now it is %s)", p.table.Name, r.Run, r.Identity, p.table.Identity)
	were, in := p.done.Len(), p.done.Has
	if r.Stage == runlog.Verified {
		were, in = p.plan.Batches(), func(int64) bool { return true }
	}
	counter, can := p.loader.(loader.Counter)
	if !can || were == 0 {
		return loader.Final(fmt.Errorf("%s, and there are no rows to know it by; start a new run", changed))
	}
	// Without claims a batch that was on its way may be in. Batches are handed out in order.
	onTheWay := max(p.history.last, p.done.Last()) + int64(p.plan.Workers)
	there, err := p.rowsThere(ctx, counter)
	if err != nil {
		return err
	}
	var whole, others int64
	for number, rows := range there {
		switch {
		case in(number):
			if rows == p.plan.BatchSize(number) || p.contract.Delivery == loader.AtLeastOnce {
				whole++
			}
		case p.contract.Dedup == loader.DedupTx || number > onTheWay:
			others++
		}
	}
	switch {
	case whole < were:
		return loader.Final(fmt.Errorf("%s: %d of the %d batches that were in are not there, or not whole, so it was made anew or emptied; start a new run",
			changed, were-whole, were))
	case others > 0:
		return loader.Final(fmt.Errorf("%s: %d batches have rows that this run has not sent, so something else has filled it; start a new run", changed, others))
	}
	p.warn(fmt.Sprintf("table %s was rewritten since the earlier process (it was %s, now it is %s); the batches that were in still are",
		p.table.Name, r.Identity, p.table.Identity))
	r.Identity = p.table.Identity
	return p.ledger.Save(*r)
}

// rowsThere counts the run's rows by one scan: the number of rows of every batch that has some.
func (p *push) rowsThere(ctx context.Context, counter loader.Counter) (there map[int64]int64, err error) {
	all := loader.Grouping{KeyRange: loader.KeyRange{First: p.plan.FirstKey, Last: p.plan.LastKey()}, Size: p.plan.BatchRows}
	err = p.retried("rows", func(ctx context.Context) error {
		there = make(map[int64]int64)
		return counter.Count(ctx, all, func(b loader.Bucket) error {
			there[b.Number] = b.Rows
			return nil
		})
	})(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for rows of run %s: %w", p.id(), err)
	}
	return there, nil
}

// batchesThere counts, by one scan, the batches among some that have rows in the table.
func (p *push) batchesThere(ctx context.Context, among func(number int64) bool) (there int64, err error) {
	counter, can := p.loader.(loader.Counter)
	if !can {
		return 0, nil
	}
	rows, err := p.rowsThere(ctx, counter)
	for number := range rows {
		if among(number) {
			there++
		}
	}
	return there, err
}

// reallyGone makes sure, by one scan, that batches whose claims are missing have no rows in the table. A crash takes
// rows and claims together; rows without claims mean that somebody emptied the claim table, and to send them again
// would double them.
func (p *push) reallyGone(ctx context.Context, lost *runlog.Done) error {
	if lost.Len() == 0 {
		return nil
	}
	there, err := p.batchesThere(ctx, lost.Has)
	return errors.Join(err, p.claimsRemoved(there))
}

// claimsRemoved is the error of batches that have rows and no claims; nil for none.
func (p *push) claimsRemoved(batches int64) error {
	if batches == 0 {
		return nil
	}
	return loader.Final(fmt.Errorf("%d batches have rows in %s and no claims: somebody removed claims of run %s; "+
		"nothing is sent again, since that would double rows", batches, p.table.Name, p.id()))
}

// leftoverPatience bounds the wait for the end of an earlier process's sessions, which roll back first.
const leftoverPatience = time.Minute

// endLeftovers ends what earlier processes left at work on the server: the sessions of one that was killed or cut off
// hold their claims until the server notices, which can take minutes. Batches are handed out in order, so those on
// their way were among the first that are not in, one a worker. It is not needed for the rows to be right: where it
// fails, the claims make the load wait.
func (p *push) endLeftovers(ctx context.Context) {
	resolver, can := p.loader.(loader.Resolver)
	if !can || p.contract.Dedup != loader.DedupTx || p.contract.Staged() {
		return // the commit groups that were begun are known by name, and the engine asks for each before it goes on
	}
	ctx, cancel := context.WithTimeout(ctx, leftoverPatience)
	defer cancel()
	var open []int64
	for n := int64(0); n < p.plan.Batches() && len(open) < p.plan.Workers; n++ {
		if !p.done.Has(n) {
			open = append(open, n)
		}
	}
	in := make([]bool, len(open))
	var asked errgroup.Group
	asked.SetLimit(8)
	for i, n := range open {
		asked.Go(func() error {
			ref := p.ref(n)
			ref.Attempt = p.history.begun[n].attempt
			return p.retried(fmt.Sprintf("batch %d", n), func(ctx context.Context) error {
				found, err := resolver.Resolve(ctx, ref)
				in[i] = found.Applied == loader.Yes
				return err
			})(ctx)
		})
	}
	if err := asked.Wait(); err != nil {
		p.warn(fmt.Sprintf("sessions of an earlier process may still be at work, and batches wait for them: %v", err))
	}
	for i, n := range open {
		if in[i] {
			p.done.Add(n)
		}
	}
}

func (p *push) warnOfLoss(batches int64) {
	what := fmt.Sprintf("%d batches that it had acknowledged; they are", batches)
	if batches == 1 {
		what = "a batch that it had acknowledged; it is"
	}
	p.warn("the server lost " + what + " sent again")
}

// claimed reads the claims of the run, where the contract makes any.
func (p *push) claimed(ctx context.Context) (claimed runlog.Done, can bool, err error) {
	claims, can := p.loader.(loader.Claims)
	if !can || p.contract.Dedup != loader.DedupTx {
		return claimed, false, nil
	}
	err = p.retried("claims", func(ctx context.Context) error {
		claimed = runlog.Done{}
		return claims.Claimed(ctx, p.id(), func(number, rows int64) error {
			batches, err := p.claimedAs(number, rows)
			for _, b := range batches {
				claimed.Add(b.ID.Number)
			}
			return err
		})
	})(ctx)
	if err != nil {
		return claimed, true, fmt.Errorf("reading the claims of run %s: %w", p.id(), err)
	}
	return claimed, true, nil
}

// refit fits the plan to this machine, with no more workers and buffers than there are batches left.
func (p *push) refit() error {
	var err error
	// What is sent again must have the length that it had, whatever became of the number of rows.
	p.encoder, err = feed.NewEncoder(p.contract.Format, p.data, p.plan.FirstKey, p.plan.KeyRows)
	if err != nil {
		return err
	}
	warnings, err := p.plan.Fit(p.resources(p.encoder))
	for _, w := range warnings {
		p.warn(w)
	}
	left := int(min(max(p.toUpload(), 1), math.MaxInt))
	p.plan.Workers, p.plan.Buffers = min(p.plan.Workers, left), min(p.plan.Buffers, left)
	return err
}

// refuseChanges names every flag that would make other rows, or put them elsewhere.
func refuseChanges(c *config.Push, r runlog.Record, explicit func(flag string) bool) error {
	if explicit == nil {
		return nil
	}
	was := r.Plan
	rows, delivery := any(was.Rows), c.Delivery
	if d := r.Flag("duration"); d != "" {
		rows = "--duration " + d
	}
	if delivery == string(loader.DeliveryAuto) {
		delivery = string(was.Delivery) // as a wish it fits every guarantee
	}
	planned := config.Bytes(was.BatchBytes())
	batchBytes, given := orElse(r.Flag("batch-bytes"), planned.String()), c.BatchBytes.String()
	if max(int64(c.BatchBytes)/max(was.EncodedRowBytes, 1), 1) == was.BatchRows {
		given = batchBytes // other bytes, and the same rows
	}
	var distinct config.DistinctBytes
	distinct.Bytes = config.DefaultDistinct
	type frozen struct {
		flag    string
		was, is any
	}
	all := []frozen{
		{"dataset", was.Dataset, c.Dataset},
		{"seed", was.Seed, c.Seed},
		{"payload-bytes", was.PayloadBytes, c.PayloadBytes},
		{"payload-kind", was.PayloadKind, c.PayloadKind},
		{"distinct-bytes", orElse(r.Flag("distinct-bytes"), distinct.String()), c.DistinctBytes.String()},
		{"table", tableOf(r), c.Table},
		{"method", was.Method, c.Method},
		{"format", string(was.Format), c.Format},
		{"rows", rows, c.Rows},
		{"bytes", rows, size(c).RowCount(was.RowBytes)},
		{"duration", orElse(r.Flag("duration"), "none"), c.Duration.String()},
		{"first-key", was.FirstKey, c.FirstKey.Key},
		{"append", orElse(r.Flag("append"), "false"), fmt.Sprint(c.Append)},
		{"batch-rows", was.BatchRows, c.BatchRows},
		{"batch-bytes", batchBytes, given},
		{"commit-batches", was.GroupBatches, c.CommitBatches},
		{"delivery", string(was.Delivery), delivery},
		{"create", orElse(r.Flag("create"), string(loader.CreateIfMissing)), c.Create},
		{"primary-key", orElse(r.Flag("primary-key"), "false"), fmt.Sprint(c.PrimaryKey)},
	}
	if via := c.Via.String(); !config.SameStore(r.Via, via) {
		all = append(all, frozen{"via", orElse(r.Via, "none"), via})
	}
	for _, option := range slices.Sorted(maps.Keys(c.Options)) {
		all = append(all, frozen{option, orElse(r.Flag(option), "not given"), c.Options[option]})
	}
	var problems []error
	for _, f := range all {
		if explicit(f.flag) && f.was != f.is {
			problems = append(problems, fmt.Errorf("--%s cannot change in a resumed run: it was %v, now it is %v", f.flag, f.was, f.is))
		}
	}
	return errors.Join(problems...)
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
