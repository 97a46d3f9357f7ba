package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/progress"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// startMeters starts the counters, from what earlier processes acknowledged.
func (p *push) startMeters() {
	o := stats.Options{
		Start: p.started, Workers: p.plan.Workers,
		Refills: p.source.Refills,
		Buffers: func() (free, total int) { return p.source.Free(), p.source.Buffers() },
	}
	var earlier *stats.Earlier
	if p.progress.Continued() {
		amount := amountOf(&p.plan, p.progress.Before())
		amount.MissingRows = p.progress.Missing()
		amount.Rows -= amount.MissingRows
		earlier = &amount
	}
	p.input.setTotals(&o)
	p.meters.start(o, earlier, &p.target.Wire)
}

// amountOf returns the counters of some batches.
func amountOf(p *run.Plan, a progress.Amount) stats.Earlier {
	return stats.Earlier{
		Rows: a.Rows, Batches: a.Batches, PayloadBytes: a.Rows*p.RowBytes + a.Bytes,
		EncodedBytes: a.Rows*p.EncodedRowBytes + a.Bytes,
	}
}

// fill encodes the source's templates before the clock of the load starts. It does so once, and only if batches have to
// be sent.
func (p *push) fill(ctx context.Context) error {
	if p.progress.ToUpload() == 0 || p.filled {
		return nil
	}
	p.meters.stopWork(event.Fill)
	p.filled = true
	return p.source.Fill(ctx, runtime.GOMAXPROCS(0), nil)
}

// load runs the engine until every batch is in, and saves the run's progress.
func (p *push) load(ctx context.Context) error {
	phase := event.Load
	if p.plan.Staged() {
		phase = event.Stage
	}
	p.meters.startWork(phase)
	result, err := p.send(ctx)
	if err == nil {
		result, err = p.sendLost(ctx, phase, result)
	}
	err = errors.Join(err, p.whoseRun(ctx, err))
	if n := p.meters.stats.Snapshot().Outcomes[event.Unknown]; n > 0 && p.plan.Dedup == loader.DedupNone {
		p.notes.Warnf("the answers to %d attempts were lost, and delivery is at least once: their rows may be duplicated", n)
	}
	if result.UndeletedGroups > 0 {
		p.notes.Warnf("the objects of %d commit groups that are in the table could not be removed: %v",
			result.UndeletedGroups, result.DeleteErr)
	}
	p.meters.stopWork(event.Finish)
	if p.meters.servers != nil {
		p.meters.servers.Stop() // the report waits for the last answers
	}
	return p.saveLoaded(result, err)
}

