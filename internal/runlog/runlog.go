// Package runlog keeps a run on disk: its plan, and what became of every batch. Each run has a folder, named by its id
// and owned by one process at a time:
//
//	run.json       the record: plan, target, stage; replaced as a whole
//	batches        a mark a batch, a byte at the batch's number: begun or in
//	journal.jsonl  an event an attempt of which a mark does not say enough, appended
//	proof.json     what an unfinished proof has counted
//	lock           held while a process works on the run
//
// A batch that goes in at once leaves a mark and nothing else: ten million batches take ten megabytes, and are read in
// a second. Lines took 164 bytes and as many times longer. A mark is written before the worker takes its next batch,
// so that a process that is killed has forgotten no answer; marks kept for a while and written as ranges would be
// shorter, but forget some.
//
// Marks and lines, here together the journal, are synced at most 100 ms late. That is enough for methods with claim
// rows: an attempt that the journal has lost is found in the claim table. Where nothing else records an attempt
// (labels, key ranges, commit groups), the caller of Mark or Append calls Sync before the attempt is sent, and after a
// group's end before its objects are removed.
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
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/pkg/event"
)

const (
	recordFile  = "run.json"
	journalFile = "journal.jsonl"
	batchesFile = "batches"
	lockFile    = "lock"
	proofFile   = "proof.json"
	damaged     = ".damaged" // ends the name of an unreadable journal
	// tempPrefix begins the names of folders that are no runs; no id has such a dot.
	tempPrefix = ".new-"
	// abandonedAfter is the age of a temporary folder whose process must have died: to fill one takes a moment.
	abandonedAfter = 24 * time.Hour
	syncEvery      = 100 * time.Millisecond
	// shareEvery is after how many of them the shared journal gets its next piece, which costs a request.
	shareEvery = 10
	// lookTime is longer than Runs holds the lock of a run to look whether a process has it: some microseconds, more where
	// cores are short.
	lookTime   = 200 * time.Millisecond
	mostBehind = 2 * shareEvery * syncEvery
)

// The marks. A byte of 0 is none.
const (
	begun byte = 1 // its first attempt is announced
	in    byte = 2
)

// Log is one run's folder, open and locked. Mark, Append and Sync are safe for concurrent use; the rest belongs to one
// goroutine.
type Log struct {
	dir    string
	lock   *flock.Flock
	record Record

	syncing sync.Mutex // held while the disk works; taken before mu
	mu      sync.Mutex
	journal output
	batches output
	text    []byte // scratch
	failed  error  // the first write or sync that failed; nothing is trusted after it

	shared   *Journal  // nil without one
	unshared []byte    // lines
	since    time.Time // the oldest of them

	stop chan struct{}
	done chan struct{}
}

// output is a file that is written to and synced later.
type output struct {
	*os.File
	dirty bool
}

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

// removeAbandoned removes the temporary folders of killed processes. One that cannot be removed does no harm.
func removeAbandoned(stateDir string) {
	entries, _ := os.ReadDir(stateDir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !strings.HasPrefix(e.Name(), tempPrefix) || time.Since(info.ModTime()) < abandonedAfter {
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

// Append adds an event without waiting for the disk. After an error, which may be an earlier write's, nothing may be
// sent: a run that cannot be resumed must not go on.
func (l *Log) Append(e event.Event) error {
	return l.write(&l.journal, func() (err error) {
		if l.text, err = event.AppendLine(l.text[:0], e); err == nil {
			_, err = l.journal.Write(l.text)
		}
		if l.shared != nil {
			l.begin()
			l.unshared = append(l.unshared, l.text...)
		}
		return err
	})
}

// Mark keeps of a batch that its first attempt has event.Started, or that it is in after any attempt. It is Append
// without the rest of the event, for a byte.
func (l *Log) Mark(number int64, o event.Outcome) error {
	mark := in
	if o == event.Started {
		mark = begun
	}
	return l.write(&l.batches, func() error {
		l.text = append(l.text[:0], mark)
		_, err := l.batches.WriteAt(l.text, number)
		if err == nil && l.shared != nil {
			l.begin()
			l.unshared, err = event.AppendLine(l.unshared, event.Event{Batch: number, Attempt: 1, Outcome: o})
		}
		return err
	})
}

// write calls f, which writes to the file, unless an earlier write or sync has failed. It waits while the shared journal
// is far behind, because its files cannot be reached: what it has not got may be sent again by another process.
func (l *Log) write(to *output, f func() error) error {
	l.mu.Lock()
	err := l.failed
	if err == nil {
		if err = f(); err != nil {
			l.failed = fmt.Errorf("writing the journal: %w", err)
			err = l.failed
		}
		to.dirty = true
	}
	behind := len(l.unshared) > 0 && time.Since(l.since) > mostBehind
	l.mu.Unlock()
	if err == nil && behind {
		err = l.Sync()
	}
	return err
}

// begin notes when the oldest line was written that is not shared.
func (l *Log) begin() {
	if len(l.unshared) == 0 {
		l.since = time.Now()
	}
}

func (l *Log) syncLoop() {
	defer close(l.done)
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-l.stop:
			return
		case <-tick.C: // an error is kept in l.failed, which the next Append returns
			_ = l.sync(n%shareEvery == 0)
		}
	}
}

// Sync writes every event and mark kept before to the disk. Workers keep more meanwhile; another caller of Sync waits,
// and then mostly finds its own already synced.
func (l *Log) Sync() error { return l.sync(true) }

func (l *Log) sync(share bool) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	var dirty []*os.File
	var unshared []byte
	l.mu.Lock()
	err := l.failed
	if share {
		unshared, l.unshared = l.unshared, nil
	}
	for _, o := range []*output{&l.journal, &l.batches} {
		if o.dirty {
			dirty, o.dirty = append(dirty, o.File), false
		}
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	for _, f := range dirty {
		if err := f.Sync(); err != nil {
			return l.fail(fmt.Errorf("syncing the journal: %w", err))
		}
	}
	if len(unshared) > 0 {
		return l.fail(l.shared.add(nil, unshared))
	}
	return nil
}

func (l *Log) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = err
	}
	return err
}

// Record returns the newest record.
func (l *Log) Record() Record { return l.record }

// Save replaces the record, durably: a crash leaves the old one or the new one.
func (l *Log) Save(r Record) error {
	err := l.save(r)
	if err != nil || l.shared == nil {
		return err
	}
	if err = l.Sync(); err == nil { // no record without the lines before it
		l.syncing.Lock()
		defer l.syncing.Unlock()
		err = l.fail(l.shared.add(&l.record, nil))
	}
	return err
}

func (l *Log) save(r Record) error {
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

// Proof returns what SaveProof has kept, nil if there is nothing.
func (l *Log) Proof() []byte {
	text, _ := os.ReadFile(filepath.Join(l.dir, proofFile))
	return text
}

// SaveProof keeps what a proof has counted; nil removes it.
func (l *Log) SaveProof(text []byte) error {
	path := filepath.Join(l.dir, proofFile)
	if text == nil {
		return os.RemoveAll(path)
	}
	return file.Replace(path, text)
}

// Close syncs the journal and releases the run.
func (l *Log) Close() error {
	close(l.stop)
	<-l.done
	return errors.Join(l.Sync(), l.journal.Close(), l.batches.Close(), l.lock.Unlock())
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
