package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
)

// nobody is the user and group that own nothing.
const nobody = 65534

// The two-command start: a real PostgreSQL is fetched, filled, proven and gone again.
func TestDemo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		attr *syscall.SysProcAttr
	}{
		{"as the caller", nil},
		{"as an ordinary user", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.attr != nil {
				backendtest.Long(t)
			}
			if c.attr != nil && os.Geteuid() != 0 {
				t.Skip("only root can become another user, and the caller is an ordinary one already")
			}
			home := openFolder(t)
			i := invocation{args: []string{"demo", "--bytes", scaled("16MiB", "1GiB")}, env: []string{"HOME=" + home}, attr: c.attr}
			program := binary
			if c.attr != nil {
				content, err := os.ReadFile(binary)
				require.NoError(t, err)
				program = writeProgram(t, home, content) // where every user may run it
				require.NoError(t, os.Chown(home, nobody, nobody))
			}
			r := startCommand(t, i, program, i.args...).wait(t)
			if r.code != 0 && strings.Contains(r.stderr, "cannot fetch PostgreSQL") {
				missing(t, "Maven Central cannot be reached: %s", r.stderr)
			}
			r.ends(t, 0)
			assert.Contains(t, r.stdout, "\nverify ok")
			t.Logf("%s\n%s", r.took, r.stdout)
			assert.Empty(t, leftServers(t, home), "no server of the demo is left")
			if c.attr != nil || os.Geteuid() != 0 { // root's demos have one folder, where a real one may be
				quickStart(t, i, program, home)
			}
		})
	}
}

// quickStart is README's: a server that is kept, what its two lines of exports are for, and its end.
func quickStart(t *testing.T, i invocation, program, home string) {
	i.env = append(i.env, "XDG_STATE_HOME="+filepath.Join(home, "state"))
	terapush := func(args ...string) result { return startCommand(t, i, program, args...).wait(t).ends(t, 0) }
	t.Cleanup(func() { terapush("demo", "--stop") })
	kept := terapush("demo", "--bytes", "1MiB", "--keep")
	exports := regexp.MustCompile(`(?m)^export (DATABASE_URL|TERAPUSH_PASSWORD)='?([^'\n]*)'?$`)
	lines := exports.FindAllStringSubmatch(kept.stdout, -1)
	require.Len(t, lines, 2, kept.stdout)
	url, password := lines[0][2], lines[1][2]
	assert.NotContains(t, url, password)
	i.env = append(i.env, "TERAPUSH_PASSWORD="+password)
	r := terapush("push", url, "--table", "events", "--bytes", "1MiB", "--workers", "4", "--verify", "full")
	assert.NotContains(t, r.stderr, "password")
	terapush("doctor", url)
	assert.Contains(t, terapush("demo", "--stop").stdout, "1 server stopped and removed")
	assert.Empty(t, leftServers(t, home))
	left, err := filepath.Glob(filepath.Join(home, ".cache/terapush/postgres/server-*"))
	require.NoError(t, err)
	assert.Empty(t, left, "data of the demo")
}

// writeProgram writes what can be run as terapush. A child that another test starts meanwhile would inherit the open file,
// and the kernel runs none that is open for writing ("text file busy").
func writeProgram(t *testing.T, folder string, content []byte) string {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	path := filepath.Join(folder, "terapush")
	require.NoError(t, os.WriteFile(path, content, 0o755))
	return path
}

// leftServers lists the PostgreSQL processes whose program or data lies where a demo of ours keeps them.
func leftServers(t *testing.T, home string) []string {
	t.Helper()
	out, err := exec.Command("ps", "-eo", "pid,args").Output()
	require.NoError(t, err)
	var left []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, home) && strings.Contains(line, "postgres") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	return left
}
