package e2e_test

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// scratch is a small server that belongs to one test, which may kill it.
type scratch struct {
	kind kind
	dir  string
	port string
}

// newScratch starts a server in a folder of its own.
func newScratch(t *testing.T, k kind) *scratch {
	t.Helper()
	return scratchIn(t, k, openFolder(t))
}

// openFolder is a folder under which the servers' own users may go. (t.TempDir's is closed.)
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "terapush-e2e-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func scratchIn(t *testing.T, k kind, dir string) *scratch {
	t.Helper()
	if os.Getenv("TERAPUSH_TEST_"+strings.ToUpper(string(k))) == "" {
		missing(t, "TERAPUSH_TEST_%s is not set: no %s is installed", strings.ToUpper(string(k)), k)
	}
	s := &scratch{kind: k, dir: filepath.Join(dir, "server"), port: freePort(t)}
	s.up(t)
	t.Cleanup(func() { s.script(t, "scratch-kill", s.dir) })
	return s
}

// up starts the server, or starts it again, and waits until it answers.
func (s *scratch) up(t *testing.T) {
	t.Helper()
	s.script(t, "scratch", string(s.kind), s.dir, s.port)
}

// kill ends it with SIGKILL.
func (s *scratch) kill(t *testing.T) {
	t.Helper()
	s.script(t, "scratch-kill", s.dir)
}

func (s *scratch) script(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("../scripts/servers", args...).CombinedOutput()
	require.NoError(t, err, "scripts/servers %s: %s", strings.Join(args, " "), out)
}

// database makes a database on the server.
func (s *scratch) database(t *testing.T) *database {
	t.Helper()
	u := url.URL{Scheme: string(s.kind), User: url.User("root"), Host: "127.0.0.1:" + s.port, Path: "/tera"}
	if s.kind == postgres {
		u.User, u.RawQuery = url.User("postgres"), "sslmode=disable"
	}
	return makeDatabase(t, s.kind, u.String())
}

// freePort is a port of this machine that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}
