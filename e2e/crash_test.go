package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The server dies in the middle of a run and comes back: the same process continues, however few retries it has. An unlogged table is empty then, and so are
// its claims: nothing may be taken for done.
func TestServerCrash(t *testing.T) {
	t.Parallel()
	s := newScratch(t, postgres)
	d := s.database(t)
	l := small(scaled[int64](15_000, 400_000))
	p := d.push(l.flags("--workers", "4", "--max-rate", "500KiB/s", "--retries", "0", "--verify", "full", "--unlogged")...).start(t)
	p.until(t, "a third", func() bool { return d.claimsIn("terapush_claims_unlogged") >= l.batches()/3 })
	s.kill(t)
	require.True(t, p.running())
	s.up(t)
	r := p.wait(t).ends(t, 0)
	is := reportOf(t, r)
	proven(t, is, l.rows)
	assert.Positive(t, is.Result.Retries)
	r.says(t, "the server is away", "the server is back")
	assert.Regexp(t, `the server lost \d+ batches that it had acknowledged`, r.all())
	d.isExact(t, l)
}

// The server's disk is full: its words, a run that can be resumed, and after making room the exact rows.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	for k, with := range map[kind]struct {
		room  int64 // PostgreSQL takes a part of it for its log, which must not be what stops it
		words string
	}{
		postgres: {150 << 20, "No space left on device"},
		mariaDB:  {50 << 20, "is full"},
	} {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel()
			dir := openFolder(t)
			smallDisk(t, dir)
			s := scratchIn(t, k, dir)
			d := s.database(t)
			fillDisk(t, filepath.Join(dir, "ballast"), with.room)

			l := small(220_000)
			l.payload, l.batchRows = 512, 1000
			r := d.push(l.flags("--workers", "4", "--retries", "2")...).run(t).ends(t, 1)
			r.says(t, with.words, "make room on the server", "--resume")

			mount(t, dir, "remount,size=1g")
			s.up(t) // in case the full disk was too much for it
			d.resume(t, "--verify", "full").run(t).ends(t, 0)
			d.isExact(t, l)
		})
	}
}

// smallDisk mounts a disk of 400 MB.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	mount(t, dir, "mode=755,size=400m")
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
}

func mount(t *testing.T, dir, options string) {
	t.Helper()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "terapush-e2e", dir).CombinedOutput(); err != nil {
		missing(t, "no mounts here: %v: %s", err, strings.TrimSpace(string(out)))
	}
}

// fillDisk leaves so many bytes of a disk free.
func fillDisk(t *testing.T, path string, leave int64) {
	t.Helper()
	file, err := os.Create(path)
	require.NoError(t, err)
	defer file.Close()
	_, _ = file.Write(make([]byte, 1<<30)) // until there is no room
	info, err := file.Stat()
	require.NoError(t, err)
	require.Greater(t, info.Size(), leave, "the disk is too small already")
	require.NoError(t, file.Truncate(info.Size()-leave))
}
