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

// What the error of a trial may be besides.
var (
	// ErrDiskFull is a server without room: whatever is pushed next would fail as well.
	ErrDiskFull = errors.New("the server's disk is full")
	// ErrUnreachable is a server to which there was no connection.
	ErrUnreachable = errors.New("the target cannot be reached")
	// ErrLimit is a server that has not as much of something as the trial wanted: connections, memory, a batch of this
	// size. Less of it may do. It adds nothing to an error's text.
	ErrLimit = errors.New("more than the server allows")
)

// Trials makes pushes that are there to be measured, one at a time, in a state folder of its own. A trial leaves its rows
// and its report, and nothing else: no run to go on with, no claims, and no secret in what is recorded. Trials belongs to
// one goroutine.
type Trials struct {
	Sources
	// State is the folder of these trials and nobody else's: every run in it is forgotten. It is made when a trial needs it.
	State string
	// Targets are those of all trials as they were given: a run's record leaves out what is needed to reach them.
	Targets []string
	// Process is what all trials of this process are told: Progress, MetricsAddr and Connect.PasswordFile.
	Process config.Push
	// Watch shows one trial while it goes; end is called behind it. It may be nil.
	Watch func(ctx context.Context, c config.Push) (watch func(push.Watched) (done func(), err error), end func(), err error)
	// Log is told what many pushes say alike once; see Once.
	Log *slog.Logger

	lock *flock.Flock // nil as long as nobody asked for it
	kept []error      // why runs could not be forgotten, by the last try
}

// StateFor returns where trials of a name keep their runs, inside the user's state folder: the same folder for the same
// name, so that what a killed process left is found. A name that begins with a dot is no run's.
func StateFor(stateDir, kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(stateDir, "."+kind+"-"+hex.EncodeToString(sum[:8]))
}

// Push makes one trial, and forgets its run. The error may be ErrDiskFull, ErrUnreachable or ErrLimit besides. The report
// is there as far as the push came, also when there is an error. Closing drain ends the push in order. begun is called
// once, from another goroutine, when rows begin to move, with what reports from then on whether they still do; it may be
// nil.
func (t *Trials) Push(ctx context.Context, s Setup, drain <-chan struct{}, begun func(moving func() bool)) (*report.Report, error) {
	p := s.Config
	p.State, p.Progress, p.MetricsAddr = t.State, t.Process.Progress, t.Process.MetricsAddr
	job := push.Job{
		Config: p, Drivers: t.Drivers, Given: s.Given, Explicit: func(string) bool { return true }, Drain: drain, Log: t.Log,
		Ceilings: t.Process.State,
	}
	if t.Watch != nil {
		watch, end, err := t.Watch(ctx, p)
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
	return s.withoutSecrets(r), s.meaning(t.Drivers, r, err)
}

// glance is how often a push is looked at before its rows move. Nobody looks while they do: looking takes time of the client.
const glance = 5 * time.Millisecond

// watchRows calls begun when rows begin to move, besides what another watch does, which may be nil.
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
			clock := time.NewTicker(glance)
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

// limited is an error that is ErrLimit besides.
type limited struct{ error }

func (e limited) Unwrap() error { return e.error }

func (limited) Is(target error) bool { return target == ErrLimit } //nolint:errorlint // asked about each error by itself

// meaning returns the error of a push with what it means for other trials, and without secrets.
func (s *Setup) meaning(drivers *loader.Registry, r *report.Report, err error) error {
	if err == nil {
		return nil
	}
	var class loader.Class
	if driver, _, problem := config.FindTarget(s.Config.Target, s.Config.Connect, drivers); problem == nil {
		class = driver.Classify(err).Class
	}
	if len(s.secrets) > 0 {
		err = &push.Error{Outcome: push.OutcomeOf(err), Err: errors.New(loader.Redact(err.Error(), s.secrets...))}
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

// Clear forgets all runs in the folder, those of a killed process included: claims, journals. What cannot be removed now
// is tried again behind the next trial.
func (t *Trials) Clear(ctx context.Context) {
	t.kept = nil
	entries, err := os.ReadDir(t.State)
	if err != nil {
		return // there is none as long as no trial needed it
	}
	for _, e := range entries {
		switch id := e.Name(); {
		case strings.HasPrefix(id, "."):
			_ = os.RemoveAll(filepath.Join(t.State, id)) // no run yet, or none any more, when its process was killed
		case id != lockFile:
			if err := t.forget(ctx, id); err != nil {
				t.kept = append(t.kept, fmt.Errorf("run %s: %w", id, err))
			}
		}
	}
}

// forget forgets a run by its own record: a process that was killed may have been told otherwise.
func (t *Trials) forget(ctx context.Context, id string) error {
	folder := filepath.Join(t.State, id)
	if _, err := os.Stat(filepath.Join(folder, "run.json")); errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(folder) // an earlier version removed it, as its last step, when it was killed
	}
	r, err := runlog.Read(t.State, id)
	if err != nil {
		return err
	}
	values := map[string][]string{"target": {t.withPassword(r.Target)}}
	for name, given := range r.Flags {
		values[name] = given
	}
	if t.Process.Connect.PasswordFile != "" {
		values["password-file"] = []string{t.Process.Connect.PasswordFile}
	}
	p, _, err := config.FromValues(values, t.Drivers, t.LookupEnv, t.File)
	if err != nil {
		return err
	}
	p.State, p.Resume = t.State, id
	return push.Forget(ctx, push.Job{Config: p, Drivers: t.Drivers, Log: t.Log})
}

// withPassword returns a target as it was given, with what a record leaves out.
func (t *Trials) withPassword(shown string) string {
	for _, given := range t.Targets {
		if text, err := ShownTarget(given); err == nil && text == shown {
			return given
		}
	}
	return shown
}

// lockFile is the only file in the folder that is no run's.
const lockFile = "lock"

// Lock keeps other processes out of the folder until it is closed, and refuses when one is in it.
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
		return errors.New("another process makes trials of the same table: wait for it, or give another --table")
	}
	t.lock = lock
	return nil
}

// Close removes the folder. The error is what could not be forgotten; the folder stays then, for the next trials of the
// same name.
func (t *Trials) Close() error {
	if t.lock != nil {
		_ = os.Remove(t.lock.Path()) // before it is free, or another's would be removed
		_ = t.lock.Unlock()
	}
	_ = os.Remove(t.State) // refuses as long as there is something in it
	if len(t.kept) == 0 {
		return nil
	}
	return fmt.Errorf("claims of these runs may still be in the claim table; the same command tries again to remove them: %w",
		errors.Join(t.kept...))
}

// Once returns a log for many pushes that say the same: every message is passed on once.
func Once(out *slog.Logger) *slog.Logger { return slog.New(once{out.Handler(), new(sync.Map)}) }

type once struct {
	slog.Handler
	said *sync.Map
}

// Handle implements slog.Handler.
func (o once) Handle(ctx context.Context, r slog.Record) error {
	if _, said := o.said.LoadOrStore(r.Message, true); said {
		return nil
	}
	return o.Handler.Handle(ctx, r)
}
