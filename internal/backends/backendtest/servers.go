package backendtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Server returns the URL of a real server out of the environment. Without it the test is skipped, and in CI it fails.
func Server(t testing.TB, variable string) string {
	t.Helper()
	url := os.Getenv(variable)
	if advice := variable + ` is not set: run scripts/servers up (TiDB's program is built by scripts/servers tidb) and ` +
		`eval "$(scripts/servers env)"`; url == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal(advice)
		}
		t.Skip(advice)
	}
	return url
}

// Long skips a test that keeps both cores busy for seconds, except in make test and in CI.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("TERAPUSH_TEST_LONG") == "" && os.Getenv("CI") != "true" {
		t.Skip("it takes long: set TERAPUSH_TEST_LONG=1, as make test does")
	}
}

// Scratch starts a small server of the test's own, a kind of scripts/servers, and returns its URL. The test runs in the
// folder of a back-end.
func Scratch(t testing.TB, kind string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "terapush-doctor-") // t.TempDir's is closed to the server's user
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755)) //nolint:gosec // for the same reason
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	script := func(args ...string) string {
		out, err := exec.Command("../../../scripts/servers", args...).CombinedOutput()
		require.NoError(t, err, "scripts/servers %s: %s", args, out)
		return string(out)
	}
	home := filepath.Join(dir, "server")
	t.Cleanup(func() { script("scratch-kill", home) })
	return regexp.MustCompile(kind + `://\S+`).FindString(script("scratch", kind, home))
}
