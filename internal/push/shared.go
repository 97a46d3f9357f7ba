package push

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// store is a StateStore that is asked until it answers.
type store struct {
	StateStore                 // nil until it is open
	shared     *runlog.Shared  // what the processes of a named run share in it; nil where claims show each batch
	ctx        context.Context // of the push
	log        *slog.Logger
	policy     retry.Policy
}

// finalWriteTimeout bounds what is kept in the shared files after the user asked a second time to stop.
const finalWriteTimeout = 10 * time.Second

// ask asks the store until it answers. The journal is kept while batches are finished, and for a moment longer.
func (s *store) ask(what string, f func(context.Context) error) error {
	bound, cancel := context.WithCancel(context.WithoutCancel(s.ctx))
	defer cancel()
	defer context.AfterFunc(s.ctx, func() { time.AfterFunc(finalWriteTimeout, cancel) })()
	lost := func(err error) {
		s.log.Warn("asking the object store of --state-dir again", "what", what, "error", err)
	}
	return failed(report.Failed, s.policy.Ask(bound, s.Classify, lost, f)) // another start may help
}

// share opens the shared files of a named run if no claims show its every batch.
func (p *push) share(ctx context.Context) error {
	if !p.named() || p.claimsBatches() {
		return nil
	}
	if p.StateStore == nil {
		return failed(Usage, fmt.Errorf("--run-id: %s of %s does not claim its batches in the database, so a journal has to "+
			"say which are in, and to outlive this machine: give --state-dir s3://bucket/prefix, the same to every process",
			p.plan.Method, p.target.Driver.Name()))
	}
	return p.openStateStore(ctx)
}

func (p *push) openStateStore(ctx context.Context) error {
	if p.store.shared != nil {
		return nil
	}
	err := p.waiting(ctx, func() error {
		opened, err := p.StateStore(ctx)
		if err != nil {
			return failed(report.Failed, err)
		}
		p.store.StateStore = opened
		return nil
	})
	if err != nil {
		return err
	}
	files := runlog.Bucket{Store: p.store.StateStore, Ask: p.store.ask}
	p.store.shared = &runlog.Shared{Files: files, Name: p.Config.RunID}
	return nil
}

// claimsBatches reports whether the claim table says of every batch whether it is in.
func (p *push) claimsBatches() bool {
	return p.plan.Dedup == loader.DedupTx && !p.plan.Staged() && p.target.Can.Claims != nil
}

// announceInStore is Shared.Announce. The run has its id from then on.
func (p *push) announceInStore(number int64) (kept int64, err error) {
	kept, err = p.store.shared.Announce(number)
	if err != nil || kept == 0 {
		return 0, err
	}
	p.progress.Identify(p.store.shared.ID)
	return kept, nil
}

func (p *push) announcedInStore(ctx context.Context) (row loader.RunRow, err error) {
	fingerprint, err := p.announceInStore(0)
	if err != nil {
		return row, err
	}
	if fingerprint == 0 { // perhaps again, since it was forgotten
		p.progress.Identify(p.progress.Name())
		return row, nil
	}
	look := p.preparation(loader.CreateNever)
	look.Shard, look.Resume = "", true
	if err := p.target.Prepare(ctx, look); err != nil {
		return row, err
	}
	row, err = p.lookUp(ctx)
	row.Fingerprint = fingerprint
	return row, err
}

// keepOthersOff keeps another prepare from removing rows at the same time: no lock does that, where there are no
// claims.
func (p *push) keepOthersOff() error {
	if p.store.shared == nil || !p.empties() {
		return nil
	}
	return p.store.shared.Prepare()
}

// letOthersIn takes keepOthersOff back if the server has refused, and nothing was removed.
func (p *push) letOthersIn(err error) error {
	if p.store.shared == nil || !p.empties() {
		return nil
	}
	refused := (*loader.Error)(nil)
	if !errors.As(err, &refused) || refused.Applied != loader.No {
		return nil
	}
	return p.store.shared.GiveUp()
}

// announcedMeanwhile returns an error if the process that this one has waited for in the database has announced the
// run.
func (p *push) announcedMeanwhile() error {
	if p.store.shared == nil {
		return nil
	}
	announced, err := p.announceInStore(0)
	if err != nil || announced == 0 {
		return err
	}
	if p.empties() {
		return loader.Final(fmt.Errorf("run %s was begun while its table was dropped or emptied: terapush forget, and "+
			"prepare again", p.progress.ID()))
	}
	return loader.ErrBegun
}

// takeJournal takes over the shard's journal in the shared files, and replays it.
func (p *push) takeJournal() error {
	c := &p.Config
	count := max(c.Shard.Count, 1)
	shards, err := p.store.shared.Shards(count)
	if err != nil {
		return err
	}
	if shards != count {
		return failed(Usage, fmt.Errorf("run %s was begun with %d shards, and its journals are kept by shard: "+
			"give --shard I/%d", p.progress.ID(), shards, shards))
	}
	log, begun, err := p.store.shared.Open(c.Shard, p.newRecord(), p.progress.Replayer(p.plan.Contract))
	if err != nil {
		return err
	}
	p.progress.Keep(log, begun)
	return nil
}

// adoptShared finds in the shared files, if there are any, what the run is.
func (p *push) adoptShared(ctx context.Context) (asked facts, err error) {
	if p.StateStore == nil {
		return asked, nil
	}
	if err := p.openStateStore(ctx); err != nil {
		return asked, err
	}
	if announced, err := p.announceInStore(0); err != nil || announced == 0 {
		return asked, err
	}
	record, err := p.store.shared.Record()
	if err != nil || record == nil {
		return asked, err
	}
	return p.adopt(*record)
}
