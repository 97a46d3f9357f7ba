// Package engine loads batches: it hands out their numbers to workers, which fetch and load them, and makes sure that
// every attempt ends as applied, not applied or unknown.
//
// The layers around a session's Load are functions that wrap a function, built once for each worker. Outermost first:
//
//	retry → leave out bad records → event → verdict → row count → deadline → connect → session.Load
//
// A batch that the server refuses for its records goes in part by part instead, from the second layer on:
//
//	event → row count → sift → connect → session
//
// Under a staged contract these layers upload batches to a store. Stored batches are collected in groups, and
// committers load the groups into the table while uploads continue, through the same layers:
//
//	retry → event → verdict → row count → deadline → Committer.Commit
//
// Applied batches are skipped earlier, where numbers are handed out, so that they take no buffer.
package engine

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Target is where batches go.
type Target struct {
	Loader   loader.Loader
	Features loader.Features // of Loader
	Classify func(error) loader.Verdict
	Contract loader.Contract
	// Uncounted reports whether the target does not count rows, so that acknowledged rows are not compared with those
	// sent.
	Uncounted bool
}

// Progress knows what of the run is applied, begun or stored, and keeps what happens to it. It is safe for concurrent
// use.
type Progress interface {
	// Range returns the batches that this process sends: from first on, up to and without end.
	Range() (first, end int64)
	// Done reports whether a batch is applied already and need not be sent.
	Done(number int64) bool
	// Attempts returns those of earlier processes at a batch, GroupAttempts those at a commit group. They are counted
	// on from there, and where Started events announce them (DedupKey, groups) the database is asked first.
	Attempts(number int64) Attempts
	GroupAttempts(number int64) Attempts
	// Stored returns the batches of a staged contract that are in the store and not in the table.
	Stored() []Stored
	// Resumed reports whether another process may have sent batches of this one's range: an earlier one, any of a named
	// run, or this one itself some that were lost. With claims (DedupTx) the first attempt in the journal may then find
	// the batch applied.
	Resumed() bool
	// Note keeps an event for a resume. Its error ends the run, which could not be resumed. An event.Started and every
	// event of a commit group are on disk when it returns.
	Note(e event.Event) error
}

// Attempts are those of earlier processes at a batch or commit group that is not applied. The zero value is none.
type Attempts struct {
	Attempt int  // the newest one
	Unknown bool // the outcome of one of them is still unknown
}

// Stored is a batch of a commit group in the store.
type Stored struct {
	loader.Ref
	Payload, Encoded int64
}

// Rate bounds the bytes sent; the zero value is no limit.
type Rate struct {
	// PerSecond is encoded bytes per second, on average since the start. It gives batches an intended start, which is
	// in their events.
	PerSecond int64
	// BatchBytes is the encoded length of a whole batch, estimated before one was made.
	BatchBytes int64
}

// Config configures a run. Until, Deadline, Rate, Rejects and FirstAlone may be zero.
type Config struct {
	Target
	Source   source.Source
	Progress Progress
	Stats    *stats.Collector
	Log      *slog.Logger
	Workers  int
	Retry    retry.Policy
	// Until is closed to begin no more batches. Unlike a drain it does not end the retries of those on their way: the
	// end of a run by duration is no request to stop.
	Until <-chan struct{}
	// BatchTimeout bounds one attempt; with 0 the engine derives it from the attempts so far.
	BatchTimeout time.Duration
	Rate         Rate
	Rejects      Rejects // nil: a batch with a bad record fails
	// FirstAlone says that rows of other batches refer to those of batch 0: none is begun before that is in, if it is this
	// process's.
	FirstAlone bool
}

// Result describes the end of the run.
type Result struct {
	// Unknown lists the batches with an unknown outcome, in order.
	Unknown []int64
	// Handed is one past the last batch that was handed out; a run by duration, and one whose source has an end, ends
	// there.
	Handed int64
	// Drained reports whether numbers were left when the run was asked to stop or failed. Batches of commit groups that
	// are not full are then left in the store.
	Drained bool
	// UndeletedGroups counts the commit groups in the table whose objects could not be removed; DeleteErr is the first
	// reason.
	UndeletedGroups int64
	DeleteErr       error
}

