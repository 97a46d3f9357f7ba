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
// (labels, commit groups), the caller of Mark or Append calls Sync before the attempt is sent, and after a
// group's end before its objects are removed.
package runlog

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	syncEvery   = 100 * time.Millisecond
	// shareEvery is after how many of them the shared journal gets its next piece, which costs a request.
	shareEvery = 10
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
