package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// account is the user that the demo runs as.
type account struct {
	name     string
	uid, gid int
}

// unprivilegedUser finds a user that owns nothing. It has to have a name, which initdb asks for. The user postgres
// would do, but on a machine with a database of its own that database is his.
func unprivilegedUser() (account, error) {
	names := []string{"nobody", "daemon", "bin"}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		if errUID == nil && errGID == nil && uid > 0 {
			return account{name, uid, gid}, nil
		}
	}
	return account{}, fmt.Errorf("PostgreSQL refuses to run as root, and none of the users %s exists to run it: run the demo as an ordinary user",
		strings.Join(names, ", "))
}

// home is where the unprivileged process lives.
type home struct {
	base    string // root's, and open for passing through
	program string // in base: a copy of this program, which may lie where only root gets to
	path    string // in base, the user's own
	cache   string // elsewhere, the user's own, and staying
	who     account
}

func newHome(who account) (*home, error) {
	root, err := rootFolder()
	if err != nil {
		return nil, err
	}
	h := &home{cache: filepath.Join(root, "cache-"+strconv.Itoa(who.uid)), who: who}
	if err := own(h.cache, who); err != nil {
		return nil, err
	}
	if h.base, err = os.MkdirTemp(root, "demo-"); err != nil {
		return nil, err
	}
	h.program, h.path = filepath.Join(h.base, "terapush"), filepath.Join(h.base, "home")
	if err := errors.Join(os.Chmod(h.base, 0o711), own(h.path, who), copySelf(h.program)); err != nil {
		return nil, errors.Join(err, os.RemoveAll(h.base))
	}
	return h, nil
}

// rootFolder is where homes and caches lie: below /var/cache, and where that cannot be written, in the folder for
// temporary files. There anybody could have made it before, so whose it is is looked at.
func rootFolder() (string, error) {
	var problems []error
	for _, parent := range []string{"/var/cache", os.TempDir()} {
		path := filepath.Join(parent, "terapush")
		err := os.Mkdir(path, 0o711)
		if err == nil {
			err = os.Chmod(path, 0o711) // whatever the umask
		}
		if err == nil || errors.Is(err, os.ErrExist) {
			err = private(path, 0)
		}
		if err == nil {
			return path, nil
		}
		problems = append(problems, err)
	}
	return "", errors.Join(problems...)
}

// own makes a folder that only the user can read and write, or finds the one made before.
func own(path string, who account) error {
	err := os.Mkdir(path, 0o700)
	if err == nil {
		return os.Chown(path, who.uid, who.gid)
	}
	if errors.Is(err, os.ErrExist) {
		return private(path, who.uid)
	}
	return err
}

// copySelf copies the running program to a file that anybody may run and only root may change.
func copySelf(path string) error {
	from, err := os.Open("/proc/self/exe") // it may have been deleted or replaced by a new build since it started
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Chmod(0o755), to.Close())
}

// environment keeps what concerns the terminal, the language and the network, and drops the rest: root's variables
// name root's folders and hold secrets.
func (h *home) environment() []string {
	env := []string{
		"HOME=" + h.path, "TMPDIR=" + h.path, "XDG_CACHE_HOME=" + h.cache, "USER=" + h.who.name, "LOGNAME=" + h.who.name,
	}
	for _, name := range []string{
		"PATH", "LANG", "LC_ALL", "TZ", "TERM", "COLUMNS", "NO_COLOR", "SSL_CERT_FILE", "SSL_CERT_DIR", RepositoryEnv,
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return env
}
