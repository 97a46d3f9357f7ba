// Package deploy_test checks what deploy/ and the Dockerfile ship: that the image starts, as nobody in particular, and
// that dashboards and alerts ask for metrics that exist.
package deploy_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
)

// user is the number in the Dockerfile.
const user = "65532:65532"

func TestImage(t *testing.T) {
	backendtest.Long(t)
	needs(t, os.Geteuid() == 0, "buildah needs root here")
	_, err := exec.LookPath("buildah")
	needs(t, err == nil, "buildah is not installed: scripts/tools buildah")
	s := newStore(t)

	image := s.run(checkout(t, "bin/terapush", "CGO_ENABLED=0")+"/scripts/image", "localhost/terapush:test")
	require.Equal(t, "localhost/terapush:test", image)
	container, root := s.container(image)
	require.ElementsMatch(t, []string{"terapush", "state", "state/.keep", "tmp", "tmp/.keep"}, filesIn(t, root))
	version := strings.Fields(s.terapush(container, "version"))
	require.Contains(t, s.config(image, "Labels"), "org.opencontainers.image.version:"+version[1])
	s.pushes(container, root)
}

// The image with godror has a libc and what Oracle's library asks for besides, but not Oracle's library: that is nobody's
// to pass on. Without it everything else works, and with one in the folder that is meant for it, it is found.
func TestGodrorImage(t *testing.T) {
	backendtest.Long(t)
	needs(t, os.Geteuid() == 0, "buildah needs root here")
	for tool, install := range map[string]string{"buildah": "scripts/tools buildah", "gcc": "it compiles godror"} {
		_, err := exec.LookPath(tool)
		needs(t, err == nil, tool+" is not installed: "+install)
	}
	s := newStore(t)

	image := s.run(checkout(t, "bin/terapush-godror", "CGO_ENABLED=1", "-tags", "godror")+"/scripts/image", "godror", "localhost/terapush:test-godror")
	require.Equal(t, "localhost/terapush:test-godror", image)
	container, root := s.container(image)
	require.Subset(t, filesIn(t, root), []string{"terapush", "state", "tmp", "opt/oracle/instantclient", "etc/passwd"})
	require.Regexp(t, `(?m)^drivers .*godror v`, s.terapush(container, "version"))
	s.pushes(container, root)

	require.Contains(t, s.oracle(container), "Instant Client")
	s.standIn(filepath.Join(root, "opt/oracle/instantclient"))
	// The dynamic linker was content with the stand-in and all that it wants. There are no functions in it, which is what
	// makes a library look too old.
	require.Contains(t, s.oracle(container), "DPI-1072")
}

// container makes one of an image, and mounts what it sees.
func (s *store) container(image string) (name, root string) {
	require.Equal(s.t, user, s.config(image, "User"))
	require.Equal(s.t, "[/terapush]", s.config(image, "Entrypoint"))
	require.Contains(s.t, s.config(image, "Labels"), "org.opencontainers.image.source:https://")
	name = s.buildah("from", image)
	return name, s.buildah("mount", name)
}

func (s *store) config(image, field string) string {
	return s.buildah("inspect", "--type", "image", "--format", "{{.OCIv1.Config."+field+"}}", image)
}

func (s *store) terapush(container string, args ...string) string {
	return s.buildah(append([]string{"run", "--isolation", "chroot", container, "--", "/terapush"}, args...)...)
}

// pushes lets the container push something, and looks at what that has written.
func (s *store) pushes(container, root string) {
	summary := s.terapush(container, "push", "discard://", "--bytes", "8MiB", "--verify", "ack", "--progress", "none")
	require.Contains(s.t, summary, "\nverify ok: ack")

	// What the push has written says as whom it ran, and that it could: its journal.
	journals, err := filepath.Glob(filepath.Join(root, "state/terapush/*/journal-*.jsonl"))
	require.NoError(s.t, err)
	require.NotEmpty(s.t, journals)
	info, err := os.Stat(journals[0])
	require.NoError(s.t, err)
	require.EqualValues(s.t, 65532, info.Sys().(*syscall.Stat_t).Uid)
}

// oracle is what a push to Oracle says that cannot connect.
func (s *store) oracle(container string) string {
	cmd := exec.Command("buildah", "--storage-driver", "vfs", "run", "--isolation", "chroot", container, "--",
		"/terapush", "push", "oracle://scott:tiger@127.0.0.1:1/s", "--rows", "1", "--progress", "none")
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(s.t, err, &exit, "%s", out)
	require.Equal(s.t, 5, exit.ExitCode(), "%s", out)
	require.NotContains(s.t, string(out), "tiger")
	return string(out)
}

// standIn makes a library of the name of Oracle's that asks for the same others.
func (s *store) standIn(folder string) {
	dir := s.t.TempDir()
	source := filepath.Join(dir, "empty.c")
	require.NoError(s.t, os.WriteFile(source, nil, 0o600))
	// Linked with a libaio that has the old name whatever this machine calls its own.
	aio := filepath.Join(dir, "libaio.so.1")
	s.run("gcc", "-shared", "-o", aio, "-Wl,-soname,libaio.so.1", source)
	s.run("gcc", "-shared", "-o", filepath.Join(folder, "libclntsh.so"), source, "-Wl,--no-as-needed", aio,
		"-lm", "-ldl", "-lpthread", "-lrt", "-lresolv")
}

// needs skips the test where something is missing, and fails it in CI, which has to provide it.
func needs(t *testing.T, there bool, missing string) {
	t.Helper()
	if there {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

// store is a container storage of its own, so that the test neither sees nor leaves anybody's images.
type store struct {
	t   *testing.T
	env []string
}

func newStore(t *testing.T) *store {
	dir := t.TempDir()
	conf := filepath.Join(dir, "storage.conf")
	text := "[storage]\ndriver = \"vfs\"\ngraphroot = \"" + dir + "/root\"\nrunroot = \"" + dir + "/run\"\n"
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	s := &store{t: t, env: append(os.Environ(), "CONTAINERS_STORAGE_CONF="+conf)}
	t.Cleanup(func() { s.buildah("rm", "--all") }) // which also unmounts what would keep the folder from being removed
	return s
}

func (s *store) buildah(args ...string) string {
	return s.run("buildah", append([]string{"--storage-driver", "vfs"}, args...)...)
}

// run returns what a command prints to stdout.
func (s *store) run(name string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = s.env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(s.t, err, "%s\n%s%s", cmd, out, &stderr)
	return strings.TrimSpace(string(out))
}

func filesIn(t *testing.T, root string) (all []string) {
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(root, path); name != "." {
			all = append(all, name)
		}
		return err
	}))
	return all
}

// checkout makes a folder with what the image is made from and a binary of its own: the one in bin may be old, or somebody
// has built it in another way.
func checkout(t *testing.T, binary, cgo string, flags ...string) string {
	dir := t.TempDir()
	for _, name := range []string{"Dockerfile", ".dockerignore", "scripts/image", "deploy/image", "deploy/godror"} {
		to := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		out, err := exec.Command("cp", "-R", filepath.Join("..", name), to).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	// With make's flags, as e2e has them, so that nothing is compiled once more; a binary without symbols is linked faster.
	args := append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, binary)}, flags...)
	build := exec.Command("go", append(args, "../cmd/terapush")...)
	build.Env = append(os.Environ(), cgo)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}
