package push

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// count begins to count for the plan, with what earlier processes acknowledged. The report ends it.
func (p *push) count() {
	o := stats.Options{
		Start: p.started, Workers: p.plan.Workers, WireBytes: p.wire.Sent,
		Refills: func() int64 { return p.fed(0, (*feed.Feed).Refills) },
		Buffers: func() (int, int) {
			return int(p.fed(0, func(f *feed.Feed) int64 { return int64(f.Free()) })), p.plan.Buffers
		},
		Lost: p.lostTime,
	}
	if !p.plan.ByDuration {
		o.PlannedRows, o.PlannedBytes = p.plan.Rows, p.plan.PayloadTotal()
	}
	p.account = stats.NewBottleneck(p.reading)
	p.stats = stats.New(o)
	if p.resumed {
		earlier := p.amount(p.before())
		earlier.Rows, earlier.MissingRows = earlier.Rows-p.history.missing, p.history.missing
		p.stats.Resume(earlier)
	}
	p.timeline = stats.StartTimeline(p.started, p.account.Sample, p.stats.Progress)
}

// before is how many batches, and rows, were in when this process began.
func (p *push) before() (batches, rows int64) {
	if p.ledger.Record().Stage != runlog.Loading {
		return p.plan.Batches(), p.plan.Rows
	}
	return p.done.Len(), p.rowsIn(&p.done)
}

func (p *push) amount(batches, rows int64) stats.Earlier {
	return stats.Earlier{
		Rows: rows, Batches: batches, PayloadBytes: rows * p.plan.RowBytes, EncodedBytes: rows * p.plan.EncodedRowBytes,
	}
}

// rowsIn is how many rows the batches of a set hold. Only the last batch may be short.
func (p *push) rowsIn(d *runlog.Done) int64 {
	rows := d.Len() * p.plan.BatchRows
	if last := p.plan.Batches() - 1; d.Has(last) {
		rows -= p.plan.BatchRows - p.plan.BatchSize(last)
	}
	return rows
}

// fed reads a number of the feed, which is made later than those who watch it.
func (p *push) fed(otherwise int64, read func(*feed.Feed) int64) int64 {
	if f := p.feed.Load(); f != nil {
		return read(f)
	}
	return otherwise
}

// fill maps the ring and encodes its templates, before the clock of the load starts; once, and not for nothing.
func (p *push) fill(ctx context.Context) error {
	if p.toUpload() == 0 || p.feed.Load() != nil {
		return nil
	}
	p.rowsRest(event.Fill)
	f, err := feed.New(feed.Config{
		Dataset: p.data, Encoder: p.encoder, Run: p.id(),
		FirstKey: p.plan.FirstKey, Rows: p.plan.Rows, BatchRows: p.plan.BatchRows,
		Distinct: p.plan.DistinctRows, Buffers: p.plan.Buffers, Done: p.needless,
	})
	if err != nil {
		return err
	}
	p.feed.Store(f)
	return f.Fill(ctx, runtime.GOMAXPROCS(0), nil)
}

// load runs the engine until every batch is in, and saves how far the run is.
func (p *push) load(ctx context.Context) error {
	p.watchServers(ctx)
	p.rowsMove()
	p.loaded = true
	result, err := p.send(ctx)
	for err == nil && !result.Drained {
		p.rowsRest(event.Finish) // the workers have ended: what is lost is looked for in nobody's time
		lost, problem := p.lost(ctx)
		if problem != nil || lost == 0 {
			err = problem
			break
		}
		p.warnOfLoss(lost)
		// Attempts at what was lost are counted anew from where this process began; only claims can be lost, and they and
		// not the attempts' numbers keep two loads of a batch apart.
		if err = p.fill(ctx); err == nil {
			p.rowsMove()
			result, err = engine.Run(ctx, p.Drain, p.engineConfig())
		}
	}
	if n := p.stats.Snapshot().Outcomes[event.Unknown]; n > 0 && p.contract.Dedup == loader.DedupNone {
		p.warn(fmt.Sprintf("the answers to %d attempts were lost, and delivery is at least once: their rows may be there twice", n))
	}
	if result.Kept > 0 {
		p.warn(fmt.Sprintf("the objects of %d commit groups that are in the table could not be removed: %v", result.Kept, result.KeptWhy))
	}
	p.rowsRest(event.Finish)
	p.stopWatching()
	return p.settle(result, err)
}

// awaitRows waits until the rows can be read, where the back-end acknowledges them before that. It is part of every
// process that verifies: the one before may have been stopped while it waited. Where nobody looks at the rows there is
// nothing to wait for, and a run that is to send nothing but the load asks nothing.
func (p *push) awaitRows(ctx context.Context) error {
	finisher, waits := p.loader.(loader.Finisher)
	if !waits || p.ledger.Record().Stage != runlog.Loaded || p.Config.Verify == string(verify.None) {
		return nil
	}
	p.stats.Phase(event.Finish)
	began := time.Now()
	all := loader.KeyRange{First: p.plan.FirstKey, Last: p.plan.LastKey()}
	notes, err := finisher.Finish(ctx, all, p.plan.Rows)
	for _, n := range notes {
		p.warn(n)
	}
	if err != nil {
		return fmt.Errorf("waiting until the rows can be read: %w", err)
	}
	if len(notes) == 0 && time.Since(began) >= askedSomebody {
		p.visible = p.sinceLastAck()
	}
	return nil
}

