package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/faultproxy"
)

// scratch is a small server that belongs to one test, which may kill it.
type scratch struct {
	kind kind
	dir  string
	url  string
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
	backendtest.Server(t, "TERAPUSH_TEST_"+strings.ToUpper(string(k))) // it is installed
	s := &scratch{kind: k, dir: filepath.Join(dir, "server")}
	s.up(t)
	t.Cleanup(func() { s.script(t, "scratch-kill", s.dir) })
	return s
}

// up starts the server, or starts it again, and waits until it answers.
func (s *scratch) up(t *testing.T) {
	t.Helper()
	s.url = regexp.MustCompile(string(s.kind) + `://\S+`).FindString(s.script(t, "scratch", string(s.kind), s.dir))
}

// kill ends it with SIGKILL.
func (s *scratch) kill(t *testing.T) {
	t.Helper()
	s.script(t, "scratch-kill", s.dir)
}

func (s *scratch) script(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("../scripts/servers", args...).CombinedOutput()
	require.NoError(t, err, "scripts/servers %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// database makes a database on the server.
func (s *scratch) database(t *testing.T) *database {
	t.Helper()
	return makeDatabase(t, s.kind, s.url)
}

// freePort is one of the test's own, at which nobody listens yet.
func freePort(t *testing.T) string { return faultproxy.FreePort(t) }
