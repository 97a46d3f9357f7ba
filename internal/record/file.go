package record

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
)

// File is a record that this process adds to, and no other. It belongs to one goroutine.
type File struct {
	path   string
	file   *os.File
	lock   *flock.Flock
	record Record
	torn   bool
	size   int64 // of whole lines, all on disk
}

// Open takes the record at path, or makes an empty file there, and locks it: a second process is refused. What a kill
// has left half written at its end is cut off. A file that is no record is refused and left as it is.
func Open(path string) (*File, error) {
	// The lock is the record's own, so that nothing else is left behind. The kernel lets go of it when a process dies.
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

func (f *File) load() error {
	var err error
	if f.file, err = os.OpenFile(f.path, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("opening the record: %w", err)
	}
	text, err := io.ReadAll(f.file)
	if err != nil {
		return fmt.Errorf("reading the record: %w", err)
	}
	if len(text) == 0 {
		return syncFolder(f.path)
	}
	whole, err := parse(text, &f.record)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.torn = whole < len(text)
	return f.cut(int64(whole))
}

// Record is what the file held when it was opened; its head has no schema if it held none.
func (f *File) Record() Record { return f.record }

// Torn tells that the last line was not whole and was dropped: the push that it was of has to be done again.
func (f *File) Torn() bool { return f.torn }

// Reset empties the record.
func (f *File) Reset() error {
	f.record = Record{}
	return f.cut(0)
}

// Begin writes the head. A head behind others takes their place: a sweep is gone on with by more repeats, or by another
// version.
func (f *File) Begin(h Head) error {
	h.Schema = Schema
	if err := f.append(h); err != nil {
		return err
	}
	f.record.Head = h
	return nil
}

// Append adds an entry, and returns when it is on disk. After an error the record is as it was before.
func (f *File) Append(e Entry) error {
	if f.record.Head.Schema == "" {
		return errors.New("the record has no head yet")
	}
	return f.append(e)
}

func (f *File) append(line any) error {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false) // servers' messages stay readable with grep
	err := out.Encode(line)
	if err == nil {
		_, err = f.file.WriteAt(text.Bytes(), f.size)
	}
	if err == nil {
		err = f.file.Sync()
	}
	switch {
	case err == nil:
		f.size += int64(text.Len())
		return nil
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		err = fmt.Errorf("the disk of the record %s is full: make room there, and go on with the same command: %w", f.path, err)
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
		if f.size == 0 && f.record.Head.Schema == "" {
			if info, err := f.file.Stat(); err == nil && info.Size() == 0 {
				problems = append(problems, os.Remove(f.path))
			}
		}
		problems = append(problems, f.file.Close())
	}
	return errors.Join(append(problems, f.lock.Unlock())...)
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