// askedSomebody is the least time in which Finish can have got an answer. A back-end returns sooner where this method's
// acks say that the rows can be read; what its notes are about was perhaps not seen.
const askedSomebody = 100 * time.Microsecond

// sinceLastAck is 0 where this process had no ack.
func (p *push) sinceLastAck() time.Duration {
	s := p.stats.Snapshot()
	if s.AppliedBatches+s.AlreadyBatches == 0 {
		return 0
	}
	return time.Since(s.LastProgress)
}

// send runs the engine once. A run by duration that has stopped in order has from then on a number of rows: every batch
// that was handed out is in, and there are no others.
func (p *push) send(ctx context.Context) (engine.Result, error) {
	if p.left() == 0 {
		return engine.Result{Complete: true}, nil
	}
	config := p.engineConfig()
	var stopClock func()
	config.Until, stopClock = p.clock()
	defer stopClock()
	before := stats.ProcessUsage()
	defer func() { p.loadCPU = stats.ProcessUsage().CPU() - before.CPU() }()
	result, err := engine.Run(ctx, p.Drain, config)
	p.waiting, p.skipped = nil, runlog.Done{} // committed, or for the next process to look for
	switch {
	case !p.plan.ByDuration || err != nil:
	case result.Handed > 0:
		p.plan.Rows, p.plan.ByDuration = min(p.plan.Rows, result.Handed*p.plan.BatchRows), false
		result.Drained = isClosed(p.Drain) // by the clock is no interruption
	case !isClosed(p.Drain):
		err = fmt.Errorf("--duration %s was over before a batch was begun", p.Config.Duration)
	}
	return result, err
}

// clock is closed when the time of a run by duration is over; for others it never is.
func (p *push) clock() (over <-chan struct{}, stop func()) {
	if !p.plan.ByDuration {
		return nil, func() {}
	}
	clock, cancel := context.WithTimeout(context.Background(), p.Config.Duration)
	return clock.Done(), cancel
}

func (p *push) engineConfig() engine.Config {
	c := engine.Config{
		Loader: p.loader, Classify: p.driver.Classify, Contract: p.contract,
		Source: p.feed.Load(), Stats: p.stats, Record: p.record, Log: p.Log,
		Batches: p.plan.Batches(), Done: p.done.Has, Workers: p.plan.Workers,
		Retry: p.retries(), Resumed: p.resumed || p.lostSome,
		Begun:      func(number int64) engine.Begun { return p.history.begun[number].engine() },
		BegunGroup: func(number int64) engine.Begun { return p.history.groups[number].engine() },
		Stored:     p.waiting,
		Deadline:   p.Config.BatchTimeout, Uncounted: p.uncounted(),
	}
	c.MaxRate, c.BatchBytes = int64(p.Config.MaxRate), p.plan.BatchBytes()
	return c
}

// record keeps an event for a resume. What is announced is on disk before it is sent: nothing else would tell a resume
// to ask for it. The end of a commit group is on disk before it counts as acknowledged, and so before anybody removes its
// objects.
func (p *push) record(e event.Event) error {
	err := p.ledger.Append(e)
	if err == nil && (e.Outcome == event.Started || e.Members > 0) {
		err = p.ledger.Sync()
	}
	if err == nil && e.Done() {
		p.acknowledged(e)
	}
	return err
}

func (p *push) acknowledged(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := range max(e.Members, 1) {
		p.acked.Add(e.Batch + n)
	}
	p.keepLength(e)
}

// lost finds the batches that were acknowledged and are claimed no more: a server that crashed may have given back
// commits it had confirmed, by its own settings or because the table is unlogged.
func (p *push) lost(ctx context.Context) (int64, error) {
	p.done.Merge(&p.acked)
	p.acked = runlog.Done{}
	claimed, can, err := p.claimed(ctx)
	if err != nil || !can {
		return 0, err
	}
	lost := p.done.Without(&claimed)
	if err := p.reallyGone(ctx, &lost); err != nil {
		return 0, err
	}
	p.done, p.lostSome = claimed, p.lostSome || lost.Len() > 0
	p.stats.TakeBack(p.amount(lost.Len(), p.rowsIn(&lost)))
	return lost.Len(), nil
}

// settle draws the balance of the load.
func (p *push) settle(result engine.Result, err error) error {
	r := p.ledger.Record()
	r.Plan = p.plan
	if err == nil && !result.Drained {
		r.Stage = runlog.Loaded
	}
	// The journal first: a run that is loaded has it whole.
	if problem := p.ledger.Sync(); problem != nil && !errors.Is(err, problem) {
		err = errors.Join(err, problem)
	}
	err = failed(report.Failed, errors.Join(err, p.ledger.Save(r)))
	if n := len(result.Unknown); n > 0 {
		some := result.Unknown[:min(n, 10)]
		err = errors.Join(err, failed(report.Unknown, fmt.Errorf("the outcome of %d batches is unknown, the first are %v", n, some)))
	}
	if isClosed(p.Drain) && r.Stage == runlog.Loading {
		err = errors.Join(err, failed(report.Interrupted, errStopped))
	}
	return err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// orInterrupted gives an error its outcome. Whatever a driver says when its context ends, it was the user who asked for
// it, unless something was found out before.
func (p *push) orInterrupted(o report.Outcome, err error) error {
	var known *Error
	if err != nil && isClosed(p.Drain) && !errors.As(err, &known) {
		return failed(report.Interrupted, errStopped)
	}
	return failed(o, err)
}
