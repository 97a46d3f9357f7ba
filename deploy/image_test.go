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
)

// user is the number in the Dockerfile.
const user = "65532:65532"

func TestImage(t *testing.T) {
	needs(t, os.Geteuid() == 0, "buildah needs root here")
	_, err := exec.LookPath("buildah")
	needs(t, err == nil, "buildah is not installed: scripts/tools buildah")
	s := newStore(t)

	image := s.run(checkout(t)+"/scripts/image", "localhost/terapush:test")
	require.Equal(t, "localhost/terapush:test", image)
	config := func(field string) string {
		return s.buildah("inspect", "--type", "image", "--format", "{{.OCIv1.Config."+field+"}}", image)
	}
	require.Equal(t, user, config("User"))
	require.Equal(t, "[/terapush]", config("Entrypoint"))

	container := s.buildah("from", image)
	root := s.buildah("mount", container)
	require.ElementsMatch(t, []string{"terapush", "state", "state/.keep", "tmp", "tmp/.keep"}, filesIn(t, root))

	terapush := func(args ...string) string {
		return s.buildah(append([]string{"run", "--isolation", "chroot", container, "--", "/terapush"}, args...)...)
	}
	require.Regexp(t, `^terapush \S+ `, terapush("version"))
	summary := terapush("push", "discard://", "--bytes", "8MiB", "--verify", "ack", "--progress", "none")
	require.Contains(t, summary, "\nverify ok: ack")

	// What the push has written says as whom it ran, and that it could: its journal.
	journals, err := filepath.Glob(filepath.Join(root, "state/terapush/*/journal.jsonl"))
	require.NoError(t, err)
	require.Len(t, journals, 1)
	info, err := os.Stat(journals[0])
	require.NoError(t, err)
	require.EqualValues(t, 65532, info.Sys().(*syscall.Stat_t).Uid)
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

// checkout makes a folder with what the image is made from and a binary of its own: bin/terapush may be an old one, or
// one that somebody has built in another way.
func checkout(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range []string{"Dockerfile", ".dockerignore", "scripts/image", "deploy/image"} {
		to := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		out, err := exec.Command("cp", "-R", filepath.Join("..", name), to).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "bin/terapush"), "../cmd/terapush")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return dir
}
