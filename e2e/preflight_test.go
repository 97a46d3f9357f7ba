package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// fails runs a push that has to stop before it writes anything: exit 5, with one clear message.
func (i invocation) fails(t *testing.T, says ...string) result {
	t.Helper()
	r := i.run(t).ends(t, 5).says(t, says...)
	assert.Equal(t, 1, strings.Count(r.stderr, "terapush: "), "one message: %s", r.stderr)
	assert.Equal(t, "preflight_failed", string(reportOf(t, r).Result.Outcome))
	return r
}

// A run that cannot be kept drops nothing.
func TestRecreateWithAFullStateDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	d, l := newDatabase(t, postgres), small(2000)
	d.push(l.flags()...).run(t).ends(t, 0)
	d.state = t.TempDir()
	mount(t, d.state, "mode=755,size=1m")
	t.Cleanup(func() { _ = exec.Command("umount", "-l", d.state).Run() })
	fillDisk(t, filepath.Join(d.state, ".ballast"), 4096)
	for _, create := range []string{"recreate", "truncate"} {
		r := d.push(l.flags("--create", create, "--seed", "2")...).run(t).ends(t, 5)
		r.says(t, "the state folder, without which a run cannot be resumed", "no space left on device", "choose another --state-dir")
		d.isExact(t, l)
	}
	assert.Empty(t, d.runs(t))
}
