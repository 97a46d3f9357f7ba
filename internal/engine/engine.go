// Package engine moves batches: it hands out their numbers, lets workers fetch and load them, and makes sure that
// every attempt ends as applied, not applied or unknown.
//
// The layers around a session's Load are functions around a function, built once a worker, outermost first:
//
//	retry → attempt (event) → check rows → deadline → reconnect → session.Load
//
// Under a staged contract that brings batches into a store only. What is stored is collected in groups, and committers
// bring those into the table beside the uploads, through the same layers:
//
//	retry → attempt (event) → check rows → deadline → Committer.Commit
//
// Skipping what is already in happens before, where numbers are handed out, so that no buffer is spent on it.
package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

// Begun is what earlier processes have tried with a batch or a commit group that is not in; the zero value is nothing.
type Begun struct {
	Attempt int // the newest one
	// Unknown reports whether the outcome of one of them is still unknown.
	Unknown bool
}

// Stored is a batch in the store, a part of its commit group.
type Stored struct {
	loader.Ref
	Payload, Encoded int64
}

// Config is all the engine needs. Deadline, MaxRate and the booleans may be zero.
type Config struct {
	Loader   loader.Loader
	Features loader.Features // of Loader
	Classify func(error) loader.Verdict
	Contract loader.Contract
	Source   Source
	Stats    *stats.Collector
	// Record keeps an event for a resume. Its error ends the run: what cannot be resumed must not go on. An
	// event.Started and every event of a commit group are on disk when it returns.
	Record func(event.Event) error
	Log    *slog.Logger

	Batches int64
	// Done reports whether a batch is in already and need not be sent.
	Done    func(number int64) bool
	Workers int
	Retry   retry.Policy
	// Resumed reports whether an earlier process worked on the run: where claims record what is in (DedupTx), a batch may
	// then be found there at the first attempt that the journal knows of.
	Resumed bool
	// Begun returns what earlier processes tried with a batch, BegunGroup with a commit group. The count of attempts goes
	// on from there, and where Started events announce them (DedupKey, DedupRange, groups) the database is asked first.
	// nil: nothing.
	Begun, BegunGroup func(number int64) Begun
	// Stored are the batches of a staged contract that lie in the store already and are not in the table.
	Stored []Stored
	// Until is closed when no more batches are to be begun. Unlike a drain it leaves those on their way their retries:
	// the end of a run by duration is no request to stop. It may be nil.
	Until <-chan struct{}
	// Deadline bounds one attempt; 0 lets the engine choose from the attempts so far.
	Deadline time.Duration
	// MaxRate is encoded bytes a second, on average since the start; 0 is no limit. Under it batches have an intended
	// start, which is in their events. BatchBytes is then the encoded length of a whole batch, as far as it is known
	// before one was made.
	MaxRate, BatchBytes int64
	// Uncounted reports whether the target does not count rows, so that what it acknowledges is not compared with what
	// was sent.
	Uncounted bool
}

// Result is how the run ended.
type Result struct {
	// Unknown lists the batches whose outcome could not be found out, in order.
	Unknown []int64
	// Handed is how many batch numbers were handed out: for a run by duration, how many batches it has.
	Handed int64
	// Complete reports whether every batch handed out is in.
	Complete bool
	// Drained reports whether handing out ended before its end, because the run was asked to stop or because it failed.
	// Of a staged contract, batches of groups that are not full are then left in the store.
	Drained bool
	// Kept is how many commit groups are in the table while their objects could not be removed, KeptWhy the first reason.
	Kept    int64
	KeptWhy error
}

// Run loads all batches that are not done. A closed drain ends the handing out: batches on their way are finished.
// When ctx ends, the connections are closed and its cause is the error, unless a batch has a better one. The first
// error that no retry could mend drains the run as well and is returned beside the result.
func Run(ctx context.Context, drain <-chan struct{}, c Config) (Result, error) {
	running, end := context.WithCancel(ctx)
	defer end()
	r, err := newRun(running, c)
	if err != nil {
		return Result{}, err
	}

	var helpers, workers, committers sync.WaitGroup
	helpers.Go(func() { r.watch(running) })
	helpers.Go(func() { r.listen(running, drain) })
	if r.groups != nil {
		for range max(c.Contract.Commits, 1) {
			committers.Go(func() { r.commitGroups(ctx) })
		}
	}
	for i := range c.Workers {
		w := newWorker(r, i)
		workers.Go(func() { r.fail(w.work(ctx)) })
	}
	workers.Wait()
	if r.groups != nil {
		c.Stats.Phase(event.Commit)
		r.groups.close(r.end())
		committers.Wait()
	}
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
		Kept:     r.kept, KeptWhy: r.keptWhy,
	}, r.failed
}

