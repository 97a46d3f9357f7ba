package sweep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	// ErrLimit means that the server allows fewer connections, less memory or smaller batches than the trial wanted. It
	// adds nothing to an error's text.
	ErrLimit = errors.New("more than the server allows")
)

// Trials makes pushes to be measured, one at a time, in a state folder of its own. A trial leaves its rows and its report,
// but no run to resume, no claims, and no secret in what is recorded. Trials belongs to one goroutine.
type Trials struct {
	Sources
	// State is the folder of these trials alone: every run in it is forgotten. It is made when a trial needs it.
	State string
	// Targets are those of all trials as they were given: a run's record has no passwords.
	Targets []string
	// Process holds what applies to the process: Progress, MetricsAddr and Connect.PasswordFile.
	Process config.Push
	// Watch shows one trial; end is called after it. It may be nil.
	Watch func(ctx context.Context, o config.Output) (watch func(push.Watched) (done func(), err error), end func(), err error)
	// Discards says that the servers keep nothing: runs are forgotten without asking them.
	Discards bool
	// Log should pass on once what many pushes log alike; see Once.
	Log *slog.Logger

	lock *flock.Flock // nil unless Lock was called
	kept []error      // why runs could not be forgotten, at the last try
}

// StateFor returns the folder for trials of a name, inside the user's state folder. It is the same for the same name, so
// that what a killed process left is found. The folder's name begins with a dot, as no run's does.
func StateFor(stateDir, kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(stateDir, "."+kind+"-"+hex.EncodeToString(sum[:8]))
}

// Push makes one trial, and forgets its run. The error may be ErrDiskFull, ErrUnreachable or ErrLimit, too. The report
// covers what was pushed, also if there is an error. Closing drain ends the push in order. begun, unless nil, is called
// once, from another goroutine, when rows begin to move; moving reports from then on whether they still do.
func (t *Trials) Push(ctx context.Context, s Setup, drain <-chan struct{}, begun func(moving func() bool)) (*report.Report, error) {
	p := s.Config
	p.State, p.Progress, p.MetricsAddr = t.State, t.Process.Progress, t.Process.MetricsAddr
	job := push.Job{
		Config: p, Drivers: t.Drivers, Given: s.Given, Explicit: func(string) bool { return true }, Drain: drain, Log: t.Log,
		Ceilings: t.Process.State,
	}
	if t.Watch != nil {
		watch, end, err := t.Watch(ctx, p.Output)
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
	t.Clear(ctx)
	return s.withoutSecrets(r), s.classify(r, err)
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

// limited is an error that is ErrLimit, too.
type limited struct{ error }

func (e limited) Unwrap() error { return e.error }

func (limited) Is(target error) bool { return target == ErrLimit } //nolint:errorlint // Is is called for each error of a chain

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
		return limited{err}
	}
	return err
}

// Clear forgets all runs in the folder, with their claims and journals, including those of a killed process. What fails is
// tried again after the next trial.
func (t *Trials) Clear(ctx context.Context) {
	t.kept = nil
	entries, err := os.ReadDir(t.State)
	if err != nil {
		return // no trial has made it yet
	}
	for _, e := range entries {
		switch id := e.Name(); {
		case t.Discards && id != lockFile:
			_ = os.RemoveAll(filepath.Join(t.State, id))
		case strings.HasPrefix(id, "."): // of a run half made or half removed by a killed process
			if r, begun := runlog.Begun(t.State, id); begun && !t.forgets(ctx, r) {
				continue
			}
			_ = os.RemoveAll(filepath.Join(t.State, id))
		case id != lockFile:
			r, err := runlog.Read(t.State, id)
			if err != nil {
				t.kept = append(t.kept, fmt.Errorf("run %s: %w", id, err))
				continue
			}
			if t.forgets(ctx, r) {
				_ = os.RemoveAll(filepath.Join(t.State, id)) // of one that the database does not know
			}
		}
	}
}

// forgets reports whether a run is forgotten, or the database does not know it: it was killed before it had a row, or its
// database was made anew.
func (t *Trials) forgets(ctx context.Context, r runlog.Record) bool {
	err := t.forget(ctx, r)
	if err == nil || errors.Is(err, loader.ErrUnknownRun) {
		return true
	}
	t.kept = append(t.kept, fmt.Errorf("run %s: %w", r.Run, err))
	return false
}

// forget forgets a run by the flags in its record: a killed process may have had others.
func (t *Trials) forget(ctx context.Context, r runlog.Record) error {
	values := maps.Clone(r.Flags)
	if values == nil {
		values = map[string][]string{}
	}
	values[targetName] = []string{r.Target}
	for _, given := range t.Targets { // the record's target has no password
		if text, err := ShownTarget(given); err == nil && text == r.Target {
			values[targetName] = []string{given}
		}
	}
	if t.Process.Connect.PasswordFile != "" {
		values["password-file"] = []string{t.Process.Connect.PasswordFile}
	}
	p, _, err := config.FromValues(values, t.Drivers, t.LookupEnv, t.File)
	if err != nil {
		return err
	}
	p.State, p.Resume = t.State, r.Run
	return push.Forget(ctx, push.Job{Config: p, Drivers: t.Drivers, Log: t.Log})
}

// lockFile is the only file in the folder that is no run's.
const lockFile = "lock"

// Lock keeps other processes out of the folder until Close. It is ErrTaken if one is in it.
func (t *Trials) Lock() error {
	if err := os.MkdirAll(t.State, 0o700); err != nil {
		return fmt.Errorf("making the trials' state folder: %w", err)
	}
	lock := flock.New(filepath.Join(t.State, lockFile))
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

// Close removes the folder. The error says what could not be forgotten; the folder is kept then for the next trials of the
// same name.
func (t *Trials) Close() error {
	if t.lock != nil {
		_ = os.Remove(t.lock.Path()) // before it is free, or another's would be removed
		_ = t.lock.Unlock()
	}
	_ = os.Remove(t.State) // fails unless it is empty
	if len(t.kept) == 0 {
		return nil
	}
	return fmt.Errorf("claims of these runs may still be in the claim table; the same command tries again to remove them: %w",
		errors.Join(t.kept...))
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
