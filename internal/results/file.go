package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/internal/file"
)

// File is a record that this process adds to, and no other. It belongs to one goroutine.
type File struct {
	path   string
	file   *os.File
	lock   *flock.Flock
	record Record
	size   int64 // of whole lines, all on disk
}

// errGone says that the file was removed between its opening and its locking.
var errGone = errors.New("the file was removed while it was opened")

// Open takes the record at path, or makes an empty file there, and locks it: a second process is refused. What a kill
// has left half written at its end is cut off, and a line feed that alone is missing is added. A file that is no
// record is refused and left as it is.
func Open(path string) (*File, error) {
	if err := refuseStrange(path); err != nil {
		return nil, err
	}
	const most = 100 // each is another process that came and went
	for range most {
		f, err := open(path)
		if !errors.Is(err, errGone) {
			return f, err
		}
	}
	return nil, fmt.Errorf("opening the record %s: %w", path, errGone)
}

func open(path string) (*File, error) {
	// The lock is the record's own, so that nothing else is left behind. The kernel lets go of it when a process dies.
	f := &File{path: path, lock: flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))}
	free, err := f.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("opening the record: %w", err)
	}
	if !free {
		return nil, fmt.Errorf("another process is adding to the record %s: wait for it, or give another --record", path)
	}
	if err = f.take(); err == nil {
		err = f.load()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// take opens what is locked. Close removes an empty file, so that the path may be another file by now, or none.
func (f *File) take() error {
	file, err := os.OpenFile(f.path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("opening the record: %w", err)
	}
	locked, err := f.lock.Stat()
	opened, err2 := file.Stat()
	if err := errors.Join(err, err2); err != nil {
		return fmt.Errorf("opening the record: %w", errors.Join(err, file.Close()))
	}
	if !os.SameFile(locked, opened) {
		return errors.Join(errGone, file.Close())
	}
	f.file = file // from here on Close may remove it
	return nil
}

func (f *File) load() error {
	whole, err := parseLines(f.file, &f.record)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if whole == 0 && !f.record.Torn {
		return syncFolder(f.path)
	}
	if err := f.cut(whole); err != nil || whole == 0 {
		return err
	}
	end := make([]byte, 1)
	if _, err := f.file.ReadAt(end, whole-1); err != nil {
		return fmt.Errorf("reading the record: %w", err)
	}
	if end[0] != '\n' {
		return f.write([]byte("\n"))
	}
	return nil
}

// Record returns what the file held when it was opened; its head has no schema if it held none.
func (f *File) Record() Record { return f.record }

// Torn reports whether the last line was not whole and was dropped: the push that it was of has to be done again.
func (f *File) Torn() bool { return f.record.Torn }

// Reset empties the record.
func (f *File) Reset() error {
	f.record = Record{}
	return f.cut(0)
}

// Begin writes the head. A head behind others takes their place, and holds for the entries behind it: a sweep may go on
// with more repeats, by another version or on another machine. One of another sweep is refused.
func (f *File) Begin(h Head) error {
	h.Schema = Schema
	next := Record{Head: f.record.Head}
	if err := next.begin(h); err != nil {
		return fmt.Errorf("the record %s: %w", f.path, err)
	}
	if err := f.append(h); err != nil {
		return err
	}
	f.record.Head = h
	return nil
}

// Append adds an entry, and returns when it is on disk. After an error the record is as it was before. Version and
// Machine are the head's, whatever the entry says.
func (f *File) Append(e Entry) error {
	if f.record.Head.Schema == "" {
		return errors.New("the record has no head yet")
	}
	if err := f.record.check(e); err != nil {
		return fmt.Errorf("the record %s: %w", f.path, err)
	}
	return f.append(e)
}

func (f *File) append(line any) error {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false) // servers' messages stay readable with grep
	if err := out.Encode(line); err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	return f.write(text.Bytes())
}

// write adds bytes and returns when they are on disk.
func (f *File) write(text []byte) error {
	_, err := f.file.WriteAt(text, f.size)
	if err == nil {
		err = f.file.Sync()
	}
	switch {
	case err == nil:
		f.size += int64(len(text))
		return nil
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		const full = "the disk of the record %s is full: make room there, and go on with the same command: %w"
		err = fmt.Errorf(full, f.path, err)
	default:
		err = fmt.Errorf("writing the record: %w", err)
	}
	return errors.Join(err, f.cut(f.size))
}

// cut leaves so many bytes of the file.
func (f *File) cut(size int64) error {
	err := f.file.Truncate(size)
	if err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("cutting the record to its whole lines: %w", err)
	}
	f.size = size
	return nil
}

// Close lets others have the record. One without a head leaves no file behind.
func (f *File) Close() error {
	var problems []error
	if f.file != nil {
		if f.size == 0 && f.record.Head.Schema == "" && f.isEmpty() {
			problems = append(problems, os.Remove(file.Resolve(f.path)))
		}
		problems = append(problems, f.file.Close())
	}
	return errors.Join(append(problems, f.lock.Unlock())...)
}

// isEmpty reports whether the path is still this file, with nothing in it.
func (f *File) isEmpty() bool {
	own, err := f.file.Stat()
	there, err2 := os.Stat(f.path)
	return err == nil && err2 == nil && os.SameFile(own, there) && own.Size() == 0
}

// syncFolder makes a new file's name durable.
func syncFolder(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("opening the record's folder: %w", err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) { // some file systems cannot
		return fmt.Errorf("syncing the record's folder: %w", err)
	}
	return nil
}

// Look reads a record as Open would find it, without locking or changing it: empty where there is no file yet, or
// nothing of a head. It fails where Open would refuse what is there.
func Look(path string) (Record, error) {
	r := Record{File: path}
	if err := refuseStrange(path); err != nil {
		return Record{}, err
	}
	in, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return Record{}, fmt.Errorf("reading the record: %w", err)
	}
	defer in.Close()
	if _, err := parseLines(in, &r); err != nil {
		return Record{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// refuseStrange refuses what cannot keep a record. As root a device could even be removed by Close, which leaves no
// empty file behind.
func refuseStrange(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("reading the record: %s is no regular file: give another --record", path)
	}
	return nil
}
