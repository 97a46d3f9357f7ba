// Package runlog keeps a run on disk: what was planned, and what became of every attempt. One folder a run, named by
// the run's id, owned by one process at a time:
//
//	run.json       the record: plan, target, how far the run is; replaced as a whole
//	journal.jsonl  one event an attempt, appended
//	lock           held while a process works on the run
//
// The journal reaches the disk in groups, at most 100 ms behind. That is enough where it only decides what to ask: for
// methods with claim rows the claim table is the truth, and an attempt that the journal has lost is found there. Where
// nothing else records that there was an attempt (labels, key ranges, commit groups), the caller of Append calls Sync
// before the attempt is sent, and after a group's end before its objects are removed.
package runlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/pkg/event"
)

const (
	recordFile  = "run.json"
	journalFile = "journal.jsonl"
	lockFile    = "lock"
)

// syncEvery is how far the journal may be behind.
const syncEvery = 100 * time.Millisecond

// Log is one run's folder, opened and locked. Append and Sync are safe for concurrent use; the rest belongs to one
// goroutine.
type Log struct {
	dir    string
	lock   *flock.Flock
	record Record

	syncing sync.Mutex // held while the disk works; taken before mu
	mu      sync.Mutex
	journal *os.File
	line    []byte // scratch
	dirty   bool
	failed  error // the first write or sync that failed; nothing is trusted after it

	stop chan struct{}
	done chan struct{}
}

// Create makes the folder of a new run, durably. A name in the state folder stands for a run that can be resumed, and a
// process can die between any two steps: so the folder is filled under a name that is no run's id, and gets its own when
// journal and record are on disk. What a crash leaves under the first name has no owner, and a later Create removes it.
func Create(stateDir string, r Record) (*Log, error) {
	dir, err := folder(stateDir, r.Run)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	sweep(stateDir, time.Now())
	unnamed := filepath.Join(stateDir, unnamedPrefix+r.Run)
	if err := os.Mkdir(unnamed, 0o700); err != nil {
		return nil, fmt.Errorf("making the run's state folder: %w", err)
	}
	l, err := fill(unnamed, r)
	if err == nil {
		if err = os.Rename(unnamed, dir); err != nil {
			err = errors.Join(fmt.Errorf("naming the run's state folder: %w", err), l.lock.Unlock())
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(unnamed))
	}
	l.dir = dir
	return l.appending(file.SyncFolder(stateDir))
}

// unnamedPrefix holds a character that no id has.
const unnamedPrefix = ".new-"

// abandonedAfter is the age from which on an unnamed folder has no owner any more: to fill one takes a moment.
const abandonedAfter = 24 * time.Hour

// sweep removes what killed processes left of folders that they were filling. What cannot be removed does no harm, and a
// folder that a process still holds is kept.
func sweep(stateDir string, now time.Time) {
	entries, err := os.ReadDir(stateDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), unnamedPrefix) {
			continue
		}
		info, err := e.Info()
		if err != nil || now.Sub(info.ModTime()) < abandonedAfter {
			continue
		}
		dir := filepath.Join(stateDir, e.Name())
		if l, err := lock(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = l.lock.Unlock()
		}
	}
}

// fill locks the folder, and puts journal and record into it. The lock is the file's, and stays through a new name.
func fill(dir string, r Record) (*Log, error) {
	l, err := lock(dir)
	if err != nil {
		return nil, err
	}
	if err = startJournal(dir, r.Run); err == nil {
		err = l.Save(r)
	}
	if err != nil {
		return nil, errors.Join(err, l.lock.Unlock())
	}
	return l, nil
}

func startJournal(dir, run string) error {
	line, err := event.AppendLine(nil, event.NewHeader(run))
	if err == nil {
		err = file.WriteSynced(filepath.Join(dir, journalFile), line)
	}
	if err != nil {
		return fmt.Errorf("starting the journal: %w", err)
	}
	return nil
}

// DamagedError reports that a run's journal is not there, or cannot be read to its end: what was sent is not known.
type DamagedError struct{ err error }

func (e *DamagedError) Error() string { return e.err.Error() }
func (e *DamagedError) Unwrap() error { return e.err }

// Open takes over a run that another process left, and replays its journal through f. A line that a crash cut off is
// dropped. What was replayed is on disk when Open returns: the process before may have died without a sync, and what is
// done because of a line must not outlive the line. A journal that cannot be replayed is a *DamagedError.
func Open(stateDir, run string, f func(event.Event)) (*Log, error) {
	if _, err := Read(stateDir, run); err != nil {
		return nil, err
	}
	l, err := lock(filepath.Join(stateDir, run))
	if err != nil {
		return nil, err
	}
	// Read again: the process that had the lock until now may have saved.
	if l.record, err = Read(stateDir, run); err == nil {
		err = replay(l.dir, run, f)
	}
	return l.appending(err)
}

// RemoveRest removes what is left of a run's folder that has no record, unless a process works on the run.
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
	return errors.Join(os.RemoveAll(dir), l.lock.Unlock())
}

// lock makes sure that no other process works on the run. The kernel releases the lock when a process dies.
func lock(dir string) (*Log, error) {
	l := &Log{dir: dir, lock: flock.New(filepath.Join(dir, lockFile))}
	free, err := l.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking the run: %w", err)
	}
	if !free {
		return nil, fmt.Errorf("another process is working on run %s", filepath.Base(dir))
	}
	return l, nil
}

