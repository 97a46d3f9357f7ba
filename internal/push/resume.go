package push

import (
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/engine/ledger"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/plan"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// takeOver goes on with a run that another process left: the plan is the run's, the machine is ours.
func (p *push) takeOver(ctx context.Context) error {
	last := int64(-1) // the last batch the journal knows
	var err error
	p.resumed = true
	p.ledger, err = ledger.Open(p.Config.State, p.Config.Resume, func(e event.Event) {
		last = max(last, e.Batch)
		p.begun.Add(e.Batch)
		if e.Done() {
			p.done.Add(e.Batch)
		}
	})
	if err != nil {
		return err
	}
	record := p.ledger.Record()
	p.plan, p.contract = record.Plan, record.Plan.Contract
	if err := refuseChanges(&p.Config, record, p.target, p.Explicit); err != nil {
		return failed(Usage, err)
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	if err := p.prepareTable(ctx, record.Run, loader.CreateNever); err != nil {
		return err
	}
	if p.table.Identity != record.Identity {
		return fmt.Errorf("table %s is not the one run %s was filling (it was %s, now it is %s): it was made anew or emptied since; start a new run",
			p.table.Name, record.Run, record.Identity, p.table.Identity)
	}
	if record.Stage != ledger.Loading {
		return nil
	}
	if err := p.believeClaims(ctx); err != nil {
		return err
	}
	if p.plan.ByDuration {
		// The time is over: what was begun is finished, and that is the run.
		p.plan.Rows, p.plan.ByDuration = (max(last, p.done.Last())+1)*p.plan.BatchRows, false
		if p.plan.Rows == 0 {
			return errors.New("the run had not begun to load: start a new one")
		}
		record.Plan = p.plan
		if err := p.ledger.Save(record); err != nil {
			return err
		}
	}
	return p.refit()
}

// believeClaims replaces what the journal says was applied by what the claim table says, where there is one.
func (p *push) believeClaims(ctx context.Context) error {
	claimed, can, err := p.claimed(ctx)
	if err != nil || !can {
		return err
	}
	if lost := p.done.Without(&claimed); lost > 0 {
		p.warn(fmt.Sprintf("the server lost %d batches that it had acknowledged; they are sent again", lost))
	}
	p.done = claimed
	return nil
}

// claimed reads the claims of the run, where the contract makes any.
func (p *push) claimed(ctx context.Context) (claimed ledger.Done, can bool, err error) {
	claims, can := p.loader.(loader.Claims)
	if !can || p.contract.Dedup != loader.DedupTx {
		return claimed, false, nil
	}
	err = claims.Claimed(ctx, p.id(), func(number, _ int64) error {
		claimed.Add(number)
		return nil
	})
	if err != nil {
		return claimed, true, fmt.Errorf("reading the claims of run %s: %w", p.id(), err)
	}
	return claimed, true, nil
}

// refit fits the plan to this machine.
func (p *push) refit() error {
	var err error
	p.encoder, err = feed.NewEncoder(p.contract.Format, p.data, p.plan.FirstKey, p.plan.Rows)
	if err != nil {
		return err
	}
	warnings, err := p.plan.Fit(resources(&p.Config, p.data, p.encoder))
	for _, w := range warnings {
		p.warn(w)
	}
	return err
}

// refuseChanges names every flag that would make other rows, or put them elsewhere.
func refuseChanges(c *config.Push, r ledger.Record, t loader.Target, explicit func(string) bool) error {
	was := r.Plan
	distinct := was.DistinctRows
	if again, _, err := planOfRun(c, was); err == nil {
		distinct = again.DistinctRows
	}
	var problems []error
	for _, f := range []struct {
		flag string
		was  any
		is   any
	}{
		{"dataset", was.Dataset, c.Dataset},
		{"seed", was.Seed, c.Seed},
		{"payload-bytes", was.PayloadBytes, c.PayloadBytes},
		{"payload-kind", was.PayloadKind, c.PayloadKind},
		{"distinct-bytes", was.DistinctRows, distinct},
		{"table", r.Flag("table"), c.Table},
		{"method", was.Method, t.Method},
		{"format", string(was.Format), c.Format},
		{"rows", was.Rows, c.Rows},
		{"bytes", was.Rows, size(c).RowCount(was.RowBytes)},
		{"first-key", was.FirstKey, c.FirstKey},
		{"batch-rows", was.BatchRows, c.BatchRows},
		{"batch-bytes", was.BatchRows, max(int64(c.BatchBytes)/max(was.EncodedRowBytes, 1), 1)},
		{"delivery", string(was.Delivery), c.Delivery},
	} {
		if explicit(f.flag) && f.was != f.is {
			problems = append(problems, fmt.Errorf("--%s cannot change in a resumed run: it was %v, now it is %v", f.flag, f.was, f.is))
		}
	}
	return errors.Join(problems...)
}

// planOfRun is the plan again with this process's --distinct-bytes.
func planOfRun(c *config.Push, was plan.Plan) (plan.Plan, []string, error) {
	return plan.Make(plan.Input{
		Contract: was.Contract, FirstKey: was.FirstKey, Rows: was.Rows, ByDuration: was.ByDuration,
		RowBytes: was.RowBytes, DistinctBytes: int64(c.DistinctBytes.Bytes),
		Resources: plan.Resources{Workers: 1, Memory: 1, BufferMemory: func(int64) int64 { return 1 }},
	})
}
