package push

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// share opens the shared files if no claims show every batch of the run.
func (p *push) share(ctx context.Context) error {
	if p.claimsBatches() {
		return nil
	}
	if p.Files == nil {
		return failed(Usage, fmt.Errorf("--run-id: %s of %s does not claim its batches in the database, so a journal has to "+
			"say which are in, and to outlive this machine: give --state-dir s3://bucket/prefix, the same to every process",
			p.plan.Method, p.target.driver.Name()))
	}
	return p.openFiles(ctx)
}

func (p *push) openFiles(ctx context.Context) error {
	if p.shared != nil { // the run may have its id by now, which is not its name
		return nil
	}
	if p.files == nil {
		err := p.waiting(ctx, func() error {
			files, err := p.Files(ctx)
			if err != nil {
				return failed(report.Failed, err)
			}
			p.files = files
			return nil
		})
		if err != nil {
			return err
		}
	}
	p.shared = &runlog.Shared{Files: runlog.Bucket{Store: p.files, Ask: p.askFiles}, Name: p.Config.RunID}
	p.state.name = p.Config.RunID
	return nil
}

// claimsBatches reports whether the claim table says of every batch whether it is in.
func (p *push) claimsBatches() bool {
	return p.plan.Dedup == loader.DedupTx && !p.plan.Staged() && p.target.can.Claims != nil
}

// announceIn is Shared.Announce. The run has its id from then on.
func (p *push) announceIn(number int64) (kept int64, err error) {
	if kept, err = p.shared.Announce(number); err == nil && kept != 0 {
		p.Config.RunID = p.shared.ID
	}
	return kept, err
}

// takeJournal takes over the shard's journal in the shared files, and replays it.
func (p *push) takeJournal() error {
	c := &p.Config
	count := max(c.Shard.Count, 1)
	shards, err := p.shared.Shards(count)
	if err == nil && shards != count {
		err = failed(Usage, fmt.Errorf("run %s was begun with %d shards, and its journals are kept by shard: give --shard I/%d", c.RunID, shards, shards))
	}
	if err != nil {
		return err
	}
	p.state.history, p.state.done, p.state.lengths = newHistory(), runlog.Done{}, nil
	p.state.log, p.state.resumed, err = p.shared.Open(c.Shard, p.newRecord(c.RunID), p.state.replay)
	return err
}

// adoptShared finds in the shared files, if there are any, what the run is.
func (p *push) adoptShared(ctx context.Context) error {
	if p.Files == nil {
		return nil
	}
	if err := p.openFiles(ctx); err != nil {
		return err
	}
	if announced, err := p.announceIn(0); err != nil || announced == 0 {
		return err
	}
	record, err := p.shared.Record()
	if err != nil || record == nil {
		return err
	}
	return p.adopt(*record)
}