// Renew starts a new journal for a run, for callers that find out elsewhere what was sent. The damaged one is kept beside
// it, and its name records that the journal does not go back to the run's beginning.
func Renew(stateDir, run string) error {
	l, err := lock(filepath.Join(stateDir, run))
	if err != nil {
		return err
	}
	path := filepath.Join(l.dir, journalFile)
	if err = os.Rename(path, path+damaged); errors.Is(err, fs.ErrNotExist) {
		err = os.WriteFile(path+damaged, nil, 0o600)
	}
	if err == nil {
		err = startJournal(l.dir, run)
	}
	return errors.Join(err, file.SyncFolder(l.dir), l.lock.Unlock())
}

// damaged is behind the name of a journal that could not be read.
const damaged = ".damaged"

// Renewed reports whether the journal was replaced by a new one, by this process or an earlier one.
func (l *Log) Renewed() bool {
	_, err := os.Stat(filepath.Join(l.dir, journalFile+damaged))
	return err == nil
}

// replay reads the journal and cuts off what a crash left half written, so that new lines do not join an old half.
func replay(dir, run string, f func(event.Event)) error {
	path := filepath.Join(dir, journalFile)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		err = fmt.Errorf("opening the journal: %w", err)
		if errors.Is(err, fs.ErrNotExist) {
			return &DamagedError{err}
		}
		return err
	}
	defer file.Close()
	// A run has its first line from the start, so a crash cannot have cut that off.
	if err = readEvents(file, run, f); err != nil {
		err = fmt.Errorf("reading the journal %s: %w", path, err)
		if errors.As(err, new(*fs.PathError)) { // a failure of the disk is not one of the journal's content
			return err
		}
		torn := (*event.TornError)(nil)
		if !errors.As(err, &torn) || torn.Offset == 0 {
			return &DamagedError{err}
		}
		err = file.Truncate(torn.Offset)
	}
	if err == nil {
		err = file.Sync()
	}
	if err != nil {
		return fmt.Errorf("repairing the journal %s: %w", path, err)
	}
	return nil
}

func readEvents(file io.Reader, run string, f func(event.Event)) error {
	r, err := event.NewReader(file)
	if err == nil && r.Header().Run != run {
		return fmt.Errorf("it is the journal of run %q", r.Header().Run)
	}
	for err == nil {
		var e event.Event
		if e, err = r.Next(); err == nil {
			f(e)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// appending is the last step to a log in use; after an error in an earlier one it closes the log instead.
func (l *Log) appending(err error) (*Log, error) {
	if err == nil {
		l.journal, err = os.OpenFile(filepath.Join(l.dir, journalFile), os.O_WRONLY|os.O_APPEND, 0)
	}
	if err != nil {
		return nil, errors.Join(err, l.lock.Unlock())
	}
	l.stop, l.done = make(chan struct{}), make(chan struct{})
	go l.syncLoop()
	return l, nil
}

// Append adds an event. It does not wait for the disk; an error is one that an earlier write met, and nothing may be
// sent after it: a run that cannot be resumed must not go on.
func (l *Log) Append(e event.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	var err error
	if l.line, err = event.AppendLine(l.line[:0], e); err == nil {
		_, err = l.journal.Write(l.line)
	}
	if err != nil {
		l.failed = fmt.Errorf("writing the journal: %w", err)
	}
	l.dirty = true
	return l.failed
}

func (l *Log) syncLoop() {
	defer close(l.done)
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			_ = l.Sync() // kept in l.failed, which the next Append returns
		}
	}
}

// Sync brings every event that was appended before to the disk. Workers keep appending while the disk works; a caller
// that syncs in the meantime waits, and then mostly finds its events already synced.
func (l *Log) Sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	dirty, err := l.dirty, l.failed
	l.dirty = false
	l.mu.Unlock()
	if err != nil || !dirty {
		return err
	}
	if err := l.journal.Sync(); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failed = fmt.Errorf("syncing the journal: %w", err)
		return l.failed
	}
	return nil
}

// Record returns the newest record.
func (l *Log) Record() Record { return l.record }

// Save replaces the record, durably: a crash leaves the old one or the new one.
func (l *Log) Save(r Record) error {
	r.Schema = recordSchema
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = file.Replace(filepath.Join(l.dir, recordFile), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("saving the run's record: %w", err)
	}
	l.record = r
	return nil
}

// Close brings everything to the disk and releases the run.
func (l *Log) Close() error {
	close(l.stop)
	<-l.done
	return errors.Join(l.Sync(), l.journal.Close(), l.lock.Unlock())
}

// Remove closes the log and removes the run's folder. It takes the run's name from the folder first, so that a kill
// leaves a whole run or none: what is left then is like what Create leaves, and goes with a later run. Where the folder
// cannot be renamed the run stays as it is.
func (l *Log) Remove() error {
	unnamed := filepath.Join(filepath.Dir(l.dir), unnamedPrefix+filepath.Base(l.dir))
	renamed := os.Rename(l.dir, unnamed) // under the lock: no process may take the run over in between
	if err := errors.Join(renamed, l.Close()); err != nil {
		return fmt.Errorf("removing the run's state folder: %w", err)
	}
	return os.RemoveAll(unnamed)
}
