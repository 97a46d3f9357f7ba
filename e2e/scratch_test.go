package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
	if os.Getenv("TERAPUSH_TEST_"+strings.ToUpper(string(k))) == "" {
		missing(t, "TERAPUSH_TEST_%s is not set: no %s is installed", strings.ToUpper(string(k)), k)
	}
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

// clone is a copy of the scripts, as another clone of this repository has it, with no server yet.
type clone struct{ folder string }

func newClone(t *testing.T) clone {
	t.Helper()
	c := clone{openFolder(t)}
	require.NoError(t, os.CopyFS(filepath.Join(c.folder, "scripts"), os.DirFS("../scripts")))
	sum := sha256.Sum256([]byte(c.folder + "\n"))
	t.Cleanup(func() {
		c.servers(t, "down")
		_ = os.RemoveAll(fmt.Sprintf("/tmp/terapush-servers-%x", sum[:4]))
	})
	return c
}

func (c clone) servers(t *testing.T, args ...string) string {
	t.Helper()
	command := exec.Command(filepath.Join(c.folder, "scripts/servers"), args...)
	command.Env = append(os.Environ(), "TERAPUSH_SERVERS_DIR=")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)
	return string(out)
}

// port is that of the S3 server.
func (c clone) port(t *testing.T) int {
	t.Helper()
	found := regexp.MustCompile(`TERAPUSH_TEST_S3=.*endpoint=http://127\.0\.0\.1:(\d+)`).FindStringSubmatch(c.servers(t, "env"))
	require.NotNil(t, found)
	port, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return port
}

// Two clones have servers of their own, at ports that the kernel gives to nobody, and one that is taken is left.
func TestServersOfTwoClones(t *testing.T) {
	t.Parallel()
	if os.Getenv("TERAPUSH_TEST_S3") == "" {
		missing(t, "TERAPUSH_TEST_S3 is not set: no S3 server is installed")
	}
	one, other := newClone(t), newClone(t)
	assert.NotContains(t, one.servers(t, "env"), "127.0.0.1", "there is no server yet")
	one.servers(t, "up", "s3")
	other.servers(t, "up", "s3")
	first := one.port(t)
	assert.NotEqual(t, first, other.port(t))
	assert.Less(t, first, max(faultproxy.FirstEphemeral(t), 11_000))
	one.servers(t, "restart", "s3")
	assert.Equal(t, first, one.port(t), "is remembered")

	one.servers(t, "down", "s3")
	stranger, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first))
	require.NoError(t, err)
	defer stranger.Close()
	one.servers(t, "up", "s3")
	assert.NotEqual(t, first, one.port(t))
}
