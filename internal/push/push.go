// Package push is one push from the first connection to the report: preflight, prepare, fill, load, finish, verify.
//
// It is where the two streets meet, and the only place that sees both: configuration comes in on one side, the engine
// goes on the other. It decides nothing that plan, Negotiate or a back-end could decide.
package push

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/feed"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/network"
	"github.com/terapush/terapush/internal/plan"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Job is what a push is started with.
type Job struct {
	Config  config.Push
	Drivers *loader.Registry
	// Given are the flags that were set, for the run's record.
	Given map[string][]string
	// Explicit tells whether this process was given a flag, and not the resumed run.
	Explicit func(flag string) bool
	// Drain is closed when the user asks to stop: batches on their way are finished and the run is saved.
	Drain <-chan struct{}
	Log   *slog.Logger
	// Ceilings is the state folder in which calibrate has left what this machine can do; "" compares the run with nothing.
	Ceilings string
	// Watch is called once, before the buffers are filled, with what progress and metrics read; the function it
	// returns is called when the run has ended. It may be nil.
	Watch func(Watched) (done func(), err error)
}

// Watched is what those who show a run need.
type Watched struct {
	Run      string
	Backend  string
	Plan     plan.Plan
	Snapshot func() event.Snapshot
}

// Run does the job. The report is filled as far as the run came, also when there is an error.
func Run(ctx context.Context, j Job) (*report.Report, error) {
	p, soft, end := newPush(ctx, j)
	defer end()
	err := p.run(ctx, soft)
	p.measure(ctx)
	err = errors.Join(err, p.close())
	return p.report(err), err
}

// push is a job under way.
type push struct {
	Job
	started time.Time
	wire    *network.Dialer

	driver    loader.Driver
	target    loader.Target
	data      dataset.Dataset
	loader    loader.Loader
	contract  loader.Contract
	link      link // to the target
	crew      crew
	prices    host.Prices
	table     loader.Table
	plan      plan.Plan
	ledger    *runlog.Log
	encoder   encode.Encoder
	feed      atomic.Pointer[feed.Feed] // nil until the buffers are mapped; watched from other goroutines
	stats     *stats.Collector
	meter     stats.Meter
	account   *stats.Bottleneck // of the workers' time; nil as stats are
	machine   machineWork
	encrypted atomic.Bool         // a connection was
	timeline  *stats.Timeline     // runs as long as stats are made
	servers   *host.ServerWatcher // nil where nobody watches

	resumed     bool            // an earlier process worked on the run
	done        runlog.Done     // batches that are in; the engine reads it while it runs
	history     history         // of earlier processes
	unjournaled bool            // the journal of earlier processes is lost
	waiting     []engine.Stored // batches in the store that wait for their commit, when this process began to load
	skipped     runlog.Done     // the same, for the feed
	mu          sync.Mutex      // guards acked and lengths
	acked       runlog.Done     // batches that this process had acknowledged, in the journal, since done was made
	lengths     lengths         // of objects, where they are all there is

	lostSome bool // this process found acknowledged batches gone
	loaded   bool // this process opened sessions, and has closed them

	loadCPU  float64       // seconds of CPU time while rows moved
	visible  time.Duration // from the last ack until the rows were seen; 0: an ack says it, or nobody looked
	verified verify.Result
	stored   int64
	cost     map[string]float64
	warnings []string
}

// newPush begins a job. soft ends when the user asks to stop: for the phases in which nothing is lost by it.
func newPush(ctx context.Context, j Job) (p *push, soft context.Context, end func()) {
	soft, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-j.Drain:
			cancel(errStopped)
		case <-soft.Done():
		}
	}()
	p = &push{Job: j, started: time.Now(), wire: new(network.Dialer), history: newHistory(), meter: stats.StartMeter(), link: fullLink(soft)}
	return p, soft, func() { cancel(nil) }
}

func (p *push) run(ctx, soft context.Context) error {
	if err := p.preflight(soft); err != nil {
		return p.orInterrupted(report.PreflightFailed, err)
	}
	p.count()
	if p.Watch != nil {
		done, err := p.Watch(Watched{Run: p.id(), Backend: p.driver.Name(), Plan: p.plan, Snapshot: p.stats.Snapshot})
		if err != nil {
			return failed(report.PreflightFailed, err)
		}
		defer done()
	}
	defer p.stats.Phase(event.Done)
	err := p.fillAndLoad(ctx, soft)
	p.tidy(ctx, err == nil)
	if err != nil {
		return err
	}
	if err := p.awaitRows(soft); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	return p.prove(soft)
}

func (p *push) fillAndLoad(ctx, soft context.Context) error {
	if p.ledger.Record().Stage != runlog.Loading {
		return nil
	}
	if err := p.fill(soft); err != nil {
		return p.orInterrupted(report.Failed, err)
	}
	return p.load(ctx)
}

func (p *push) warn(text string) {
	p.warnings = append(p.warnings, text)
	p.Log.Warn(text)
}

func (p *push) id() string { return p.ledger.Record().Run }

// close gives back what the run holds, the newest first.
func (p *push) close() error {
	var problems []error
	if f := p.feed.Load(); f != nil {
		problems = append(problems, f.Close())
	}
	if p.ledger != nil {
		problems = append(problems, p.ledger.Close())
	}
	if p.loader != nil {
		problems = append(problems, p.loader.Close())
	}
	return errors.Join(problems...)
}