// Run loads all batches that are not done. Closing drain begins no more batches; those on their way are finished. When
// ctx ends the connections are closed, and Run returns the cause of ctx unless a batch has failed. The first error that
// no retry could fix drains the run as well and is returned beside the result.
func Run(ctx context.Context, drain <-chan struct{}, c Config) (Result, error) {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
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
		r.groups.close(r.sentEnd())
		committers.Wait()
	}
	cancel()
	helpers.Wait()

	slices.Sort(r.result.Unknown)
	r.result.Handed, _, r.result.Drained = r.numbers.state()
	return r.result, cmp.Or(r.failed, context.Cause(ctx))
}

func newRun(running context.Context, c Config) (*run, error) {
	first, end := c.Progress.Range()
	r := &run{
		Config: c, numbers: numbers{next: first, end: end, done: c.Progress.Done},
		batchDeadline: deadline{fixed: c.BatchTimeout}, groupDeadline: deadline{fixed: c.BatchTimeout},
	}
	if c.Contract.Staged() && c.Features.Committer == nil {
		return nil, fmt.Errorf("method %s stores batches, and the back-end cannot commit them", c.Contract.Method)
	}
	if c.FirstAlone && first == 0 && !c.Progress.Done(0) {
		r.firstIn = make(chan struct{})
	}
	r.retryCtx, r.endRetries = context.WithCancel(running)
	r.handoutCtx, r.numbers.ended = context.WithCancel(running)
	if c.Contract.Staged() {
		if c.Retry.Outage != nil {
			r.storeOutage = &retry.Outage{Most: c.Retry.Outage.Most, Log: c.Log}
		}
		r.groups = newGroups(c, end)
		r.numbers.done = func(number int64) bool { return c.Progress.Done(number) || r.groups.stored(number) }
	}
	if c.Rate.PerSecond > 0 {
		r.schedule = &schedule{perSecond: c.Rate.PerSecond, length: c.Rate.BatchBytes}
	}
	return r, nil
}

// listen stops the numbers at a drain, or at the end of a run by duration.
func (r *run) listen(running context.Context, drain <-chan struct{}) {
	until := r.Until
	for {
		select {
		case <-until:
			r.numbers.stop()
			until = nil
		case <-drain:
			r.stopRequested.Store(true)
			r.numbers.stop()
			r.endRetries()
			return
		case <-running.Done():
			return
		}
	}
}

// run is shared by workers and committers.
type run struct {
	Config
	numbers       numbers
	firstIn       chan struct{} // closed once batch 0 is in; nil if nothing waits for that
	groups        *groups       // nil unless the contract is staged
	schedule      *schedule     // nil without a rate
	batchDeadline deadline
	// storeOutage is that of a staged contract's store, which may answer while the database is away.
	storeOutage *retry.Outage
	// groupDeadline is learned from groups only: the time to load many batches does not predict that to upload one.
	groupDeadline deadline
	// retryCtx ends when the run is asked to stop, and with it all retries. handoutCtx ends when no number is left, or
	// with the first failure, after which other batches are still retried.
	retryCtx, handoutCtx context.Context
	endRetries           func()
	stopRequested        atomic.Bool
	outcome
}

// sentEnd returns the number behind the last batch that this process has sent, or 0 if it was stopped before the end. A
// run by duration ends where its time was over.
func (r *run) sentEnd() int64 {
	next, end, stopped := r.numbers.state()
	inTime := stopped && !r.stopRequested.Load() && !r.isBroken()
	if next < end && !inTime {
		return 0
	}
	return next
}

// fail keeps the first error and begins no more batches.
func (r *run) fail(err error) {
	if err == nil {
		return
	}
	r.keepError(err)
	r.breakOff() // before the stop, which would look like the end of a run by duration
	r.numbers.stop()
	if r.groups != nil {
		r.groups.wake()
	}
}

// record passes an event to Stats and to Progress. If it cannot be kept the run ends, but the outcome of the
// attempt does not change: a full disk here does not affect the rows on the server.
func (r *run) record(e event.Event) error {
	r.Stats.Add(e)
	err := r.Progress.Note(e)
	r.fail(err)
	return err
}
