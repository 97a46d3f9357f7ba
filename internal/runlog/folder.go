package runlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/pkg/event"
)

const (
	// tempPrefix begins the names of folders that are no runs; no id has such a dot.
	tempPrefix  = ".new-"
	draftSuffix = "-begun"
	// abandonedAfter is the age of a temporary folder whose process must have died: to fill one takes a moment.
	abandonedAfter = 24 * time.Hour
	// lookTime is longer than Runs holds the lock of a run to look whether a process has it: some microseconds, more
	// where cores are short.
	lookTime = 200 * time.Millisecond
)

// Create creates the folder of a new run, durably. Every folder with a run's name can be resumed, and a process can die
// between any two steps: so the folder has a temporary name until the journal is on disk. A later run removes what a
// crash left.
func Create(stateDir string, r Record) (*Log, error) {
	l, err := begin(stateDir, "-"+strings.ToLower(rand.Text()), r) // a name may have been used before
	if err != nil {
		return nil, err
	}
	if err := l.appear(); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l.start(), nil
}

// begin makes the first piece of a run's journal, in a folder with a temporary name.
func begin(stateDir, suffix string, r Record) (*Log, error) {
	if _, err := folder(stateDir, r.Folder()); err != nil {
		return nil, err
	}
	removeAbandoned(stateDir)
	dir := filepath.Join(stateDir, tempPrefix+r.Folder()+suffix)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the run's state folder: %w", err)
	}
	l, err := lock(dir) // the lock is the file's, and stays when the folder is renamed
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if _, err := l.take(&r); err != nil {
		return nil, errors.Join(fmt.Errorf("filling the run's state folder: %w", err), l.Close(), os.RemoveAll(dir))
	}
	return l, nil
}

// appear gives the folder the run's name, or removes it.
func (l *Log) appear() error {
	err := l.rename(filepath.Join(filepath.Dir(l.dir), l.record.Folder()))
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%w %s: %w", ErrBusy, l.record.Folder(), err)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("naming the run's state folder: %w", err), os.RemoveAll(l.dir))
	}
	return nil
}

// rename renames the run's folder, while the log does not sync by itself.
func (l *Log) rename(dir string) error {
	if err := os.Rename(l.dir, dir); err != nil {
		return err
	}
	l.dir, l.files = dir, Folder(dir)
	return file.SyncFolder(filepath.Dir(dir))
}

// NewDraft keeps a run before it has a row in the database, in a folder with a temporary name: a process that is killed
// leaves a table to which nobody else may write. Launch makes a run of it; Killed finds what a killed process has left.
// The caller closes the log.
func NewDraft(stateDir string, r Record) (*Log, error) { return begin(stateDir, draftSuffix, r) }

// Launch gives a draft the run's record, and takes its events from then on. The folder gets the run's name, so
// that it can be resumed. Hidden keeps the temporary name: then it is one of those that Killed finds, to its end.
func (l *Log) Launch(r Record, hidden bool) error {
	if err := l.Save(r); err != nil {
		return err
	}
	if !hidden {
		if err := l.appear(); err != nil {
			return err
		}
	}
	l.start()
	return nil
}

// Killed calls free with every draft in a state folder, and every run that was launched hidden, that has no process any
// more. It removes what free returns no error for. Its error joins those of free and of records that cannot be
// read.
func Killed(stateDir string, free func(Record) error) (all error) {
	entries, _ := os.ReadDir(stateDir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), draftSuffix) {
			all = errors.Join(all, freeKilled(filepath.Join(stateDir, e.Name()), free))
		}
	}
	return all
}

