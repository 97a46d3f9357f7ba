// Package push does one push or load, from the first connection to the report. Run does it in this order, and the files
// have these names:
//
//	attach   what the run is (configure), a connection, a plan, the run's row: begin makes the table and proves the
//	         transactions (probe), resume finds what is in, named and shared are runs of several processes; same
//	         refuses flags that a resume cannot change
//	load     the engine, until every batch is in
//	prove    every row has arrived
//	report   with meters, which run from load on, and the outcome of an error
//
// The newest plan is in plan. Where the rows come from is an input: dataset, or files with filespec, filesource,
// fileproof and rejects. Beside a run there are outline (a dry run), check (the doctor), describe, verify and forget.
// Decisions are those of run.MakePlan and of the back-end.
package push

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/notes"
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

// Job is the input of a push.
type Job struct {
	Config  config.Push
	Drivers *loader.Registry
	// ID is that of a new run without a name; "" makes one.
	ID string
	// Tables are kept in the record of the first part of a run of several tables.
	Tables *dataset.Tables
	// Given are the flags that were set, for the run's record.
	Given map[string][]string
	// Explicit reports whether a flag was given to this process, and not only to the run that is resumed.
	Explicit func(flag string) bool
	// Drain is closed when the user asks to stop: batches on their way are finished, and the run is saved.
	Drain <-chan struct{}
	Log   *slog.Logger
	// Trial says that the run is only measured: it leaves its rows and its report, and nothing else in database and
	// state folder. What cannot be removed, or is left by a kill, goes when another trial with the same state folder
	// begins.
	Trial bool
	// Ceilings is the state folder with calibrate's figures; "" if the run is not to be compared with them.
	Ceilings string
	// StateStore opens what a named run's processes share, --state-dir s3://…; nil if there is none. It is closed with
	// the run. Its error has the store's verdict.
	StateStore func(context.Context) (StateStore, error)
	// Buckets finds the files of a load that are in object stores. They are closed with the run.
	Buckets files.Buckets
	// Watch is called once before the buffers are filled, or before the proof of Verify, for progress and metrics; done
	// is called when the run has ended. It may be nil.
	Watch func(Watched) (done func(), err error)
}

// StateStore is the object store of --state-dir, and what it means by an error.
type StateStore interface {
	runlog.Store
	Classify(err error) loader.Verdict
	Close() error
}

// Watched is what progress and metrics show of a run.
type Watched struct {
	Run      string
	Backend  string
	Plan     run.Plan
	Snapshot func() event.Snapshot
}

// push is a job under way.
type push struct {
	Job
	started time.Time
	notes   notes.Notes
	target  *target.Target
	link    host.Link // what it says is looked for only when it is asked
	planned
	silent bool // the user asked for nothing but the load, so nothing else is asked of the database
	idle   bool // this process sends nothing
	preflight
	progress *progress.Progress
	store    store     // of --state-dir
	input    input     // nil until it is known what the run is
	source   rowSource // nil until the plan is final
	meters   meters
	proof
}

// preflight is what a run that begins has done before its record is written.
type preflight struct {
	draft   *runlog.Log // until it is launched; nil of a run that is resumed or named
	checked bool        // the server was asked what would stop the push, once however often the run is begun
	unfreed bool        // the run could not be removed from the database: the next one does that
	probed  int         // rows that were sent and rolled back
}

// proof is what was asked for and found after the load.
type proof struct {
	mode     verify.Mode
	filled   bool // the source has its memory: something was to be sent
	loaded   bool // this process opened sessions
	verified verify.Result
	stored   int64 // bytes of the table
	cost     map[string]float64
}

// Run pushes. If there is an error the report is filled in as far as the run came.
func Run(ctx context.Context, j Job) (*report.Report, error) {
	p, soft, end := newPush(ctx, j)
	defer end()
	p.mode = verify.Mode(j.Config.Verify)
	err := p.run(ctx, soft)
	p.measureCost(ctx)
	if p.Trial && p.draft != nil {
		p.unfreed = p.free(ctx, p.progress.ID()) != nil
	}
	err = errors.Join(p.explained(err), p.close())
	if !p.unfreed {
		_ = runlog.RemoveDraft(p.Config.State, p.progress.ID())
	}
	r := p.report(err)
	r.Run.Resumable = r.Run.Resumable && !p.Trial
	return r, err
}

// newPush begins a job. soft ends when the user asks to stop, for phases in which no batch is on its way.
func newPush(ctx context.Context, j Job) (p *push, soft context.Context, end func()) {
	soft, cancel := Until(ctx, j.Drain, errStopped)
	p = &push{Job: j, started: time.Now(), notes: notes.Notes{Log: j.Log}, link: host.FullLink(soft)}
	p.target = target.New(&p.Config.Connect, &p.Config.Patience, &p.notes)
	p.progress = progress.New(p.Config.RunID, p.target, &p.notes)
	// The store of --state-dir may be away while the database answers: its outage is its own.
	away := &retry.Outage{Most: j.Config.RetryFor, Log: j.Log}
	p.store = store{ctx: ctx, log: j.Log, policy: retry.Policy{Retries: j.Config.Retries, Outage: away}}
	p.meters.usage = stats.StartMeter()
	return p, soft, func() { cancel(nil) }
}

