package push

import (
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Verify proves the arrival of an earlier run again, from its record alone, and changes nothing. Config.Resume names
// the run, and its flags are in the configuration already.
func Verify(ctx context.Context, j Job) (*report.Report, error) {
	p, ctx, end := newPush(ctx, j)
	defer end()
	err := p.verifyAgain(ctx)
	err = errors.Join(err, p.close())
	return p.report(err), err
}

func (p *push) verifyAgain(ctx context.Context) error {
	record, err := p.reopen(ctx, p.keepLength, func(r runlog.Record) bool { return r.Plan.Dedup == loader.DedupTx })
	if err == nil {
		err = p.prepareTable(ctx, record.Run, loader.CreateNever)
	}
	if err != nil {
		return p.orInterrupted(report.PreflightFailed, err)
	}
	if record.Stage == runlog.Loading {
		return failed(report.PreflightFailed, fmt.Errorf("run %s is not loaded to its end: go on with push --resume first", record.Run))
	}
	if mode := verify.Mode(p.Config.Verify); mode != verify.Full {
		p.Config.Verify = string(verify.Count) // what the run itself was content with is no proof
	}
	p.count()
	defer p.stats.Phase(event.Done)
	p.stats.Phase(event.Verify)
	return p.orInterrupted(report.Failed, p.verify(ctx))
}

// Forget removes a run's claims from the target and its folder from the state folder. Objects stay, and it says where.
// Of a run that the state folder does not know it removes what the claim table has.
func Forget(ctx context.Context, j Job) error {
	p, ctx, end := newPush(ctx, j)
	defer end()
	record, err := p.reopen(ctx, func(event.Event) {}, func(runlog.Record) bool { return true })
	if errors.Is(err, runlog.ErrNoRun) {
		return errors.Join(p.orInterrupted(report.PreflightFailed, p.forgetClaims(ctx, err)), p.close())
	}
	if err == nil {
		// The table may be gone, and nothing about it matters any more.
		_, err = p.loader.Prepare(ctx, loader.Preparation{
			Run: record.Run, Schema: p.data.Schema(), Contract: p.contract, Create: loader.CreateNever, Silent: true,
		})
	}
	if err != nil {
		return errors.Join(p.orInterrupted(report.PreflightFailed, err), p.close())
	}
	p.warnOfObjects(ctx)
	// Of a staged run the database may keep more than claims, under any guarantee.
	if claims, can := p.loader.(loader.Claims); can && (p.claims() || p.contract.Staged()) {
		forget := func(ctx context.Context) error {
			_, err := claims.Forget(ctx, p.id())
			return err
		}
		err := p.retried("claims", forget)(ctx)
		if err != nil && p.driver.Classify(err).Class != loader.ClassMissing {
			return errors.Join(fmt.Errorf("removing the claims of run %s: %w", p.id(), err), p.close())
		}
	}
	folder := p.ledger
	p.ledger = nil
	return errors.Join(folder.Remove(), p.close())
}

// forgetClaims removes what the claim table has of a run that the state folder does not know, which is why.
func (p *push) forgetClaims(ctx context.Context, why error) error {
	run := p.Config.Resume
	if !runlog.IsID(run) {
		return failed(Usage, fmt.Errorf("%w; ids look like %s", why, runlog.NewID(p.started)))
	}
	if err := runlog.RemoveRest(p.Config.State, run); err != nil {
		return err
	}
	if err := p.configure(); err != nil {
		return failed(Usage, err)
	}
	if err := p.open(ctx); err != nil {
		return err
	}
	claims, can := p.loader.(loader.Claims)
	if !can {
		return failed(Usage, fmt.Errorf("%w; %s keeps no claims to remove", why, p.driver.Name()))
	}
	_, err := p.loader.Prepare(ctx, loader.Preparation{Run: run, Schema: p.data.Schema(), Create: loader.CreateNever, Silent: true})
	if err != nil {
		return err
	}
	rows, err := claims.Forget(ctx, run)
	if err != nil && p.driver.Classify(err).Class != loader.ClassMissing {
		return fmt.Errorf("removing the claims of run %s: %w", run, err)
	}
	p.Log.Info(fmt.Sprintf("%d rows of run %s removed from the claim table; the state folder has no such run", rows, run))
	return nil
}
