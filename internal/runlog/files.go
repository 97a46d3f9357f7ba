package runlog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/terapush/terapush/internal/file"
)

// Files are where a run is kept: a folder of this machine, or a bucket, where every process of the run finds them. What
// a method has done when it returns stays, whatever becomes of process and machine.
type Files interface {
	// Create makes a file. If there is one of that name, it returns fs.ErrExist and changes nothing: of two processes
	// that make the same file one succeeds.
	Create(name string, content []byte) error
	// Write makes a file, or replaces it as a whole.
	Write(name string, content []byte) error
	// Open opens a file for reading. It returns fs.ErrNotExist if there is none.
	Open(name string) (io.ReadCloser, error)
	// Names returns, in their order, the names of the files below a folder, whose own name ends with a slash or is
	// empty.
	Names(folder string) ([]string, error)
	// Remove removes files. One that is missing is no error.
	Remove(names ...string) error
}

// Folder is Files in a folder that is there. Only there a file can grow.
type Folder string

func (d Folder) path(name string) string { return filepath.Join(string(d), name) }

// Create implements Files. What a crash or a full disk leaves half written keeps its name.
func (d Folder) Create(name string, content []byte) error {
	f, err := os.OpenFile(d.path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Sync(), f.Close(), file.SyncFolder(string(d)))
}

// Write implements Files.
func (d Folder) Write(name string, content []byte) error { return file.Replace(d.path(name), content) }

// Open implements Files.
func (d Folder) Open(name string) (io.ReadCloser, error) { return os.Open(d.path(name)) }

// Names implements Files. Folders in the folder are not looked into.
func (d Folder) Names(folder string) (names []string, err error) {
	entries, err := os.ReadDir(d.path(folder))
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, folder+e.Name())
		}
	}
	return names, err
}

// Remove implements Files.
func (d Folder) Remove(names ...string) (all error) {
	for _, name := range names {
		if err := os.Remove(d.path(name)); !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// grow opens a file to which lines are appended.
func (d Folder) grow(name string) (*os.File, error) {
	return os.OpenFile(d.path(name), os.O_WRONLY|os.O_APPEND, 0)
}

// sync syncs what another process may have left unsynced.
func (d Folder) sync(name string) error {
	f, err := os.OpenFile(d.path(name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func (d Folder) has(name string) (bool, error) {
	_, err := os.Lstat(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