// withoutLoad does something about a run or a target of which this process sends nothing.
func withoutLoad(ctx context.Context, j Job, do func(*push, context.Context) error) error {
	p, soft, end := newPush(ctx, j)
	defer end()
	p.idle = true
	return errors.Join(p.orInterrupted(report.PreflightFailed, do(p, soft)), p.close())
}

// Until returns a context that also ends, with the cause, when drain is closed.
func Until(ctx context.Context, drain <-chan struct{}, cause error) (context.Context, context.CancelCauseFunc) {
	soft, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-drain:
			cancel(cause)
		case <-soft.Done():
		}
	}()
	return soft, cancel
}

// run is the push: preflight or resume, fill, load, wait for the rows, prove.
func (p *push) run(ctx, soft context.Context) error {
	if err := p.attach(soft); err != nil {
		return p.orInterrupted(report.PreflightFailed, err)
	}
	end, err := p.watch(soft)
	if err != nil {
		return err
	}
	defer end()
	err = p.loadRest(ctx, soft)
	if OutcomeOf(err) != report.TakenOver { // the objects are those of the process that has the run now
		p.progress.Tidy(ctx, err == nil || p.Trial)
	}
	if err != nil {
		return err
	}
	if err := p.awaitRows(soft); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	moved := p.syncSequences(soft)
	return errors.Join(p.prove(soft), moved)
}

// loadRest loads what is not in yet.
func (p *push) loadRest(ctx, soft context.Context) error {
	if p.progress.Stage() != runlog.Loading {
		return nil
	}
	if err := p.fill(soft); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	if err := p.awaitStart(soft); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	if err := p.awaitFirst(soft); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	return p.load(ctx)
}

// awaitStart waits until --start-at, so that shards begin together.
func (p *push) awaitStart(soft context.Context) error {
	if left := time.Until(p.Config.StartAt.Time); left > 0 {
		p.Log.Info("waiting for --start-at", "for", left.Round(time.Second))
		select {
		case <-time.After(left):
		case <-soft.Done():
		}
	}
	if p.stopped() {
		return errStopped // soft may end a moment later
	}
	return nil
}

// refersToFirst reports whether rows refer to those of batch 0, so that no other may be sent before that is in. No
// database that loads from a store checks references.
func (p *push) refersToFirst() bool {
	if p.plan.Files != nil || p.plan.Staged() {
		return false
	}
	first, _ := dataset.OwnParents(p.plan.Data)
	return first > 0
}

// awaitFirst waits until another shard has sent batch 0, if rows of this one refer to it, for as long as the run is
// this process's.
func (p *push) awaitFirst(soft context.Context) error {
	first, _ := p.plan.ShardRange()
	if first == 0 || !p.refersToFirst() || p.plan.Dedup == loader.DedupKey { // which no database that checks references has
		return nil
	}
	for logged := false; ; logged = true {
		is, err := p.progress.FirstIn(soft)
		if is || err != nil {
			return err
		}
		if err := p.takenOver(soft); err != nil {
			return err
		}
		if !logged {
			p.Log.Info("waiting for the shard that sends batch 0: rows of the others refer to it")
		}
		select {
		case <-time.After(pollInterval):
		case <-soft.Done():
			return errStopped
		}
	}
}

// watch makes the source, now that the plan is final, and starts the meters and what shows them, until end.
func (p *push) watch(ctx context.Context) (end func(), err error) {
	if p.source, err = p.input.open(ctx); err != nil {
		return nil, p.orInterrupted(report.PreflightFailed, err)
	}
	p.startMeters()
	done := func() {}
	if p.Watch != nil {
		snapshot := p.meters.stats.Snapshot
		done, err = p.Watch(Watched{Run: p.progress.ID(), Backend: p.target.Driver.Name(), Plan: p.plan, Snapshot: snapshot})
		if err != nil {
			return nil, failed(report.PreflightFailed, err)
		}
	}
	return func() {
		p.meters.stats.Phase(event.Done)
		done()
	}, nil
}

// close releases what the run holds, the newest first.
func (p *push) close() error {
	var problems []error
	if p.source != nil {
		problems = append(problems, p.source.Close())
	}
	if p.input != nil {
		problems = append(problems, p.input.close())
	}
	problems = append(problems, p.Buckets.Close())
	if log := cmp.Or(p.progress.Log(), p.draft); log != nil {
		problems = append(problems, log.Close())
	}
	if p.store.StateStore != nil {
		problems = append(problems, p.store.Close())
	}
	if p.target.Loader != nil {
		problems = append(problems, p.target.Judged(p.target.Loader.Close()))
	}
	return errors.Join(problems...)
}
