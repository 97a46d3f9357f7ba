package command_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
)

// A module of somebody else's imports what pkg/ has and nothing besides, and gets the whole command line.
func TestBackEndOfAnotherModule(t *testing.T) {
	backendtest.Long(t)
	binary := build(t, "testdata/folder")
	run := func(args ...string) string {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), "TERAPUSH_STATE_DIR="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	require.Contains(t, run("list"), "\nfolder    folder\n")
	require.Contains(t, run("help", "methods"), "--prefix string")
	require.Contains(t, run("push", "folder:///somewhere", "--dataset", "people", "--dry-run"), "write a file in /somewhere")

	dir := t.TempDir()
	run("push", "folder://"+dir, "--rows", "1000", "--batch-rows", "300", "--dataset", "people", "--progress", "none",
		"--prefix", "people-")
	files, err := filepath.Glob(filepath.Join(dir, "people-*.csv"))
	require.NoError(t, err)
	require.Len(t, files, 4)
	rows := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		rows += bytes.Count(text, []byte("\n"))
	}
	require.Equal(t, 1000, rows)
}

// build builds a copy of the module with this checkout in place of a release, and with this module's sums.
func build(t *testing.T, module string) string {
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(module)))
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600))

	binary := filepath.Join(dir, "program")
	for _, args := range []string{"mod edit -replace github.com/terapush/terapush=" + root, "build -mod=mod -o " + binary + " ."} {
		cmd := exec.Command("go", strings.Fields(args)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %s: %s", args, out)
	}
	return binary
}