// sendLost sends the batches again that the server had acknowledged and has lost, until none is missing. sent is the
// result of what was sent before.
func (p *push) sendLost(ctx context.Context, phase event.Phase, sent engine.Result) (engine.Result, error) {
	for !sent.Drained {
		p.meters.stopWork(event.Finish) // the workers have ended, so the search for lost batches is not their time
		lost, err := p.progress.FindLost(ctx)
		if err != nil || lost.Len() == 0 {
			return sent, err
		}
		p.meters.stats.TakeBack(amountOf(&p.plan, p.progress.AmountOf(&lost)))
		p.progress.WarnOfLoss(lost.Len())

		// The attempts of lost batches are numbered from this process's first again. Only claims can be lost, and
		// claims do not need attempt numbers to keep two loads of a batch apart.
		if err := p.fill(ctx); err != nil {
			return sent, err
		}
		p.meters.startWork(phase)
		again, err := engine.Run(ctx, p.Drain, p.engineConfig())
		again.UndeletedGroups += sent.UndeletedGroups
		again.DeleteErr = cmp.Or(again.DeleteErr, sent.DeleteErr)
		if sent = again; err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// whoseRun returns a *loader.TakenOverError if the load has failed because another process has the run: its rows may be
// what a batch was refused for.
func (p *push) whoseRun(ctx context.Context, err error) error {
	unexplained := err != nil && ctx.Err() == nil && !errors.As(err, new(*loader.TakenOverError))
	if !unexplained || !p.progress.Owned() {
		return nil
	}
	return p.takenOver(ctx)
}

// takenOver asks whether another process has the run, which is then a *loader.TakenOverError. What the database does
// not answer is none.
func (p *push) takenOver(ctx context.Context) error {
	taken := (*loader.TakenOverError)(nil)
	owned := target.Within(ctx, p.target.Can.Claims.Owned)
	if errors.As(owned, &taken) {
		return taken
	}
	return nil
}

// send runs the engine once.
func (p *push) send(ctx context.Context) (engine.Result, error) {
	if p.progress.Left() == 0 {
		return engine.Result{}, nil
	}
	p.loaded = true
	config := p.engineConfig()
	if p.plan.ByDuration() {
		clock, cancel := context.WithTimeout(context.Background(), p.Config.WarmUp+p.Config.Duration)
		defer cancel()
		config.Until = clock.Done()
	}
	end := p.meters.measure(p.Config.WarmUp, func() {
		p.meters.watchServers(ctx, p.Config.ServerMetrics.URLs(), &p.Config.Connect)
		if p.Config.WarmUp > 0 {
			p.Log.Info("the warm-up is over", "after", p.Config.WarmUp)
		}
	})
	result, err := engine.Run(ctx, p.Drain, config)
	if errors.Is(err, errStopped) {
		result.Drained, err = true, nil
	}
	if end(); p.meters.warming {
		p.notes.Warnf("the load ended within --warm-up %s: nothing is measured", p.Config.WarmUp)
	}
	p.progress.ForgetStored()
	return p.input.sent(result, err)
}

func (p *push) engineConfig() engine.Config {
	return engine.Config{
		Target: engine.Target{
			Loader: p.target.Loader, Features: p.target.Can, Classify: p.target.Driver.Classify,
			Contract: p.plan.Contract, Uncounted: p.target.Uncounted(),
		},
		Source: p.source, Progress: p.progress, Rejects: p.input.rejects(),
		Stats: p.meters.stats, Log: p.Log, Workers: p.plan.Workers, Retry: p.target.Retries(),
		FirstAlone:   p.refersToFirst(),
		BatchTimeout: p.Config.BatchTimeout, Rate: engine.Rate{PerSecond: p.maxRate(), BatchBytes: p.plan.BatchBytes()},
	}
}

// maxRate returns this process's part of --max-rate; 0 is no limit.
func (p *push) maxRate() int64 {
	whole := int64(p.Config.MaxRate)
	return max(whole/max(p.plan.Shard.Count, 1), min(whole, 1))
}

// saveLoaded saves the progress of the load, and gives its error an outcome.
func (p *push) saveLoaded(result engine.Result, err error) error {
	r := p.progress.Log().Record()
	r.Plan = p.plan
	// The journal comes first: that of a loaded run must be complete.
	if problem := p.progress.Log().Sync(); problem != nil && !errors.Is(err, problem) {
		err = errors.Join(err, problem)
	}
	if err == nil && !result.Drained {
		r.Stage = runlog.Loaded
	}
	err = failed(report.Failed, errors.Join(p.target.Blame(err), p.progress.Log().Save(r)))
	if n := len(result.Unknown); n > 0 {
		some := result.Unknown[:min(n, 10)]
		err = errors.Join(err, failed(report.Unknown,
			fmt.Errorf("the outcome of %d batches is unknown, the first are %v", n, some)))
	}
	if p.stopped() && r.Stage == runlog.Loading {
		err = errors.Join(err, failed(report.Interrupted, errStopped))
	}
	return err
}

// canSyncSequences finds before the load why --sync-sequences could not move a sequence after it.
func (p *push) canSyncSequences(ctx context.Context) error {
	if !p.Config.SyncSequences || p.target.Can.Sequencer == nil {
		return nil
	}
	_, err := target.Ask(ctx, p.target, "sequences", func(ctx context.Context) ([]string, error) {
		return p.target.Can.Sequencer.Sequences(ctx, p.plan.Keys().Last, false)
	})
	if err != nil {
		return fmt.Errorf("--sync-sequences: %w; or push without it", err)
	}
	return nil
}

// syncSequences looks for sequences that are behind the run's keys, and says or does what helps. Rows that brought
// their own keys do not move them.
func (p *push) syncSequences(ctx context.Context) error {
	can, move := p.target.Can.Sequencer, p.Config.SyncSequences
	if can == nil || p.plan.Rows == 0 || p.progress.Stage() != runlog.Loaded {
		return nil
	}
	ours := p.target.Found.Created && p.Config.LikeTable.Name == "" // a copy has what its model has
	if !move && (p.silent || ours) {                                // a table of ours has none
		return nil
	}

	statements, err := target.Ask(ctx, p.target, "sequences", func(ctx context.Context) ([]string, error) {
		return can.Sequences(ctx, p.plan.Keys().Last, move)
	})
	switch {
	case err != nil && move:
		return failed(report.Failed, fmt.Errorf("the rows were loaded, but the sequence of the key was not advanced: %w", err))
	case err != nil:
		p.notes.Warnf("rows of other programs may get keys that are taken: %v", err)
	case move && len(statements) > 0:
		p.Log.Info("the sequence of the key was moved behind the rows", "statements", strings.Join(statements, "; "))
	case len(statements) > 0:
		p.notes.Warnf("the sequence of the key is behind the rows, so that other programs get keys that are taken: run %s, "+
			"or push with --sync-sequences", strings.Join(statements, "; "))
	}
	return nil
}

// awaitRows waits until acknowledged rows are visible, before they are verified. A resumed process does so too, since
// the earlier one may have been stopped while it waited.
func (p *push) awaitRows(ctx context.Context) error {
	finisher := p.target.Can.Finisher
	if finisher == nil || p.progress.Stage() != runlog.Loaded || p.mode == verify.None {
		return nil
	}
	p.meters.stats.Phase(event.Finish)
	began := time.Now()
	notes, err := finisher.Finish(ctx, p.plan.ShardKeys(), p.plan.ShardRows())
	p.notes.WarnAll(notes)
	if err != nil {
		return fmt.Errorf("waiting until the rows are visible: %w", p.target.Judged(err))
	}
	// A back-end whose acks imply visible rows asks no server and returns faster. Notes are about rows that are not
	// visible.
	const fastestAnswer = 100 * time.Microsecond
	if len(notes) == 0 && time.Since(began) >= fastestAnswer {
		p.meters.visible = p.meters.sinceLastAck()
	}
	return nil
}
