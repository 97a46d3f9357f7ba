package runlog

import (
	"context"
	"encoding/json"
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
	begunSuffix = "-begun"
	// abandonedAfter is the age of a temporary folder whose process must have died: to fill one takes a moment.
	abandonedAfter = 24 * time.Hour
	// lookTime is longer than Runs holds the lock of a run to look whether a process has it: some microseconds, more where
	// cores are short.
	lookTime = 200 * time.Millisecond
)

// Create creates the folder of a new run, durably. Every folder with a run's name can be resumed, and a process can die
// between any two steps: so the folder has a temporary name until journal and record are on disk. A later Create
// removes what a crash left.
func Create(stateDir string, r Record) (*Log, error) { return create(stateDir, r, nil) }

// create is Create with lines in the journal.
func create(stateDir string, r Record, lines []byte) (*Log, error) {
	dir, err := folder(stateDir, r.Folder())
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	removeAbandoned(stateDir)
	temp, err := os.MkdirTemp(stateDir, tempPrefix+r.Folder()+"-") // a name may have been used before
	if err != nil {
		return nil, fmt.Errorf("making the run's state folder: %w", err)
	}
	l, err := lock(temp) // the lock is the file's, and stays when the folder is renamed
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(temp))
	}
	if err = startJournal(temp, r.Run, lines); err == nil {
		err = l.Save(r)
	}
	if err == nil {
		if err = os.Rename(temp, dir); errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%w %s: %w", ErrBusy, r.Folder(), err)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("filling the run's state folder: %w", err), l.lock.Unlock(), os.RemoveAll(temp))
	}
	l.dir = dir
	return l.open(file.SyncFolder(stateDir))
}

// Begin notes a run before it has a row in the database, until end is called: the folder of the run comes later, and a process
// that is killed in between leaves a table to which nobody else may write.
func Begin(stateDir string, r Record) (end func(), err error) {
	dir := filepath.Join(stateDir, tempPrefix+r.Run+begunSuffix)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("noting the run in the state folder: %w", err)
	}
	l, err := lock(dir)
	if err != nil {
		return nil, err
	}
	end = func() {
		_ = os.RemoveAll(dir)
		_ = l.lock.Unlock()
	}
	if err := l.save(r); err != nil {
		end()
		return nil, err
	}
	return end, nil
}

// Killed lists the runs that processes of this state folder had begun, and had made no folder of when they were killed: none of
// them has sent a batch.
func Killed(stateDir string) (all []Record) {
	entries, _ := os.ReadDir(stateDir)
	for _, e := range entries {
		r, begun := Begun(stateDir, e.Name())
		if !begun || isLocked(filepath.Join(stateDir, e.Name())) {
			continue
		}
		all = append(all, r)
	}
	return all
}

// Begun returns the record of a folder that Begin has made and nobody has ended.
func Begun(stateDir, name string) (r Record, is bool) {
	if !strings.HasSuffix(name, begunSuffix) {
		return r, false
	}
	text, err := os.ReadFile(filepath.Join(stateDir, name, recordFile))
	return r, err == nil && json.Unmarshal(text, &r) == nil
}

// removeAbandoned removes the temporary folders of killed processes. One that cannot be removed does no harm.
func removeAbandoned(stateDir string) {
	entries, _ := os.ReadDir(stateDir)
	for _, e := range entries {
		info, err := e.Info()
		temporary := strings.HasPrefix(e.Name(), tempPrefix) && !strings.HasSuffix(e.Name(), begunSuffix)
		if err != nil || !e.IsDir() || !temporary || time.Since(info.ModTime()) < abandonedAfter {
			continue
		}
		dir := filepath.Join(stateDir, e.Name())
		if l, err := lock(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = l.lock.Unlock()
		}
	}
}

func startJournal(dir, run string, lines []byte) error {
	head, err := event.AppendLine(nil, event.NewHeader(run))
	if err == nil {
		err = file.WriteSynced(filepath.Join(dir, journalFile), append(head, lines...))
	}
	if err == nil {
		err = file.WriteSynced(filepath.Join(dir, batchesFile), nil)
	}
	if err != nil {
		return fmt.Errorf("starting the journal: %w", err)
	}
	return nil
}

// DamagedError reports that a run's journal is missing or unreadable: what was sent is not known.
type DamagedError struct{ err error }

func (e *DamagedError) Error() string { return e.err.Error() }
func (e *DamagedError) Unwrap() error { return e.err }

// Open takes over a run that another process left, and replays its journal through f, but for a line that a crash cut
// off. Marks come first, as the events of first attempts: lines about the same batch are newer, or say more. Both are on
// disk when Open returns: the earlier process may have died without a sync, and what is done because of a line must not
// outlive it. A journal that cannot be replayed is a *DamagedError.
func Open(stateDir, run string, f func(event.Event)) (*Log, error) {
	if _, err := Read(stateDir, run); err != nil {
		return nil, err
	}
	l, err := lock(filepath.Join(stateDir, run))
	if err != nil {
		return nil, err
	}
	// Again: the last owner may have saved since.
	if l.record, err = Read(stateDir, run); err == nil && l.record.Schema == linesOnly {
		err = touch(filepath.Join(l.dir, batchesFile))
	}
	if err == nil {
		err = replayMarks(l.dir, f)
	}
	if err == nil {
		err = replay(l.dir, l.record.Run, f)
	}
	return l.open(err)
}

// open begins to append, or unlocks the run after an error in an earlier step.
func (l *Log) open(err error) (*Log, error) {
	if err == nil {
		l.journal.File, err = os.OpenFile(filepath.Join(l.dir, journalFile), os.O_WRONLY|os.O_APPEND, 0)
	}
	if err == nil {
		l.batches.File, err = os.OpenFile(filepath.Join(l.dir, batchesFile), os.O_WRONLY, 0)
	}
	if err != nil {
		if l.journal.File != nil {
			err = errors.Join(err, l.journal.Close())
		}
		return nil, errors.Join(err, l.lock.Unlock())
	}
	l.stop, l.done = make(chan struct{}), make(chan struct{})
	go l.syncLoop()
	return l, nil
}

// ErrBusy reports that another process on this machine has the run's folder.
var ErrBusy = errors.New("another process is working on run")

// lock keeps other processes off the run. The kernel releases the lock when this one dies.
func lock(dir string) (*Log, error) {
	l := &Log{dir: dir, lock: flock.New(filepath.Join(dir, lockFile))}
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

// Renew starts a new journal for callers that find out elsewhere what was sent. The damaged one is kept under another
// name, which records that the journal does not go back to the run's beginning.
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
		err = startJournal(l.dir, run, nil)
	}
	return errors.Join(err, file.SyncFolder(l.dir), l.lock.Unlock())
}

// Renewed reports whether Renew has replaced the journal, in this process or an earlier one.
func (l *Log) Renewed() bool {
	_, err := os.Stat(filepath.Join(l.dir, journalFile+damaged))
	return err == nil
}

// Remove closes the log and removes the run's folder, under a temporary name, so that a kill leaves a whole run or
// none. If the folder cannot be renamed the run stays.
func (l *Log) Remove() error {
	temp := filepath.Join(filepath.Dir(l.dir), tempPrefix+filepath.Base(l.dir))
	renamed := os.Rename(l.dir, temp) // under the lock: no process may take the run over in between
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
	return errors.Join(os.RemoveAll(dir), l.lock.Unlock())
}

// RemoveBegun removes what Begin has noted of a run, once the database has freed its table.
func RemoveBegun(stateDir, run string) error {
	return os.RemoveAll(filepath.Join(stateDir, tempPrefix+run+begunSuffix))
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
