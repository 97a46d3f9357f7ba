// Package runlog keeps a run: its record, and what became of every batch. A run on this machine has a folder, named by
// its id:
//
//	journal-000000000001.jsonl  the journal, in pieces
//	proof.json                  what an unfinished proof has counted
//	lock                        held while a process works on the run
//
// A run whose processes have no disk in common, and whose database keeps no claims, has its journal in a bucket
// instead: see Shared.
//
// # The journal
//
// A piece begins with the record: plan, target, stage. The lines after it are marks, such as "in 17", and events of
// which a mark does not say enough. Whoever takes the run over, and whoever changes the record, makes the next piece.
// It is made only if nobody else has made it, and a process writes to its own pieces alone. So of two processes that
// have the run, because a lock did not hold them off each other, the older one fails: at its next Sync, before the
// attempt that it announces, and at the first mark that comes 10 ms after another. In a folder the newest piece grows.
// In a bucket, where files are made once, a piece holds what came in a second or before a Sync, and the older process
// fails when it comes to its own next piece.
//
// A batch that goes in at once leaves a mark and nothing else: ten million batches take 110 MB, and are read in a
// second. In a folder a mark is written before the worker takes its next batch, so that a process that is killed has
// forgotten no answer.
//
// The journal is synced at most 100 ms late, in a bucket a second. That is enough for methods with claim rows: an
// attempt that the journal has lost is found in the claim table. Where nothing else records an attempt (labels, commit
// groups), the caller of Mark or Append calls Sync before the attempt is sent, and after a group's end before its
// objects are removed.
package runlog

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/pkg/event"
)

const (
	lockFile  = "lock"
	proofFile = "proof.json"
	syncEvery = 100 * time.Millisecond
	// lookEvery spares most marks the look whether they may still be made: it costs 2 µs, a mark 0.4.
	lookEvery = 10 * time.Millisecond
	// shareEvery is after how many of them a bucket gets its next piece, which costs a request.
	shareEvery = 10
	mostBehind = 2 * shareEvery * syncEvery
)

// Log is a run or shard that belongs to this process. Mark, Append and Sync are safe for concurrent use; the rest
// belongs to one goroutine.
type Log struct {
	pieces
	dir    string       // of a run on this machine; "" in a bucket
	lock   *flock.Flock // nil in a bucket
	ranges *os.File     // of a load of files; nil until Ranges
	exists func() error // ErrTakenOver if the run was forgotten; nil in a folder, where the pieces are gone then
	owner  string
	record Record
	damage error

	syncing sync.Mutex // held while the disk works; taken before mu
	mu      sync.Mutex
	number  int64     // of the newest piece
	open    *os.File  // the newest piece, where it can grow
	names   [2]string // its own and that of the next one, in that case
	looked  time.Time // when Mark or Append last saw that it is the newest
	dirty   bool      // it has lines that are not synced
	lines   []byte    // that are in no piece yet, where pieces do not grow
	since   time.Time
	text    []byte // scratch
	failed  error  // the first write or sync that failed; nothing is trusted after it

	stop, done chan struct{}
}

// ErrTakenOver reports that a run or shard belongs to another process now, or was forgotten.
var ErrTakenOver = errors.New("another process has taken over run")

// Append adds an event without waiting for the disk. After an error, which may be an earlier write's, nothing may be
// sent: a run that cannot be resumed must not go on.
func (l *Log) Append(e event.Event) error {
	return l.write(func(line []byte) ([]byte, error) { return appendLine(line, e) })
}

// Mark keeps of a batch that its first attempt has event.Started, or that it is in, by whichever attempt. It is Append
// without the rest of the event, for ten bytes.
func (l *Log) Mark(number int64, o event.Outcome) error {
	word := markIn
	if o == event.Started {
		word = markBegun
	}
	return l.write(func(line []byte) ([]byte, error) {
		line = strconv.AppendInt(append(line, word...), number, 10)
		return append(line, '\n'), nil
	})
}

// write adds a line, unless an earlier write or sync has failed. It waits while a bucket is far behind, because it
// cannot be reached: what it has not got may be sent again by another process.
func (l *Log) write(encode func([]byte) ([]byte, error)) error {
	behind, err := l.add(encode)
	if err != nil || !behind {
		return err
	}
	return l.Sync()
}

func (l *Log) add(encode func([]byte) ([]byte, error)) (behind bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return false, l.failed
	}
	l.text, err = encode(l.text[:0])
	switch {
	case err != nil:
	case l.open == nil:
		if len(l.lines) == 0 {
			l.since = time.Now()
		}
		l.lines = append(l.lines, l.text...)
		behind = time.Since(l.since) > mostBehind
	default:
		l.dirty = true
		if _, err = l.open.Write(l.text); err == nil && time.Since(l.looked) > lookEvery {
			l.looked = time.Now()
			err = l.isOurs()
		}
	}
	if err != nil {
		l.failed = fmt.Errorf("writing the journal: %w", err)
	}
	return behind, l.failed
}

// isOurs returns ErrTakenOver if another process has made the next piece, or removed this one. Where pieces do not
// grow, the next one shows that.
func (l *Log) isOurs() error {
	folder, _ := l.files.(Folder)
	own, err := folder.has(l.names[0])
	if err != nil {
		return err
	}
	next, err := folder.has(l.names[1])
	if err == nil && (!own || next) {
		err = takenOver(l.record.Folder())
	}
	return err
}

