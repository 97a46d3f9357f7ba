package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/terapush/terapush/internal/engine/ledger"
	"github.com/terapush/terapush/internal/network"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Verify proves the arrival of an earlier run again, from its record alone. Config.Resume names the run, and its flags
// are in the configuration already.
func Verify(ctx context.Context, j Job) (*report.Report, error) {
	p := &push{Job: j, started: time.Now(), wire: new(network.Dialer)}
	err := p.verifyAgain(ctx)
	err = errors.Join(err, p.close())
	return p.report(err), err
}

func (p *push) verifyAgain(ctx context.Context) error {
	record, err := p.reopen(ctx)
	if err != nil {
		return failed(report.PreflightFailed, err)
	}
	if record.Stage == ledger.Loading {
		return failed(report.PreflightFailed, fmt.Errorf("run %s is not loaded to its end: go on with push --resume first", record.Run))
	}
	p.stats = p.newStats()
	defer p.stats.Phase(event.Done)
	p.stats.Phase(event.Verify)
	return p.orInterrupted(p.verify(p.untilDrained(ctx)))
}

// Forget removes a run's claims from the target and its folder from the state folder.
func Forget(ctx context.Context, j Job) error {
	p := &push{Job: j, started: time.Now(), wire: new(network.Dialer)}
	_, err := p.reopen(ctx)
	if err != nil {
		return failed(report.PreflightFailed, errors.Join(err, p.close()))
	}
	if claims, can := p.loader.(loader.Claims); can && p.contract.Dedup == loader.DedupTx {
		if err := claims.Forget(ctx, p.id()); err != nil {
			return errors.Join(fmt.Errorf("removing the claims of run %s: %w", p.id(), err), p.close())
		}
	}
	folder := p.ledger
	p.ledger = nil
	return errors.Join(folder.Remove(), p.close())
}

// reopen takes over a run's folder and connects to its table, and changes nothing in either.
func (p *push) reopen(ctx context.Context) (ledger.Record, error) {
	if err := p.configure(); err != nil {
		return ledger.Record{}, failed(Usage, err)
	}
	p.resumed = true
	var err error
	p.ledger, err = ledger.Open(p.Config.State, p.Config.Resume, func(event.Event) {})
	if err != nil {
		return ledger.Record{}, err
	}
	record := p.ledger.Record()
	p.plan, p.contract = record.Plan, record.Plan.Contract
	if err := p.open(ctx); err != nil {
		return record, err
	}
	return record, p.prepareTable(ctx, record.Run, loader.CreateNever)
}
