package push

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/time/rate"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/engine/ledger"
	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/event"
)

// newStats counts for the plan, and begins with what earlier processes acknowledged.
func (p *push) newStats() *stats.Collector {
	o := stats.Options{
		Start: p.started, Workers: p.plan.Workers, WireBytes: p.wire.Sent,
		Refills: func() int64 { return p.fed(0, (*feed.Feed).Refills) },
		Buffers: func() (int, int) {
			return int(p.fed(0, func(f *feed.Feed) int64 { return int64(f.Free()) })), p.plan.Buffers
		},
	}
	if !p.plan.ByDuration {
		o.PlannedRows, o.PlannedBytes = p.plan.Rows, p.plan.PayloadTotal()
	}
	c := stats.New(o)
	if rows := p.doneRows(); rows > 0 {
		c.Resume(stats.Earlier{
			Rows: rows, Batches: p.done.Len(),
			PayloadBytes: rows * p.plan.RowBytes, EncodedBytes: rows * p.plan.EncodedRowBytes,
		})
	}
	return c
}

// fed reads a number of the feed, which is made later than those who watch it.
func (p *push) fed(otherwise int64, read func(*feed.Feed) int64) int64 {
	if f := p.feed.Load(); f != nil {
		return read(f)
	}
	return otherwise
}

// doneRows is how many rows the batches hold that are in. Only the last batch may be short.
func (p *push) doneRows() int64 {
	if p.ledger.Record().Stage != ledger.Loading {
		return p.plan.Rows
	}
	rows := p.done.Len() * p.plan.BatchRows
	if p.done.Has(p.plan.Batches() - 1) {
		rows -= p.plan.Batches()*p.plan.BatchRows - p.plan.Rows
	}
	return rows
}

// fill maps the ring and encodes its templates, before the clock of the load starts.
func (p *push) fill(ctx context.Context) error {
	p.stats.Phase(event.Fill)
	f, err := feed.New(feed.Config{
		Dataset: p.data, Encoder: p.encoder, Run: p.id(),
		FirstKey: p.plan.FirstKey, Rows: p.plan.Rows, BatchRows: p.plan.BatchRows,
		Distinct: p.plan.DistinctRows, Buffers: p.plan.Buffers,
	})
	if err != nil {
		return err
	}
	p.feed.Store(f)
	return f.Fill(ctx, runtime.GOMAXPROCS(0), nil)
}

// load runs the engine until every batch is in, and saves how far the run is.
func (p *push) load(ctx context.Context) error {
	p.stats.Phase(event.Load)
	drain, stopClock := p.drain()
	defer stopClock()
	result, err := engine.Run(ctx, drain, p.engineConfig())
	for err == nil && !result.Drained {
		lost, problem := p.lost(ctx)
		if problem != nil || lost == 0 {
			err = problem
			break
		}
		p.warn(fmt.Sprintf("the server lost %d batches that it had acknowledged; they are sent again", lost))
		result, err = engine.Run(ctx, drain, p.engineConfig())
	}
	p.stats.Phase(event.Finish)
	return p.settle(result, err)
}

// drain is closed when the user asks to stop or the time of a run by duration is over.
func (p *push) drain() (drain <-chan struct{}, stop func()) {
	if !p.plan.ByDuration {
		return p.Drain, func() {}
	}
	clock, cancel := context.WithTimeout(context.Background(), p.Config.Duration)
	go func() {
		select {
		case <-p.Drain:
			cancel()
		case <-clock.Done():
		}
	}()
	return clock.Done(), cancel
}

func (p *push) engineConfig() engine.Config {
	c := engine.Config{
		Loader: p.loader, Classify: p.driver.Classify, Contract: p.contract,
		Source: p.feed.Load(), Stats: p.stats, Record: p.record, Log: p.Log,
		Batches: p.plan.Batches(), Done: p.done.Has, Workers: p.plan.Workers,
		Retry: retry.Policy{Retries: p.Config.Retries}, Resumed: p.resumed,
		Begun: p.begun.Has, Deadline: p.Config.BatchTimeout, TrustAcks: p.Config.Verify == string(verify.None),
	}
	if p.Config.MaxRate > 0 {
		c.Limit = rate.NewLimiter(rate.Limit(p.Config.MaxRate), int(feed.BufferBytes(p.encoder, p.plan.BatchRows)))
	}
	return c
}

// record keeps an event for a resume. A batch of a run by key range is on disk as begun before its first row is sent:
// nothing else would tell a resume to look for half of it.
func (p *push) record(e event.Event) error {
	if err := p.ledger.Append(e); err != nil {
		return err
	}
	if e.Outcome == event.Started {
		return p.ledger.Sync()
	}
	if e.Done() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.acked.Add(e.Batch)
	}
	return nil
}

// lost finds the batches that were acknowledged and are claimed no more: a server that crashed may have given back
// commits it had confirmed, by its own settings or because the table is unlogged.
func (p *push) lost(ctx context.Context) (int64, error) {
	p.done.Merge(&p.acked)
	p.acked = ledger.Done{}
	claimed, can, err := p.claimed(ctx)
	if err != nil || !can {
		return 0, err
	}
	lost := p.done.Without(&claimed)
	p.done, p.resumed = claimed, p.resumed || lost > 0
	p.stats.Lost(stats.Earlier{
		Rows: lost * p.plan.BatchRows, Batches: lost,
		PayloadBytes: lost * p.plan.BatchRows * p.plan.RowBytes, EncodedBytes: lost * p.plan.BatchBytes(),
	})
	return lost, nil
}

// settle draws the balance of the load.
func (p *push) settle(result engine.Result, err error) error {
	p.unknown = result.Unknown
	stopped := isClosed(p.Drain)
	if p.plan.ByDuration && result.Complete {
		p.plan.Rows, p.plan.ByDuration = result.Handed*p.plan.BatchRows, false
	}
	r := p.ledger.Record()
	r.Plan = p.plan
	if err == nil && (!result.Drained || !stopped) {
		r.Stage = ledger.Loaded
	}
	err = errors.Join(failed(report.Failed, err), failed(report.Failed, p.ledger.Save(r)), failed(report.Failed, p.ledger.Sync()))
	if len(p.unknown) > 0 {
		err = errors.Join(err, failed(report.Unknown, fmt.Errorf("the outcome of %d batches is unknown: %v", len(p.unknown), p.unknown)))
	}
	if stopped && r.Stage == ledger.Loading {
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

// orInterrupted gives the end of a context that the user asked for its outcome.
func (p *push) orInterrupted(err error) error {
	if err != nil && isClosed(p.Drain) {
		return failed(report.Interrupted, errStopped)
	}
	return failed(report.Failed, err)
}