func takenOver(run string) error { return fmt.Errorf("%w %s, or it was forgotten", ErrTakenOver, run) }

func (l *Log) syncLoop(every int) {
	defer close(l.done)
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-l.stop:
			return
		case <-tick.C:
			if n%every == 0 {
				_ = l.Sync() // an error is kept in l.failed, which the next Append returns
			}
		}
	}
}

// Sync keeps every event and mark from before for good. Workers add more meanwhile; another caller of Sync waits, and
// then mostly finds its own already synced. If there was something to keep and the run is another process's, it returns
// ErrTakenOver.
func (l *Log) Sync() error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	err, dirty, lines := l.failed, l.dirty, l.lines
	l.dirty, l.lines = false, nil
	l.mu.Unlock()
	switch {
	case err != nil:
		return err
	case len(lines) > 0:
		return l.fail(l.next(l.record, lines))
	case !dirty:
		return nil
	}
	if err = l.open.Sync(); err == nil {
		err = l.isOurs()
	}
	if err != nil {
		return l.fail(fmt.Errorf("syncing the journal: %w", err))
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

// next makes the next piece. It returns ErrTakenOver, and fs.ErrExist if another process has made it.
func (l *Log) next(r Record, lines []byte) error {
	content, err := appendLine(nil, Header{Schema: journalSchema, Owner: l.owner, Record: &r})
	if err != nil {
		return err
	}
	content = append(content, lines...)
	name := l.name(l.number + 1)
	err = create(l.files, name, content)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) { // the folder is gone
		return fmt.Errorf("%w: %w", takenOver(l.record.Folder()), err)
	}
	if err != nil {
		return fmt.Errorf("making the next piece of the journal: %w", err)
	}
	l.number++
	if l.exists != nil {
		if err := l.exists(); err != nil {
			return err
		}
	}
	return l.grow()
}

// grow opens the newest piece for lines, where pieces grow.
func (l *Log) grow() error {
	folder, grows := l.files.(Folder)
	if !grows {
		return nil
	}
	next, err := folder.grow(l.name(l.number))
	if err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	before := l.open
	l.open, l.names = next, [2]string{l.name(l.number), l.name(l.number + 1)}
	if before != nil {
		return before.Close()
	}
	return nil
}

// create makes a file. One that is there with the same content is this process's own, whose answer was lost. Callers
// have content that no other process has, or do not mind who has made the file.
func create(files Files, name string, content []byte) error {
	exists := files.Create(name, content)
	if !errors.Is(exists, fs.ErrExist) {
		return exists
	}
	found, err := read(files, name)
	if err != nil || bytes.Equal(found, content) {
		return err
	}
	return exists
}

func read(files Files, name string) ([]byte, error) {
	in, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}

// take makes the next piece, whoever may have the run: from then on it belongs to this process. first is the record if
// the journal has none.
func (l *Log) take(first *Record) (begun bool, err error) {
	l.owner = rand.Text()
	for {
		if l.number, err = l.newest(); err != nil {
			return false, err
		}
		r, err := l.pieces.record(l.number)
		if err != nil {
			return false, err
		}
		begun = r != nil
		if !begun {
			r = first
		}
		if r == nil {
			return false, ErrNoRun
		}
		l.record = *r
		err = l.next(*r, nil)
		if !errors.Is(err, fs.ErrExist) { // else the other process has just written
			return begun, err
		}
	}
}

// start begins to sync by itself.
func (l *Log) start() *Log {
	l.stop, l.done = make(chan struct{}), make(chan struct{})
	every := shareEvery
	if l.open != nil {
		every = 1
	}
	go l.syncLoop(every)
	return l
}

// Record returns the newest record.
func (l *Log) Record() Record { return l.record }

// Damage returns why a part of the journal is not known; nil if it is whole.
func (l *Log) Damage() error { return l.damage }

// Save replaces the record, durably: a crash leaves the old one or the new one, with all lines from before.
func (l *Log) Save(r Record) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	if err := l.replaceRecord(r); err != nil {
		l.failed = fmt.Errorf("saving the run's record: %w", err)
		return l.failed
	}
	l.record, l.dirty, l.lines = r, false, nil
	return nil
}

func (l *Log) replaceRecord(r Record) error {
	if l.dirty {
		if err := l.open.Sync(); err != nil {
			return err
		}
	}
	return l.next(r, l.lines)
}

// Proof returns what SaveProof has kept, nil if there is nothing.
func (l *Log) Proof() []byte {
	text, _ := read(l.files, l.folder+proofFile)
	return text
}

// SaveProof keeps what a proof has counted; nil removes it.
func (l *Log) SaveProof(text []byte) error {
	if text == nil {
		return l.files.Remove(l.folder + proofFile)
	}
	return l.files.Write(l.folder+proofFile, text)
}

// end ends what start began.
func (l *Log) end() {
	if l.stop != nil {
		close(l.stop)
		<-l.done
		l.stop = nil
	}
}

// Close syncs the journal and releases the run.
func (l *Log) Close() error {
	l.end()
	err := l.Sync()
	if l.open != nil {
		err = errors.Join(err, l.open.Close())
	}
	if l.ranges != nil {
		err = errors.Join(err, l.ranges.Close())
	}
	if l.lock != nil {
		err = errors.Join(err, l.lock.Unlock())
	}
	return err
}
