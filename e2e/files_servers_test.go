package e2e_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The server dies in the middle of a load and comes back: the same process goes on.
func TestServerDiesDuringALoad(t *testing.T) {
	t.Parallel()
	for _, k := range []kind{postgres, mariaDB} {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			s := newScratch(t, k)
			d := s.database(t)
			want := records(12_000)
			d.makeRecordTable(t)
			name := filepath.Join(t.TempDir(), "a.csv")
			require.NoError(t, os.WriteFile(name, []byte(csv(want)), 0o600))
			p := d.loads(d.target(), name, "--table", "orders", "--header", "--batch-bytes", "8KiB", "--workers", "3",
				"--max-rate", "300KiB/s", "--retries", "0").start(t)
			d.untilClaims(t, p, 20)
			s.kill(t)
			require.True(t, p.running())
			s.up(t)
			r := p.wait(t).ends(t, 0)
			r.says(t, "the server is away", "the server is back")
			assert.True(t, reportOf(t, r).Verify.OK)
			d.holdsRecords(t, want)
		})
	}
}

// A batch that cannot be written down is not sent: a full state folder stops the load, and with room it goes on.
func TestStateFolderFullDuringALoad(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	onServers(t, []kind{postgres}, func(t *testing.T, d *database) {
		want := records(12_000)
		d.makeRecordTable(t)
		name := filepath.Join(t.TempDir(), "a.csv")
		require.NoError(t, os.WriteFile(name, []byte(csv(want)), 0o600))
		d.state = openFolder(t)
		mount(t, d.state, "mode=755,size=10m")
		t.Cleanup(func() { _ = syscall.Unmount(d.state, syscall.MNT_DETACH) })
		p := d.loads(d.target(), name, "--table", "orders", "--header", "--batch-bytes", "1KiB", "--workers", "2",
			"--max-rate", "300KiB/s").start(t)
		d.untilClaims(t, p, 20)
		fillDisk(t, filepath.Join(d.state, "ballast"), 0)
		p.wait(t).ends(t, 1).says(t, "no space left on device")

		require.NoError(t, os.Remove(filepath.Join(d.state, "ballast")))
		d.loads(d.target(), "--resume", "last", "--max-rate", "1GiB/s").run(t).ends(t, 0)
		d.holdsRecords(t, want)
	})
}
