package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/faultproxy"
)

// What happens to a file while it is loaded stops the load with its name, and what is in stays in. Once it is there as it
// was, the load goes on.
func TestFilesThatChangeDuringALoad(t *testing.T) {
	t.Parallel()
	type change func(t *testing.T, path string)
	for name, c := range map[string]struct {
		says   string
		change change
	}{
		"removed":     {"b.csv has changed: it is gone", func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) }},
		"shorter":     {"b.csv has changed: it", func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 30_000)) }},
		"a folder":    {"b.csv has changed: something else is in its place", replaceByFolder},
		"not allowed": {"b.csv: permission denied", hide},
		"replaced": {"b.csv has changed: its first or last 64 KiB", func(t *testing.T, path string) {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), "2026-", "2025-")), 0o600))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onServers(t, []kind{postgres}, func(t *testing.T, d *database) {
				want := records(3000)
				d.makeRecordTable(t)
				half := len(want) / 2
				dir := t.TempDir()
				a, b := filepath.Join(dir, "a.csv"), filepath.Join(dir, "b.csv")
				require.NoError(t, os.WriteFile(a, []byte(csv(want[:half])), 0o600))
				require.NoError(t, os.WriteFile(b, []byte(csv(want[half:])), 0o600))

				p := d.loads(d.target(), a, b, "--table", "orders", "--header", "--batch-bytes", "8KiB", "--workers", "1", "--max-rate", "40KiB/s").start(t)
				d.untilClaims(t, p, 2)
				c.change(t, b)
				p.wait(t).ends(t, 1).says(t, c.says, "to resume: terapush load")
				in := d.number(t, "SELECT COUNT(*) FROM orders")
				d.loads(d.target(), "--resume", "last").run(t).ends(t, 5).says(t, c.says)
				assert.Equal(t, in, d.number(t, "SELECT COUNT(*) FROM orders"))

				require.NoError(t, os.RemoveAll(b))
				require.NoError(t, os.WriteFile(b, []byte(csv(want[half:])), 0o600))
				d.loads(d.target(), "--resume", "last", "--max-rate", "1GiB/s").run(t).ends(t, 0)
				d.holdsRecords(t, want)
			})
		})
	}
}

func replaceByFolder(t *testing.T, path string) {
	require.NoError(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o700)))
}

func hide(t *testing.T, path string) {
	if os.Geteuid() == 0 {
		t.Skip("root may read every file")
	}
	require.NoError(t, os.Chmod(path, 0))
}

// An object that is gone is named, and nothing of it is guessed.
func TestObjectsThatVanish(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{postgres}, func(t *testing.T, d *database) {
		want := records(3000)
		d.makeRecordTable(t)
		store := newFolder(t)
		key := store.prefix + "/in/a.csv"
		store.put(t, key, csv(want))
		flags := []string{"--table", "orders", "--header", "--batch-bytes", "8KiB", "--workers", "1", "--max-rate", "40KiB/s"}
		p := d.loads(d.target(), append(flags, store.target(below("in/")))...).start(t)
		d.untilClaims(t, p, 2)
		p.kill(t)

		_, err := store.sdk.DeleteObject(context.Background(), &s3.DeleteObjectInput{Bucket: &store.bucket, Key: &key})
		require.NoError(t, err)
		d.loads(d.target(), "--resume", "last").run(t).ends(t, 5).says(t, "in/a.csv has changed: it is gone")
		store.put(t, key, csv(want))
		d.loads(d.target(), "--resume", "last", "--max-rate", "1GiB/s").run(t).ends(t, 0)
		d.holdsRecords(t, want)
	})
}

// A record is left out only if it is kept: a full disk stops the load.
func TestFilesOnAFullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	onServers(t, []kind{postgres}, func(t *testing.T, d *database) {
		want := records(3000)
		d.makeRecordTable(t)
		var given []record
		for _, r := range want {
			bad := append(record{}, r...)
			wrong := "not a number"
			bad[2] = &wrong
			given = append(given, r, bad)
		}
		disk := openFolder(t)
		mount(t, disk, "mode=755,size=64k")
		t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
		name, rejects := filepath.Join(t.TempDir(), "a.csv"), filepath.Join(disk, "refused.jsonl")
		require.NoError(t, os.WriteFile(name, []byte(csv(given)), 0o600))
		flags := []string{"--table", "orders", "--header", "--batch-bytes", "8KiB", "--workers", "2"}

		i := d.loads(d.target(), append(flags, name, "--rejects", rejects, "--max-rejects", "10000")...)
		i.run(t).ends(t, 1).says(t, "keeping rejected records, without which their batch is not sent", "no space left on device")
		mount(t, disk, "remount,size=10m")
		d.loads(d.target(), "--resume", "last").run(t).ends(t, 3)
		d.holdsRecords(t, want)

		text, err := os.ReadFile(rejects)
		require.NoError(t, err)
		kept := map[int64]bool{}
		for line := range strings.Lines(string(text)) {
			var r struct{ Line int64 }
			require.NoError(t, json.Unmarshal([]byte(line), &r), line)
			kept[r.Line] = true
		}
		assert.Len(t, kept, len(want))
	})
}

// The second signal does not wait for a server that says nothing, and leaves a load that goes on.
func TestTwoSignalsDuringALoad(t *testing.T) {
	eachServer(t, func(t *testing.T, d *database) {
		want := records(6000)
		d.makeRecordTable(t)
		name := filepath.Join(t.TempDir(), "a.csv")
		require.NoError(t, os.WriteFile(name, []byte(csv(want)), 0o600))
		silent := &faultproxy.Fault{Action: faultproxy.Stall, Bytes: 100_000}
		through := through(d.proxy(t, silent).Addr())
		p := d.loads(d.target(through), name, "--table", "orders", "--header", "--batch-bytes", "8KiB", "--workers", "2", "--tls", "off").start(t)
		p.until(t, "the stall", func() bool { return silent.Injected() > 0 })
		p.signal(t, syscall.SIGINT)
		time.Sleep(time.Second) // one that comes right behind the first is taken for the same
		require.True(t, p.running(), "the first signal waits for what is on its way")
		p.signal(t, syscall.SIGINT)
		is := reportOf(t, p.wait(t).ends(t, 130))
		assert.True(t, is.Run.Resumable)

		d.loads(d.target(), "--resume", d.run(t)).run(t).ends(t, 0)
		d.holdsRecords(t, want)
	})
}
