package push

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/loader"
)

// Verify verifies a run again, from its record or, if it has a name, from what its processes have in common. It changes
// no row. A named run all of whose batches are in is closed, since its processes may have ended before they could.
// Config.Resume is the run's id, or Config.RunID its name; the run's flags must be in the configuration.
func Verify(ctx context.Context, j Job) (*report.Report, error) {
	p, ctx, end := newPush(ctx, j)
	defer end()
	p.idle, p.mode = true, verify.Count // the run's own mode may prove nothing
	if j.Config.Verify == string(verify.Full) {
		p.mode = verify.Full
	}
	again := p.verifyEarlier
	if p.named() {
		again = p.verifyNamed
	}
	err := again(ctx)
	err = errors.Join(err, p.close())
	return p.report(err), err
}

func (p *push) verifyEarlier(ctx context.Context) error {
	if err := p.reattach(ctx); err != nil {
		return p.orInterrupted(report.PreflightFailed, err)
	}
	if p.progress.Stage() == runlog.Loading {
		return failed(report.PreflightFailed, fmt.Errorf(
			"run %s is not loaded to its end: finish it with %s --resume", p.progress.ID(), p.input.command()))
	}
	end, err := p.watch(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := p.verifyClosed(ctx); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	return p.allTaken()
}

// reattach finds the record of an earlier process, and the table.
func (p *push) reattach(ctx context.Context) error {
	if err := p.reach(ctx); err != nil {
		return err
	}
	return p.target.Prepare(ctx, p.preparation(loader.CreateNever))
}

// verifyNamed proves a whole named run, by a process that need not have sent any of it. It leaves no folder.
func (p *push) verifyNamed(ctx context.Context) error {
	remove, err := p.recallNamed(ctx)
	defer remove()
	if err != nil {
		return p.orInterrupted(report.PreflightFailed, err)
	}
	if err := p.readAll(ctx); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	end, err := p.watch(ctx)
	if err != nil {
		return err
	}
	defer end()
	if err := p.verify(ctx); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	if p.verified.Proves() {
		err = p.settle(ctx, loader.RunProven)
	}
	return errors.Join(p.orInterrupted(report.Failed, err), p.allTaken())
}

// Complete reports whether every batch of a named run is in, whichever of its shards has sent it. It changes nothing.
func Complete(ctx context.Context, j Job) (complete bool, err error) {
	err = withoutLoad(ctx, j, func(p *push, ctx context.Context) (err error) {
		complete, err = p.complete(ctx)
		return err
	})
	return complete, err
}

func (p *push) complete(ctx context.Context) (bool, error) {
	remove, err := p.recallNamed(ctx)
	defer remove()
	if errors.Is(err, runlog.ErrNoRun) { // nobody has begun it
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if p.store.shared != nil {
		err := p.readJournals()
		if errors.Is(err, errShardNotLoaded) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	err = p.progress.TakeClaims(ctx)
	return p.progress.Left() == 0, err
}

// recallNamed finds a named run that was begun, in a folder that remove removes.
func (p *push) recallNamed(ctx context.Context) (remove func(), err error) {
	if err := p.findNamed(ctx); err != nil {
		return func() {}, err
	}
	folder, err := os.MkdirTemp("", "terapush-proof-")
	if err != nil {
		return func() {}, err
	}
	return func() { _ = os.RemoveAll(folder) }, p.createLog(folder, true)
}

// errShardNotLoaded is that of a journal that some shard goes on with.
var errShardNotLoaded = errors.New("is not loaded to its end: start it again first")

// findNamed finds a named run that was begun.
func (p *push) findNamed(ctx context.Context) error {
	if err := p.reach(ctx); err != nil {
		return err
	}
	if err := p.share(ctx); err != nil {
		return err
	}
	return p.waiting(ctx, func() error {
		announced, err := p.announced(ctx)
		if err != nil {
			return err
		}
		if announced.Fingerprint == 0 {
			return fmt.Errorf("%w %q in %s; terapush runs lists those of the state folder, %s",
				runlog.ErrNoRun, p.progress.Name(), p.recordedIn(), p.Config.State)
		}
		return p.agree(announced)
	})
}

// readAll reads what is in of the whole run, and closes it if that is all of it, so that none is added while its rows
// are counted. The shards of one that is not at its end are left alone: what is missing is seen when it is counted.
func (p *push) readAll(ctx context.Context) error {
	if p.store.shared != nil {
		if err := p.readJournals(); err != nil {
			return err
		}
	}
	if err := p.progress.TakeClaims(ctx); err != nil { // which know better than the journals
		return err
	}
	if p.progress.Left() > 0 {
		return nil
	}
	if err := p.take(ctx); err != nil {
		return err
	}
	return p.settle(ctx, loader.RunClosed)
}

// readJournals reads the journals of all shards, which have to be loaded.
func (p *push) readJournals() error {
	shards, err := p.store.shared.All()
	if err != nil {
		return err
	}
	if len(shards) == 0 {
		return failed(report.PreflightFailed, fmt.Errorf("no shard of run %s has begun", p.progress.ID()))
	}
	replay := p.progress.Replayer(p.plan.Contract)
	for i, shard := range shards {
		record, err := p.store.shared.Replay(shard, replay)
		if err != nil {
			return err
		}
		if record == nil || record.Stage == runlog.Loading {
			return failed(report.PreflightFailed,
				fmt.Errorf("shard %d/%d of run %s %w", i, len(shards), p.progress.ID(), errShardNotLoaded))
		}
	}
	return nil
}

// recordedIn returns where a named run is announced.
func (p *push) recordedIn() string {
	if p.store.shared != nil {
		return p.Config.Shared
	}
	return "the claim table beside " + p.target.Table
}
