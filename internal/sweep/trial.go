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
	"strings"

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
)

// Trials makes trials, one at a time, in a state folder of its own. It belongs to one goroutine.
type Trials struct {
	Sources
	// State is the lab's folder and nobody else's: every run in it is forgotten. It is made when a trial needs it.
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

// StateFor is where a lab of a name keeps its runs, inside the user's state folder: the same folder for the same name, so
// that what a killed process left is found. A name that begins with a dot is no run's.
func StateFor(stateDir, kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return filepath.Join(stateDir, "."+kind+"-"+hex.EncodeToString(sum[:8]))
}

// Push makes one trial, and forgets its run. The error may be ErrDiskFull or ErrUnreachable besides. The report is there
// as far as the push came, also when there is an error. Closing drain ends the push in order. begun is called once, from
// another goroutine, when rows begin to move, with what tells from then on whether they still do; it may be nil.
func (l *Trials) Push(ctx context.Context, s Setup, drain <-chan struct{}, begun func(moving func() bool)) (*report.Report, error) {
	p := s.Config
	p.State, p.Progress, p.MetricsAddr = l.State, l.Process.Progress, l.Process.MetricsAddr
	job := push.Job{
		Config: p, Drivers: l.Drivers, Given: s.Given, Explicit: func(string) bool { return true }, Drain: drain, Log: l.Log,
		Ceilings: l.Process.State,
	}
	if l.Watch != nil {
		watch, end, err := l.Watch(ctx, p)
		if err != nil {
			return nil, &push.Error{Outcome: report.PreflightFailed, Err: err}
		}
		defer end()
		job.Watch = watch
	}
	if begun != nil {
		job.Watch = tellsOfLoad(job.Watch, begun)
	}
	r, err := push.Run(ctx, job)
	l.Clear(ctx)
	return s.withoutSecrets(r), s.meaning(l.Drivers, r, err)
}

// Clear forgets all runs in the lab's folder, those of a killed process included: claims, journals. What cannot be removed
// now is tried again behind the next trial.
func (l *Trials) Clear(ctx context.Context) {
	l.kept = nil
	for _, id := range l.runs() {
		if err := l.forget(ctx, id); err != nil {
			l.kept = append(l.kept, fmt.Errorf("run %s: %w", id, err))
		}
	}
}

// runs are the ids in the lab's folder.
func (l *Trials) runs() []string {
	entries, err := os.ReadDir(l.State)
	if err != nil {
		return nil
	}
	var ids []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			_ = os.RemoveAll(filepath.Join(l.State, e.Name())) // no run yet, or none any more, when its process was killed
			continue
		}
		if e.Name() != lockFile {
			ids = append(ids, e.Name())
		}
	}
	return ids
}

// forget forgets a run by its own record: a process that was killed may have been told otherwise.
func (l *Trials) forget(ctx context.Context, id string) error {
	folder := filepath.Join(l.State, id)
	if _, err := os.Stat(filepath.Join(folder, "run.json")); errors.Is(err, os.ErrNotExist) {
		return os.RemoveAll(folder) // an earlier version removed it, as its last step, when it was killed
	}
	r, err := runlog.Read(l.State, id)
	if err != nil {
		return err
	}
	values := map[string][]string{"target": {l.withPassword(r.Target)}}
	for name, given := range r.Flags {
		values[name] = given
	}
	if l.Process.Connect.PasswordFile != "" {
		values["password-file"] = []string{l.Process.Connect.PasswordFile}
	}
	p, _, err := config.FromValues(values, l.Drivers, l.LookupEnv, l.File)
	if err != nil {
		return err
	}
	p.State, p.Resume = l.State, id
	return push.Forget(ctx, push.Job{Config: p, Drivers: l.Drivers, Log: l.Log})
}

// withPassword is a target as it was given, with what a record leaves out.
func (l *Trials) withPassword(shown string) string {
	for _, given := range l.Targets {
		if text, err := ShownTarget(given); err == nil && text == shown {
			return given
		}
	}
	return shown
}

// lockFile is the only file in a lab's folder that is no run's.
const lockFile = "lock"

// Lock keeps other processes out of the lab until it is closed, and refuses when one is in it.
func (l *Trials) Lock() error {
	if err := os.MkdirAll(l.State, 0o700); err != nil {
		return fmt.Errorf("making the trials' state folder: %w", err)
	}
	lock := flock.New(filepath.Join(l.State, lockFile))
	free, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("locking the trials' state folder: %w", err)
	}
	if !free {
		return errors.New("another process makes trials of the same table: wait for it, or give another --table")
	}
	l.lock = lock
	return nil
}

// Close removes the lab's folder. The error is what could not be forgotten; the folder stays then, for the next lab of
// the same name.
func (l *Trials) Close() error {
	if l.lock != nil {
		_ = os.Remove(l.lock.Path()) // before it is free, or another's would be removed
		_ = l.lock.Unlock()
	}
	_ = os.Remove(l.State) // refuses as long as there is something in it
	if len(l.kept) == 0 {
		return nil
	}
	return fmt.Errorf("claims of these runs may still be in the claim table; the same command tries again to remove them: %w", errors.Join(l.kept...))
}
