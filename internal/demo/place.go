package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// place is the folder of all demos of one user: the archive that was fetched, the program unpacked from it, and a
// folder for every server. One process at a time is inside, from before it looks around until its server is up.
type place struct {
	dir  string
	lock *flock.Flock
}

// enter makes the place if need be, waits for other demos to leave it, and clears away what killed ones left.
func enter(ctx context.Context, dir string) (*place, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("the demo's folder: %w", err)
	}
	// The kernel shows a process's folder without symbolic links, and postmaster compares with that.
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("the demo's folder: %w", err)
	}
	if err := private(dir, os.Geteuid()); err != nil {
		return nil, err
	}
	p := &place{dir: dir, lock: flock.New(filepath.Join(dir, "lock"))}
	if _, err := p.lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return nil, fmt.Errorf("waiting for another demo to start in %s: %w", dir, err)
	}
	if err := p.clear(); err != nil {
		return nil, errors.Join(fmt.Errorf("removing what an earlier demo left: %w", err), p.leave())
	}
	return p, nil
}

func (p *place) leave() error { return p.lock.Unlock() }

// private refuses a folder that others can write to: a server's program found there would be run.
func private(dir string, uid int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("the demo's folder: %w", err)
	}
	if owner, known := ownerOf(info); known && owner != uid {
		return fmt.Errorf("the demo's folder %s belongs to user %d, not to %d: remove it or name another", dir, owner, uid)
	}
	if !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("the demo's folder %s is no folder that only its owner can write to (%s): remove it or name another", dir, info.Mode())
	}
	return nil
}

// fetched tells whether the archive is there. The library puts it there in one step.
func (p *place) fetched() bool {
	found, _ := filepath.Glob(filepath.Join(p.dir, "embedded-postgres-binaries-*-"+Version+".txz"))
	return len(found) > 0
}

// program is where the library unpacks the server, next to a folder for the files it is writing.
func (p *place) program() string { return filepath.Join(p.dir, "program-"+Version, "files") }

// mark is the file that says that the program is there as a whole. The library is content with a part of it, as a
// demo leaves it that is killed while unpacking.
func (p *place) mark() string { return filepath.Join(p.dir, "program-"+Version, "whole") }

// unpacked notes that the program is whole, since a server has started from it.
func (p *place) unpacked() error { return os.WriteFile(p.mark(), nil, 0o600) }

// clear removes the folders whose owner has ended, unless they were kept and their server runs, and a program that is
// not whole.
func (p *place) clear() error {
	paths, err := filepath.Glob(filepath.Join(p.dir, folderPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range paths {
		f := open(path)
		if free, err := f.owner.TryLock(); err != nil || !free {
			continue
		}
		if f.kept() {
			_ = f.owner.Unlock()
			continue
		}
		end(f.data())
		if err := f.remove(); err != nil {
			return err
		}
	}
	if _, err := os.Stat(p.mark()); err != nil {
		return os.RemoveAll(filepath.Dir(p.mark()))
	}
	return nil
}

// newFolder makes a folder for a server.
func (p *place) newFolder() (*folder, error) {
	path, err := os.MkdirTemp(p.dir, folderPrefix)
	if err != nil {
		return nil, fmt.Errorf("the demo's folder: %w", err)
	}
	f := open(path)
	if _, err := f.owner.TryLock(); err != nil {
		return nil, errors.Join(fmt.Errorf("the demo's folder: %w", err), f.remove())
	}
	return f, nil
}
