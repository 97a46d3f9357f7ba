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

// verifyNamed proves a whole named run, by a process that need not have sent any of it. It leaves no folder.
func (p *push) verifyNamed(ctx context.Context) error {
	announced := int64(0)
	caps, err := p.openNamed(ctx)
	if err == nil {
		err = p.share(ctx)
	}
	if err == nil {
		err = p.waiting(ctx, func() (err error) { announced, err = p.announced(ctx); return err })
	}
	if err == nil && announced == 0 {
		err = fmt.Errorf("%w %q in %s; terapush runs lists those of the state folder, %s",
			runlog.ErrNoRun, p.Config.RunID, p.recordedIn(), p.Config.State)
	}
	if err == nil {
		err = p.agree(ctx, caps, true)
	}
	if err == nil {
		p.Config.State, err = os.MkdirTemp("", "terapush-proof-")
		defer func() { _ = os.RemoveAll(p.Config.State) }()
	}
	if err == nil {
		err = p.createLog(p.Config.RunID)
	}
	if err != nil {
		return p.orInterrupted(report.PreflightFailed, err)
	}
	if verify.Mode(p.Config.Verify) != verify.Full {
		p.Config.Verify = string(verify.Count)
	}
	p.state.resumed = true
	if err = p.state.takeClaims(ctx); err == nil && p.shared != nil {
		err = p.readJournals()
	}
	if err == nil {
		err = p.closeShards(ctx)
	}
	if err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	end, err := p.watch()
	if err != nil {
		return err
	}
	defer end()
	if err := p.verify(ctx); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	return p.orInterrupted(report.Failed, p.settle(ctx, loader.RunProven))
}

// closeShards closes a run whose batches are all in, so that none is added while they are counted. The shards of one that is
// not at its end are left alone: what is missing is seen when it is counted.
func (p *push) closeShards(ctx context.Context) error {
	if p.state.left() > 0 {
		return nil
	}
	if err := p.take(ctx); err != nil {
		return err
	}
	return p.settle(ctx, loader.RunClosed)
}

// readJournals reads the journals of all shards, which have to be loaded.
func (p *push) readJournals() error {
	shards, err := p.shared.All()
	if err == nil && len(shards) == 0 {
		return failed(report.PreflightFailed, fmt.Errorf("no shard of run %s has begun", p.Config.RunID))
	}
	for i, shard := range shards {
		var record *runlog.Record
		if record, err = p.shared.Replay(shard, p.state.replay); err != nil {
			return err
		}
		if record == nil || record.Stage == runlog.Loading {
			return failed(report.PreflightFailed,
				fmt.Errorf("shard %d/%d of run %s is not loaded to its end: start it again first", i, len(shards), p.Config.RunID))
		}
	}
	return err
}

// recordedIn returns where a named run is announced.
func (p *push) recordedIn() string {
	if p.shared != nil {
		return p.Config.Shared
	}
	return "the claim table beside " + p.target.Table
}

// forgetNamed removes the claims of a named run, and its folders on this machine, while no process is at work on it.
func (p *push) forgetNamed(ctx context.Context) error {
	p.Config.RunID = p.Config.Resume
	if err := p.adoptShared(ctx); err != nil {
		return err
	}
	if _, err := p.openNamed(ctx); err != nil {
		return err
	}
	if p.target.can.Claims == nil && p.shared == nil {
		return failed(Usage, fmt.Errorf("--run %s: %s keeps no claims, and the journals of its runs are in an object store: give --state-dir s3://bucket/prefix",
			p.Config.RunID, p.target.driver.Name()))
	}
	if err := p.prepareToForget(ctx, p.Config.RunID); err != nil {
		return err
	}
	if p.shared == nil { // processes on this machine hold the folders; those on others are fenced off
		err := errors.Join(runlog.RemoveRest(p.Config.State, p.Config.RunID), runlog.RemoveShards(p.Config.State, p.Config.RunID))
		if err != nil {
			return err
		}
	}
	if p.target.can.Claims != nil {
		if p.shared == nil {
			p.plan.Dedup = loader.DedupTx
		}
		rows, err := p.forgetClaims(ctx, p.state.runName())
		if err != nil {
			return err
		}
		p.Log.Info(fmt.Sprintf("%d claims of run %s removed", rows, p.Config.RunID))
	}
	if p.shared != nil {
		p.state.warnOfObjects(ctx)
		if err := p.shared.Remove(); err != nil {
			return fmt.Errorf("removing the journals of run %s: %w", p.Config.RunID, err)
		}
	}
	return nil
}