func freeKilled(dir string, free func(Record) error) error {
	l, err := lock(dir)
	if err != nil {
		return nil // it is at work, or ends at this moment
	}
	defer func() { _ = l.Close() }()

	r, err := recordIn(dir)
	if err != nil {
		return err
	}
	if r == nil { // it has asked the database for nothing yet
		return nil
	}
	if err := free(*r); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// removeAbandoned removes the temporary folders of killed processes. One that cannot be removed does no harm.
func removeAbandoned(stateDir string) {
	entries, _ := os.ReadDir(stateDir)
	for _, e := range entries {
		info, err := e.Info()
		temporary := strings.HasPrefix(e.Name(), tempPrefix) && !strings.HasSuffix(e.Name(), draftSuffix)
		if err != nil || !e.IsDir() || !temporary || time.Since(info.ModTime()) < abandonedAfter {
			continue
		}
		dir := filepath.Join(stateDir, e.Name())
		if l, err := lock(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = l.Close()
		}
	}
}

// Open takes over a run that another process left, and replays its journal through f. What f has seen is on disk when
// Open returns: the earlier process may have died without a sync, and what is done because of a line must not outlive
// it. A journal that cannot be replayed as a whole is a *DamagedError, unless tolerates, which may be nil, says that it
// may be: then Damage returns it.
func Open(stateDir, run string, f func(event.Event), tolerates func(Record) bool) (*Log, error) {
	if _, err := Read(stateDir, run); err != nil {
		return nil, err
	}
	l, err := lock(filepath.Join(stateDir, run))
	if err != nil {
		return nil, err
	}
	if err := l.replay(f, tolerates); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l.start(), nil
}

func (l *Log) replay(f func(event.Event), tolerates func(Record) bool) error {
	if _, err := l.take(nil); err != nil {
		return err
	}
	for n := range l.number {
		err := Folder(l.dir).sync(l.name(n + 1))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("syncing the journal: %w", err)
		}
	}
	err := l.pieces.replay(l.number, f)
	if errors.As(err, new(*DamagedError)) && tolerates != nil && tolerates(l.record) {
		l.damage, err = err, nil
	}
	return err
}

// ErrBusy reports that another process on this machine has the run's folder.
var ErrBusy = errors.New("another process is working on run")

// lock keeps other processes off the run. The kernel releases the lock when this one dies.
func lock(dir string) (*Log, error) {
	l := &Log{pieces: pieces{files: Folder(dir)}, dir: dir, lock: flock.New(filepath.Join(dir, lockFile))}
	brief, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	switch free, err := l.lock.TryLockContext(brief, lookTime/100); {
	case free:
		return l, nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("%w %s", ErrBusy, filepath.Base(dir))
	default:
		return nil, fmt.Errorf("locking the run: %w", err)
	}
}

// Remove closes the log and removes the run's folder, under a temporary name, so that a kill leaves a whole run or
// none. If the folder cannot be renamed the run stays.
func (l *Log) Remove() error {
	temp := filepath.Join(filepath.Dir(l.dir), tempPrefix+filepath.Base(l.dir))
	l.end()
	renamed := l.rename(temp) // under the lock: no process may take the run over in between
	if err := errors.Join(renamed, l.Close()); err != nil {
		return fmt.Errorf("removing the run's state folder: %w", err)
	}
	return os.RemoveAll(temp)
}

// RemoveRest removes a run's folder without a record, unless a process works on the run.
func RemoveRest(stateDir, run string) error {
	dir, err := folder(stateDir, run)
	if err != nil {
		return err
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	l, err := lock(dir)
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(dir), l.Close())
}

// RemoveDraft removes the draft of a run, once the database has freed what the run left there.
func RemoveDraft(stateDir, run string) error {
	return os.RemoveAll(filepath.Join(stateDir, tempPrefix+run+draftSuffix))
}

// RemoveShards removes the folders that shards of a run have in a state folder, unless a process works on one.
func RemoveShards(stateDir, run string) (all error) {
	shard := regexp.MustCompile("^" + regexp.QuoteMeta(run) + "-[0-9]+-of-[0-9]+$")
	entries, _ := os.ReadDir(stateDir)
	for _, e := range entries {
		if shard.MatchString(e.Name()) {
			all = errors.Join(all, RemoveRest(stateDir, e.Name()))
		}
	}
	return all
}
