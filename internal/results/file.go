package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/internal/file"
)

// File is a record that only this process adds to. It must be used by one goroutine at a time.
type File struct {
	path   string
	file   *os.File
	lock   *flock.Flock
	record Record
	size   int64 // of the complete lines, all on disk
}

// Open opens or creates the record at path and locks it; a second process is refused. It cuts off a last line that a
// kill left incomplete. A file that is no record is refused and left unchanged.
func Open(path string) (*File, error) {
	if err := checkRegular(path); err != nil {
		return nil, err
	}
	// The kernel releases the lock when the process dies.
	f := &File{path: path, lock: flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))}
	free, err := f.lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("opening the record: %w", err)
	}
	if !free {
		return nil, fmt.Errorf("another process is adding to the record %s: wait for it, or give another --record", path)
	}
	if err := f.load(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *File) load() (err error) {
	if f.file, err = os.OpenFile(f.path, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("opening the record: %w", err)
	}
	complete, err := parseLines(f.file, &f.record)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if err := f.cut(complete); err != nil || complete > 0 {
		return err
	}
	if err := file.SyncFolder(filepath.Dir(f.path)); err != nil {
		return fmt.Errorf("syncing the record's folder: %w", err)
	}
	return nil
}

// Record returns what the file held when it was opened. The head of an empty file has no schema.
func (f *File) Record() Record { return f.record }

// Reset empties the record.
func (f *File) Reset() error {
	f.record = Record{}
	return f.cut(0)
}

// Begin writes a head. A later head replaces the one before it for the entries that follow: a sweep may continue with
// more repeats, another version or another machine. A head of another sweep is refused.
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

// Append adds an entry and returns once it is on disk. After an error the record is as before.
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
	out.SetEscapeHTML(false) // server messages stay readable with grep
	if err := out.Encode(line); err != nil {
		return fmt.Errorf("writing the record: %w", err)
	}
	_, err := f.file.WriteAt(text.Bytes(), f.size)
	if err == nil {
		err = f.file.Sync()
	}
	switch {
	case err == nil:
		f.size += int64(text.Len())
		return nil
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		const full = "the disk of the record %s is full: free some space and repeat the command to continue: %w"
		err = fmt.Errorf(full, f.path, err)
	default:
		err = fmt.Errorf("writing the record: %w", err)
	}
	return errors.Join(err, f.cut(f.size))
}

func (f *File) cut(size int64) error {
	err := f.file.Truncate(size)
	if err == nil {
		err = f.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("cutting the record to its complete lines: %w", err)
	}
	f.size = size
	return nil
}

// Close releases the record.
func (f *File) Close() error {
	var err error
	if f.file != nil {
		err = f.file.Close()
	}
	return errors.Join(err, f.lock.Unlock())
}

// Look reads a record as Open would, without locking or changing it. A file that does not exist is an empty record.
func Look(path string) (Record, error) {
	if err := checkRegular(path); err != nil {
		return Record{}, err
	}
	r, err := readFile(path, func(in io.Reader) (r Record, err error) {
		_, err = parseLines(in, &r)
		return r, err
	})
	if errors.Is(err, os.ErrNotExist) {
		return Record{File: path}, nil
	}
	return r, err
}

// checkRegular refuses devices and pipes, whose reading may never end.
func checkRegular(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("reading the record: %s is not a regular file: give another --record", path)
	}
	return nil
}
