package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// folder holds one server's data and log. Its owner, a running demo, has a lock on it, which the kernel takes away
// however that process ends; so a folder without an owner is a leftover, unless it was kept.
type folder struct {
	path  string
	owner *flock.Flock
}

const (
	folderPrefix = "server-"
	keptName     = "kept"
	logName      = "postgresql.log"
	// endWait is how long a server left behind has to end after being asked to, before it is killed.
	endWait = 10 * time.Second
)

func open(path string) *folder {
	return &folder{path: path, owner: flock.New(filepath.Join(path, "owner.lock"))}
}

// runtime is a folder for the library, which empties it when it starts.
func (f *folder) runtime() string { return filepath.Join(f.path, "runtime") }

func (f *folder) data() string { return filepath.Join(f.path, "data") }

func (f *folder) remove() error {
	return errors.Join(os.RemoveAll(f.path), f.owner.Unlock())
}

// stop ends the server and removes the folder, also when the server had ended before. The library's stop waits for a
// last checkpoint of data that nobody will read, four seconds for a gigabyte; it is the way where end has none.
func (f *folder) stop(library func() error) error {
	var failed error
	if _, certain := postmaster(f.data()); certain {
		end(f.data())
	} else if err := library(); err != nil {
		failed = fmt.Errorf("stopping PostgreSQL: %w%s", err, f.lastWords())
	}
	return errors.Join(failed, f.remove())
}

// keep marks the folder as one to leave alone while its server runs.
func (f *folder) keep() (stop string, err error) {
	p, _ := postmaster(f.data())
	if p == nil {
		return "", fmt.Errorf("PostgreSQL has ended by itself%s", f.lastWords())
	}
	if err := os.WriteFile(filepath.Join(f.path, keptName), nil, 0o600); err != nil {
		return "", err
	}
	return fmt.Sprintf("kill -INT %d", p.Pid), nil
}

// kept tells whether the folder was kept and its server runs.
func (f *folder) kept() bool {
	if _, err := os.Stat(filepath.Join(f.path, keptName)); err != nil {
		return false
	}
	p, _ := postmaster(f.data())
	return p != nil
}

// log is the end of the server's log, at most limit bytes; "" when there is none.
func (f *folder) log(limit int64) string {
	file, err := os.Open(filepath.Join(f.path, logName))
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > limit {
		_, _ = file.Seek(-limit, io.SeekEnd)
	}
	text, _ := io.ReadAll(file)
	return strings.TrimSpace(string(text))
}

// lastWords is the end of the server's log as the end of an error message.
func (f *folder) lastWords() string {
	if text := f.log(2000); text != "" {
		return "; the end of its log:\n" + text
	}
	return ""
}

// removeLibraryLog deletes the file that the library makes in the system's folder for temporary files, for the output
// of initdb and the server, and leaves there. It is known by naming this folder, which initdb does.
func (f *folder) removeLibraryLog() {
	names, _ := filepath.Glob(filepath.Join(os.TempDir(), "embedded_postgres_log*"))
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			continue // another user's
		}
		text, _ := io.ReadAll(io.LimitReader(file, 64<<10))
		file.Close()
		if strings.Contains(string(text), f.path) {
			_ = os.Remove(name)
		}
	}
}

// postmaster is the server that runs on the data folder, nil when none does. certain says that it is surely that
// server and not another process that got its number since; where there is no /proc nobody can tell.
func postmaster(data string) (p *os.Process, certain bool) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return nil, false
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return nil, false
	}
	p, err = os.FindProcess(pid)
	if err != nil || p.Signal(syscall.Signal(0)) != nil {
		return nil, false
	}
	if _, err := os.Stat("/proc/self"); err != nil {
		return p, false
	}
	// A process that is dead and not yet reaped still takes signals, but works nowhere.
	works, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil || works != data {
		return nil, false
	}
	return p, true
}

// end stops the server on the data folder at once, without saving anything, if one is certain to run there. Where that
// is not certain it ends by itself: PostgreSQL looks every minute whether its data folder is still there.
func end(data string) {
	p, certain := postmaster(data)
	if !certain {
		return
	}
	_ = p.Signal(syscall.SIGQUIT) // PostgreSQL's "immediate shutdown"
	for deadline := time.Now().Add(endWait); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if p, _ := postmaster(data); p == nil {
			return
		}
	}
	_ = p.Kill()
}
