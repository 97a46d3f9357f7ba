// Package file reads the files that a user names, and writes those that a user asks for.
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

// Limits of what is read whole. A parser may take thirty times the bytes of its text.
const (
	MaxSettings = 1 << 20  // what people write: plans, settings, prices, passwords
	MaxCerts    = 16 << 20 // the bundles of systems have 250 KB
)

// Read reads a whole file, or all that a pipe has. More than most bytes are an error and are not kept in memory:
// /dev/zero has no end.
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

// Write puts a text into a file, through links. A regular file is replaced when its successor is whole, and keeps its
// mode, and its owner where the system allows that. Where it cannot be replaced, as in a folder that is not writable,
// it is written in place. So is what is no regular file: a device, a pipe, /dev/stdout.
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
		err := at.replaceBy(text)
		if err == nil || at.old == nil || !inPlaceMayDo(err) {
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

// Replace puts a text into a file of this program's own, durably: a crash leaves the old file or the new one, whole. It
// writes beside the old file, syncs and renames, then syncs the folder that holds the name. Only one process at a time
// may replace a file.
func Replace(path string, text []byte) error {
	beside := path + ".new"
	if err := WriteSynced(beside, text); err != nil {
		return err
	}
	if err := os.Rename(beside, path); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// WriteSynced is os.WriteFile, durably but for the name.
func WriteSynced(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// SyncFolder brings the names in a folder to the disk.
func SyncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Writable reports why Write could not write the file, as far as that can be found out without a change to it. A pipe is
// not opened: its reader would take the closing for the end.
func Writable(path string) error {
	at, err := locate(path)
	if err != nil || !at.replace {
		return err
	}
	trial, err := at.beside()
	if err == nil {
		return errors.Join(trial.Close(), os.Remove(trial.Name()))
	}
	if at.old == nil || !inPlaceMayDo(err) {
		return err
	}
	out, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return out.Close()
}

// place is where a file is to be written.
type place struct {
	path    string      // without links
	old     fs.FileInfo // nil: nothing is there yet
	replace bool        // by another file, rather than in place
	stream  *os.File    // of this process; nil: none
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
	// Opened by its name it would be cut and written from its beginning. A socket, or the terminal of a user before su,
	// cannot be opened.
	for _, own := range []*os.File{os.Stdout, os.Stderr} {
		if is, err := own.Stat(); err == nil && os.SameFile(info, is) {
			p.stream = own
			p.replace = false
			return p, nil
		}
	}
	// A link in /proc/self/fd may lead to a file that has lost its name.
	there, err := os.Stat(p.path)
	p.replace = info.Mode().IsRegular() && err == nil && os.SameFile(info, there)
	return p, nil
}

// inPlaceMayDo reports whether a file that could not be replaced may be writable all the same: the folder belongs to
// others, or the file is mounted.
func inPlaceMayDo(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.EBUSY)
}

func (p place) replaceBy(text []byte) error {
	out, err := p.beside()
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(out.Name()) }() // it has its own name by then when all went well
	_, err = out.Write(text)
	if p.old != nil {
		keepOwner(out, p.old) // before the mode, of which a change of owner takes bits away
		err = errors.Join(err, out.Chmod(p.old.Mode()))
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), p.path)
}

// beside makes a file with a name of its own in the folder of another. It is never open to more users than that one.
func (p place) beside() (*os.File, error) {
	mode := fs.FileMode(0o644) // but for the umask
	if p.old != nil {
		mode = p.old.Mode().Perm()
	}
	name := filepath.Join(filepath.Dir(p.path), ".terapush-"+rand.Text())
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	var of *fs.PathError
	if errors.As(err, &of) {
		return nil, fmt.Errorf("making a file in its folder: %w", of.Err) // without its path, which no user has given
	}
	return out, err
}

// Same reports whether two paths are one file, by whatever names and links, also if there is none yet.
func Same(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(infoA, infoB)
	}
	return Resolve(a) == Resolve(b)
}

// Resolve returns where a file is, or would be made, without links.
func Resolve(path string) string {
	const most = 40 // links, as the kernel has it
	for range most {
		if there, err := filepath.EvalSymlinks(path); err == nil {
			path = there
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
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}
