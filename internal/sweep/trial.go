package sweep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Kinds of a trial's error.
var (
	// ErrDiskFull means that the server's disk is full: the next push would fail as well.
	ErrDiskFull = errors.New("the server's disk is full")
	// ErrUnreachable means that there was no connection to the server.
	ErrUnreachable = errors.New("the target cannot be reached")
	// ErrTaken means that another process has locked the trials' folder.
	ErrTaken = errors.New("another process makes trials of the same table: wait for it")
	// ErrLimit means that the server allows fewer connections, less memory or smaller batches than the trial wanted.
	ErrLimit = errors.New("more than the server allows")
)

// Trials makes pushes to be measured, one at a time, in a state folder of its own. A trial leaves its rows and its
// report, but no run to resume, no claims, and no secret in what is recorded. Trials belongs to one goroutine.
type Trials struct {
	Sources
	// State is the folder of these trials alone. It is made when a trial needs it.
	State string
	// Process holds what applies to the process: Progress, MetricsAddr, and State, where calibrate's figures are.
	Process config.Push
	// Watch shows one trial; end is called after it. It may be nil.
	Watch func(ctx context.Context, o config.Output) (watch func(push.Watched) (done func(), err error), end func(), err error)
	// Discards says that the servers keep nothing: what a killed process left is of no matter.
	Discards bool
	// Log should pass on once what many pushes log alike; see Once.
	Log *slog.Logger

	lock *flock.Flock // nil unless Lock was called
}

// StateFor returns the folder for trials of a name, inside the user's state folder. It is the same for the same name,
// so that what a killed process left is found. The folder's name begins with a dot, as no run's does.
func StateFor(stateDir, kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(stateDir, "."+kind+"-"+hex.EncodeToString(sum[:8]))
}

// Push makes one trial. The error may be ErrDiskFull, ErrUnreachable or ErrLimit, too. The report covers what was
// pushed, also if there is an error. Closing drain ends the push in order. begun, unless nil, is called once, from
// another goroutine, when rows begin to move; moving reports from then on whether they still do.
func (t *Trials) Push(ctx context.Context, s Setup, drain <-chan struct{}, begun func(moving func() bool)) (*report.Report, error) {
	job := t.job(s)
	job.Drain = drain
	if t.Watch != nil {
		watch, end, err := t.Watch(ctx, job.Config.Output)
		if err != nil {
			return nil, &push.Error{Outcome: report.PreflightFailed, Err: err}
		}
		defer end()
		job.Watch = watch
	}
	if begun != nil {
		job.Watch = watchRows(job.Watch, begun)
	}
	r, err := push.Run(ctx, job)
	return s.withoutSecrets(r), s.classify(r, err)
}

func (t *Trials) job(s Setup) push.Job {
	p := s.Config
	p.State, p.Progress, p.MetricsAddr = t.State, t.Process.Progress, t.Process.MetricsAddr
	return push.Job{Config: p, Drivers: t.Drivers, Log: t.Log, Trial: true, Ceilings: t.Process.State}
}

// pollInterval is how often a push is polled before its rows move. It is not polled while they do, which would take CPU
// time of the client.
const pollInterval = 5 * time.Millisecond

// watchRows calls begun when rows begin to move, in addition to another watch, which may be nil.
func watchRows(other func(push.Watched) (func(), error), begun func(moving func() bool)) func(push.Watched) (func(), error) {
	return func(w push.Watched) (done func(), err error) {
		end := func() {}
		if other != nil {
			if end, err = other(w); err != nil {
				return nil, err
			}
		}
		over := make(chan struct{})
		var watching sync.WaitGroup
		watching.Go(func() {
			clock := time.NewTicker(pollInterval)
			defer clock.Stop()
			for s := w.Snapshot(); s.PhaseSeconds[event.Load]+s.PhaseSeconds[event.Stage] == 0; s = w.Snapshot() {
				select {
				case <-clock.C:
				case <-over:
					return
				}
			}
			begun(func() bool {
				p := w.Snapshot().Phase
				return p == event.Load || p == event.Stage || p == event.Commit
			})
		})
		return func() { close(over); watching.Wait(); end() }, nil
	}
}

// classify returns the error of a push without secrets, as ErrDiskFull, ErrUnreachable or ErrLimit where it is one.
func (s *Setup) classify(r *report.Report, err error) error {
	if err == nil {
		return nil
	}
	class := loader.VerdictOf(err).Class
	if len(s.secrets) > 0 {
		err = &push.Error{Outcome: push.OutcomeOf(err), Err: errors.New(loader.Redact(loader.Explain(err), s.secrets...))}
	}
	away := []loader.Class{loader.ClassConnection, loader.ClassTimeout, loader.ClassShutdown}
	switch {
	case class == loader.ClassDiskFull || r != nil && r.Result.Errors[string(loader.ClassDiskFull)] > 0:
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	case push.OutcomeOf(err) == report.PreflightFailed && slices.Contains(away, class):
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case class == loader.ClassThrottled || class == loader.ClassTooLarge:
		return fmt.Errorf("%w: %w", ErrLimit, err)
	}
	return err
}

// Lock keeps other processes out of the folder until Close. It is ErrTaken if one is in it.
func (t *Trials) Lock() error {
	if err := os.MkdirAll(t.State, 0o700); err != nil {
		return fmt.Errorf("making the trials' state folder: %w", err)
	}
	lock := flock.New(filepath.Join(t.State, "lock"))
	free, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("locking the trials' state folder: %w", err)
	}
	if !free {
		return ErrTaken
	}
	t.lock = lock
	return nil
}

// Close removes the folder. First it tries again to free what trials have left that failed or were killed, in the
// targets of these cases. The error says what is still left; the folder is kept then for the next trials of the same
// name.
func (t *Trials) Close(ctx context.Context, cases []Case) error {
	var problems error
	tried := map[string]bool{}
	for _, c := range cases {
		place := c.Config.Target + " " + c.Plan.Method
		if tried[place] || t.left() == nil {
			continue
		}
		tried[place] = true
		problems = errors.Join(problems, c.classify(nil, push.FreeKilled(ctx, t.job(c.Setup))))
	}

	left := t.left()
	if t.Discards {
		left = nil
	}
	if left == nil {
		_ = os.RemoveAll(t.State)
	}
	if t.lock != nil {
		_ = os.Remove(t.lock.Path()) // before it is free, or another's would be removed
		_ = t.lock.Unlock()
	}
	if left == nil {
		return nil
	}
	return fmt.Errorf("claims of these runs may still be in the claim table; the same command tries again to remove them: %w",
		errors.Join(left, problems))
}

// left is an error that names the runs that are not freed; nil if there are none.
func (t *Trials) left() error {
	return runlog.Killed(t.State, func(r runlog.Record) error { return fmt.Errorf("run %s of %s", r.Run, r.Target) })
}

// Once returns a log that passes on every message once.
func Once(out *slog.Logger) *slog.Logger { return slog.New(once{out.Handler(), new(sync.Map)}) }

type once struct {
	slog.Handler
	logged *sync.Map
}

// Handle implements slog.Handler.
func (o once) Handle(ctx context.Context, r slog.Record) error {
	if _, logged := o.logged.LoadOrStore(r.Message, true); logged {
		return nil
	}
	return o.Handler.Handle(ctx, r)
}