func newRun(running context.Context, c Config) (*run, error) {
	nothing := func(int64) Begun { return Begun{} }
	if c.Begun == nil {
		c.Begun = nothing
	}
	if c.BegunGroup == nil {
		c.BegunGroup = nothing
	}
	r := &run{
		Config: c, numbers: numbers{end: c.Batches, done: c.Done},
		deadline: deadline{fixed: c.Deadline}, groupDeadline: deadline{fixed: c.Deadline},
	}
	if c.Contract.Staged() && c.Features.Committer == nil {
		return nil, fmt.Errorf("method %s stores batches, and the back-end cannot commit them", c.Contract.Method)
	}
	r.retryCtx, r.endRetries = context.WithCancel(running)
	r.handoutCtx, r.numbers.ended = context.WithCancel(running)
	if c.Contract.Staged() {
		r.groups = newGroups(c)
		r.numbers.done = func(number int64) bool { return c.Done(number) || r.groups.stored(number) }
	}
	if c.MaxRate > 0 {
		r.schedule = &schedule{perSecond: c.MaxRate, length: c.BatchBytes}
	}
	return r, nil
}

// listen waits for a drain, or the end of a run by duration, and ends the handing out.
func (r *run) listen(running context.Context, drain <-chan struct{}) {
	until := r.Until
	for {
		select {
		case <-until:
			r.numbers.stop()
			until = nil
		case <-drain:
			r.asked.Store(true)
			r.numbers.stop()
			r.endRetries()
			return
		case <-running.Done():
			return
		}
	}
}

// run is what the workers share.
type run struct {
	Config
	numbers  numbers
	groups   *groups   // nil unless the contract is staged
	schedule *schedule // nil without a rate
	deadline deadline
	// groupDeadline has seen groups only: the time of a load of many batches does not predict that of an upload of one.
	groupDeadline deadline
	// retryCtx ends when the run is asked to stop: there are no retries after that. handoutCtx ends when nothing is left
	// to hand out, or with the first failure: then others may still retry what they have.
	retryCtx, handoutCtx context.Context
	endRetries           func()
	asked                atomic.Bool // to stop

	mu      sync.Mutex
	failed  error
	broken  bool // failed is no matter of single batches: nothing new is begun
	unknown []int64
	kept    int64
	keptWhy error
}

// end returns the number of batches that the run has, or 0 when that is not known because handing out was cut off. A
// run by duration ends where its time was over.
func (r *run) end() int64 {
	handed, stopped := r.numbers.state()
	inTime := stopped && !r.asked.Load() && !r.isBroken()
	if handed < r.Batches && !inTime {
		return 0
	}
	return handed
}

// fail keeps the first error and lets the others finish what they have.
func (r *run) fail(err error) {
	if err == nil {
		return
	}
	r.note(err)
	r.mu.Lock()
	r.broken = true // before the stop, which without it would look like the end of a run by duration
	r.mu.Unlock()
	r.numbers.stop()
	if r.groups != nil {
		r.groups.wake()
	}
}

// note keeps the first error and lets the run go on: nothing more can be done about the batch.
func (r *run) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

func (r *run) isBroken() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.broken
}

// record passes an event to Stats and to Config.Record. Where it cannot be kept the run ends, but the outcome of the
// attempt stays as it is: a full disk here changes nothing about the rows on the server.
func (r *run) record(e event.Event) error {
	r.Stats.Add(e)
	err := r.Record(e)
	r.fail(err)
	return err
}

// abandon counts batches that get no further attempt. Those that went in all the same, by an answer that was an error,
// are counted by the attempt's event.
func (r *run) abandon(first, batches int64, applied loader.Applied) {
	if applied == loader.Yes {
		return
	}
	outcome := event.NotApplied
	if applied == loader.Unknown {
		outcome = event.Unknown
	}
	for range batches {
		r.Stats.GiveUp(outcome)
	}
	if applied != loader.Unknown {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := range batches {
		r.unknown = append(r.unknown, first+n)
	}
}
