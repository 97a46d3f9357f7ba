package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A run of the user's own dataset, which has every type and NULLs, needs its file once: killed, it goes on without it.
func TestOwnDataset(t *testing.T) {
	t.Parallel()
	onServers(t, sqlServers(), func(t *testing.T, d *database) {
		l := ownLoad(t, 12_000, 200)
		once := l
		once.dataset = filepath.Join(t.TempDir(), "mine.yaml")
		text, err := os.ReadFile(own)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(once.dataset, text, 0o600))

		p := d.push(once.flags("--workers", "4", "--max-rate", "512KiB/s", "--method", d.exact(), "--verify", "full")...).start(t)
		d.untilClaims(t, p, 10)
		p.kill(t)
		require.NoError(t, os.Remove(once.dataset))

		is := reportOf(t, d.resume(t, "--max-rate", "1GiB/s").run(t).ends(t, 0))
		assert.Equal(t, []any{true, true, l.rows}, []any{is.Run.Resumed, is.Verify.OK, is.Result.Rows})
		assert.Regexp(t, "^own [0-9a-f]{16}$", is.Plan.Dataset)
		d.isExact(t, l)
	})
}
