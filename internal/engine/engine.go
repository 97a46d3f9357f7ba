// Package engine moves batches: it hands out their numbers, lets workers fetch and load them, and makes sure that
// every attempt ends as applied, not applied or unknown.
//
// The layers around a session's Load are functions around a function, built once a worker, outermost first:
//
//	retry → attempt (event) → check rows → deadline → reconnect → session.Load
//
// Skipping what is already in happens before, where numbers are handed out, so that no buffer is spent on it.
package engine

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Source makes batches by number. It is safe for concurrent use.
type Source interface {
	// Batch waits for a free buffer and fills it; the caller releases the batch.
	Batch(ctx context.Context, number int64) (*batch.Batch, error)
}

// Config is all the engine needs. Deadline, Limit and the booleans may be zero, Begun is asked for DedupRange only.
type Config struct {
	Loader   loader.Loader
	Classify func(error) loader.Verdict
	Contract loader.Contract
	Source   Source
	Stats    *stats.Collector
	// Record keeps an event for a resume. Its error ends the run: what cannot be resumed must not go on. An
	// event.Started is on disk when it returns.
	Record func(event.Event) error
	Log    *slog.Logger

	Batches int64
	// Done tells whether a batch is in already and need not be sent.
	Done    func(number int64) bool
	Workers int
	Retry   retry.Policy
	// Resumed says that an earlier process worked on the run: a batch may then be found applied at the first attempt.
	Resumed bool
	// Begun tells whether an earlier process may have sent a part of a batch: where batches are not atomic
	// (DedupRange), the database is asked before the first attempt.
	Begun func(number int64) bool
	// Until is closed when no more batches are to be begun. Unlike a drain it leaves those on their way their retries:
	// the end of a run by duration is nobody's wish to stop. It may be nil.
	Until <-chan struct{}
	// Deadline bounds one attempt; 0 lets the engine choose from the attempts so far.
	Deadline time.Duration
	// Limit is in encoded bytes a second; nil is no limit. Its burst holds at least one batch.
	Limit *rate.Limiter
	// TrustAcks skips the comparison of acknowledged rows with sent ones: --verify none.
	TrustAcks bool
}

// Result says how the run ended.
type Result struct {
	// Unknown lists the batches whose outcome could not be found out, in order.
	Unknown []int64
	// Handed is how many batch numbers were handed out: for a run by duration, how many batches it has.
	Handed int64
	// Complete says that every batch handed out is in.
	Complete bool
	// Drained says that handing out ended before its end, because the run was asked to stop or because it failed.
	Drained bool
}

// Run loads all batches that are not done. A closed drain ends the handing out: batches on their way are finished.
// When ctx ends, the connections are closed and its cause is the error, unless a batch has a better one. The first
// error that no retry could mend drains the run as well and is returned beside the result.
func Run(ctx context.Context, drain <-chan struct{}, c Config) (Result, error) {
	running, end := context.WithCancel(ctx)
	defer end()
	patience, endPatience := context.WithCancel(running)
	more, noMore := context.WithCancel(running)
	r := &run{
		Config: c, numbers: numbers{end: c.Batches, done: c.Done, noMore: noMore},
		deadline: deadline{fixed: c.Deadline}, patience: patience, more: more,
	}
	if c.Limit != nil {
		r.batchBytes.Store(int64(c.Limit.Burst()))
	}

	var helpers, workers sync.WaitGroup
	helpers.Go(func() { r.watch(running) })
	helpers.Go(func() {
		until := c.Until
		for {
			select {
			case <-until:
				r.numbers.stop()
				until = nil
			case <-drain:
				r.numbers.stop()
				endPatience()
				return
			case <-running.Done():
				return
			}
		}
	})
	for i := range c.Workers {
		w := newWorker(r, i)
		workers.Go(func() { r.fail(w.work(ctx)) })
	}
	workers.Wait()
	end()
	helpers.Wait()

	slices.Sort(r.unknown)
	if r.failed == nil {
		r.failed = context.Cause(ctx)
	}
	handed, stopped := r.numbers.state()
	return Result{
		Unknown:  r.unknown,
		Handed:   handed,
		Complete: r.failed == nil,
		Drained:  stopped,
	}, r.failed
}

// run is what the workers share.
type run struct {
	Config
	numbers  numbers
	deadline deadline
	// patience ends when the run is asked to stop: nobody waits for a retry after that. more ends when nothing is left
	// to hand out, or with the first failure: then others may still retry what they have.
	patience, more context.Context
	batchBytes     atomic.Int64 // encoded length of the newest batch, for the limit

	mu      sync.Mutex
	failed  error
	unknown []int64
}

// fail keeps the first error and lets the others finish what they have.
func (r *run) fail(err error) {
	if err == nil {
		return
	}
	r.numbers.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

// record gives an event to those who count and those who keep it. Where it cannot be kept the run ends, but the
// attempt went as it went: a full disk on this side says nothing about the rows on the other.
func (r *run) record(e event.Event) {
	r.Stats.Add(e)
	r.fail(r.Record(e))
}

// abandon counts a batch that gets no further attempt.
func (r *run) abandon(number int64, applied loader.Applied) {
	if applied != loader.Unknown {
		r.Stats.GiveUp(event.NotApplied)
		return
	}
	r.Stats.GiveUp(event.Unknown)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unknown = append(r.unknown, number)
}
