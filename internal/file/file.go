// Package file reads and writes the files that a user names.
package file

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/dustin/go-humanize"
)

// Limits for Read. A parser may take thirty times the bytes of its text.
const (
	MaxSettings = 1 << 20  // what people write: plans, settings, passwords
	MaxCerts    = 16 << 20 // the bundles of systems have 250 KB
)

// Read reads a whole file or pipe. More than most bytes are an error: /dev/zero has no end.
func Read(path string, most int64) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %s: is it the right file?", path, humanize.IBytes(uint64(most)))
	}
	return text, nil
}

// Write writes a file, through links. A regular file is replaced once the new one is complete, with its mode, and its
// owner if the system allows that. What cannot be replaced is written in place: a file in a read-only folder, a device,
// a pipe, /dev/stdout.
func Write(path string, text []byte) error {
	at, err := locate(path)
	if err != nil {
		return err
	}
	if at.stream != nil {
		_, err := at.stream.Write(text)
		return err
	}
	if at.replace {
		err := at.replaceWith(text)
		if err == nil || at.old == nil || !isReadOnly(err) {
			return err
		}
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return errors.Join(err, out.Close())
}

// Replace writes a file of this program's own, durably: a crash leaves the old file or the new one. Only one process at
// a time may replace a file.
func Replace(path string, text []byte) error {
	temp := path + ".new"
	if err := WriteSynced(temp, text); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// WriteSynced is os.WriteFile with a sync of the content, not of the name.
func WriteSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// SyncFolder syncs the names in a folder, if its file system can do that: some network file systems refuse it.
func SyncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	if err = dir.Sync(); errors.Is(err, syscall.EINVAL) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}

// Writable returns the error that Write would have, as far as that shows without a change to the file. A pipe is not
// opened: its reader would see an end when it is closed.
func Writable(path string) error {
	at, err := locate(path)
	if err != nil || !at.replace {
		return err
	}
	temp, err := at.createTemp()
	if err == nil {
		return errors.Join(temp.Close(), os.Remove(temp.Name()))
	}
	if at.old == nil || !isReadOnly(err) {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return out.Close()
}

// place is where Write writes a file.
type place struct {
	path    string      // without links
	old     fs.FileInfo // nil: there is no file yet
	replace bool        // by another file, rather than in place
	stream  *os.File    // stdout or stderr if the path is theirs
}

func locate(path string) (place, error) {
	p := place{path: Resolve(path), replace: true}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, err
	}
	if info.IsDir() {
		return p, errors.New("it is a folder")
	}
	p.old = info
	// To open it by name would truncate it; a socket, or the terminal of a user before su, cannot be opened at all.
	for _, own := range []*os.File{os.Stdout, os.Stderr} {
		if is, err := own.Stat(); err == nil && os.SameFile(info, is) {
			p.stream, p.replace = own, false
			return p, nil
		}
	}
	resolved, err := os.Stat(p.path) // a link in /proc/self/fd may lead to a file that has lost its name
	p.replace = info.Mode().IsRegular() && err == nil && os.SameFile(info, resolved)
	return p, nil
}

// isReadOnly reports whether a file could not be replaced because of its folder: that belongs to others, or the file is
// mounted. It may still be writable in place.
func isReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EBUSY)
}

func (p place) replaceWith(text []byte) error {
	out, err := p.createTemp()
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }() // fails after the rename
	_, err = out.Write(text)
	if p.old != nil {
		keepOwner(out, p.old) // before the mode, some bits of which a change of owner clears
		err = errors.Join(err, out.Chmod(p.old.Mode()))
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), p.path)
}

// createTemp creates a file in the place's folder, which no more users can read than the old file.
func (p place) createTemp() (*os.File, error) {
	mode := fs.FileMode(0o644) // the umask applies
	if p.old != nil {
		mode = p.old.Mode().Perm()
	}
	name := filepath.Join(filepath.Dir(p.path), ".terapush-"+rand.Text())
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return nil, fmt.Errorf("making a file in its folder: %w", e.Err) // without its path, which the user has not given
	}
	return out, err
}

// Same reports whether two paths lead to one file, which need not exist.
func Same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(infoA, infoB)
	}
	return Resolve(a) == Resolve(b)
}

// Resolve returns the absolute path of a file without links. The file, or that of the last link, need not exist.
func Resolve(path string) string {
	for range 40 { // the kernel's limit
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
			break
		}
		next, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = next
	}
	if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		path = filepath.Join(folder, filepath.Base(path))
	}
	if absolute, err := filepath.Abs(path); err == nil {
		return absolute
	}
	return path
}
