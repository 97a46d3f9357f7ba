package push

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/pkg/batch"
)

// rejects are the records that a load leaves out, in the user's file: a line of JSON for each, with the run and the
// batch. A line is on disk before its batch is committed without the record, so that a kill in between leaves lines of
// batches that are not in: whoever sends such a batch replaces them. The file is locked as long as the load may add to
// it.
type rejects struct {
	path string
	run  string
	most int64

	mu     sync.Mutex
	lines  map[int64][][]byte // by batch
	all    int64
	file   *os.File
	lock   *flock.Flock
	length int64 // of the file up to the end of its last line
	broken error // nothing is added after a write that failed
}

// reject is a line of the file.
type reject struct {
	Run   string `json:"run"`
	Batch int64  `json:"batch"`
	batch.Bad
	Record *string `json:"record,omitempty"`
	Base64 []byte  `json:"record_base64,omitempty"` // in its place if it is not UTF-8
}

// open locks the file, and reads the lines of this run. Others are the user's.
func (r *rejects) open() error {
	if info, err := os.Lstat(r.path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file, which is replaced as a whole: choose another name", r.path)
	}
	if err := r.locked(); err != nil {
		return err
	}
	text, err := os.ReadFile(r.path)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(text) {
		var one reject
		known := json.Unmarshal(line, &one) == nil && one.Run != ""
		switch {
		case !bytes.HasSuffix(line, []byte("\n")) && r.length > 0: // a crash has cut it off
			continue
		case !known:
			return fmt.Errorf("%s is not a file of rejected records: choose another name", r.path)
		case one.Run != r.run:
			return fmt.Errorf("%s has the rejected records of run %s: choose another name, or move it away", r.path, one.Run)
		}
		r.lines[one.Batch] = append(r.lines[one.Batch], bytes.Clone(line))
		r.length += int64(len(line))
		r.all++
	}
	if r.file, err = os.OpenFile(r.path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return err
	}
	return r.file.Truncate(r.length)
}

// locked makes the file if there is none, and locks it. Whoever replaces it has the lock of the new one first, so that
// one which can be locked by its name again was replaced in between.
func (r *rejects) locked() error {
	lock := flock.New(r.path)
	free, err := lock.TryLock()
	if err != nil {
		return err
	}
	if free {
		r.lock = lock
		again := flock.New(r.path)
		replaced, _ := again.TryLock()
		_ = again.Close()
		free = !replaced
	}
	if !free {
		return fmt.Errorf("%s is written by another load: choose another name", r.path)
	}
	return nil
}

// keep drops the lines of batches that are not in.
func (r *rejects) keep(in func(number int64) bool) error {
	kept := make(map[int64][][]byte)
	for number, lines := range r.lines {
		if in(number) {
			kept[number] = lines
		}
	}
	if len(kept) == len(r.lines) {
		return nil
	}
	return r.rewrite(kept)
}

// rewrite replaces the file by the lines that are kept.
func (r *rejects) rewrite(kept map[int64][][]byte) error {
	var text []byte
	all := int64(0)
	for _, number := range slices.Sorted(maps.Keys(kept)) {
		text = append(text, bytes.Join(kept[number], nil)...)
		all += int64(len(kept[number]))
	}

	temp := r.path + ".new"
	if err := file.WriteSynced(temp, text); err != nil {
		return err
	}
	lock := flock.New(temp)
	if free, err := lock.TryLock(); err != nil || !free {
		return errors.Join(fmt.Errorf("locking %s", temp), err)
	}
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return errors.Join(err, lock.Close())
	}
	if err := os.Rename(temp, r.path); err != nil {
		return errors.Join(err, out.Close(), lock.Close())
	}
	_, _ = r.file.Close(), r.lock.Close() // all of it is replaced
	r.file, r.lock, r.lines, r.all, r.length = out, lock, kept, all, int64(len(text))
	return file.SyncFolder(filepath.Dir(r.path))
}

// Take implements engine.Rejects.
func (r *rejects) Take(number int64, bad []batch.Bad) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	had := len(r.lines[number])
	if now := r.all - int64(had) + int64(len(bad)); now > r.most {
		last := bad[len(bad)-1]
		return fmt.Errorf("%d records are refused, more than --max-rejects %d; the last is in %s, line %d: %s",
			now, r.most, last.File, last.Line, last.Words)
	}
	if r.broken != nil {
		return r.broken
	}

	var lines [][]byte
	for _, one := range bad {
		line, err := r.line(number, one)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	var err error
	if had > 0 {
		kept := maps.Clone(r.lines)
		kept[number] = lines
		err = r.rewrite(kept)
	} else {
		err = r.add(number, lines)
	}
	if err != nil {
		r.broken = fmt.Errorf("keeping rejected records, without which their batch is not sent: %w", err)
	}
	return r.broken
}

// Room implements engine.Rejects.
func (r *rejects) Room(number int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most - r.all + int64(len(r.lines[number]))
}

func (r *rejects) line(number int64, bad batch.Bad) ([]byte, error) {
	one := reject{Run: r.run, Batch: number, Bad: bad}
	if utf8.ValidString(bad.Record) {
		one.Record = &bad.Record
	} else {
		one.Base64 = []byte(bad.Record)
	}
	line, err := json.Marshal(one)
	return append(line, '\n'), err
}

// add appends lines. Of those that cannot be written whole nothing stays.
func (r *rejects) add(number int64, lines [][]byte) error {
	text := bytes.Join(lines, nil)
	_, err := r.file.Write(text)
	if err == nil {
		err = r.file.Sync()
	}
	if err != nil {
		return errors.Join(err, r.file.Truncate(r.length))
	}
	r.lines[number] = lines
	r.all += int64(len(lines))
	r.length += int64(len(text))
	return nil
}

// close gives the file free.
func (r *rejects) close() (err error) {
	if r == nil {
		return nil
	}
	if r.file != nil {
		err = r.file.Close()
	}
	if r.lock != nil {
		err = errors.Join(err, r.lock.Close())
	}
	return err
}

// count returns how many records are left out.
func (r *rejects) count() int64 {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}
