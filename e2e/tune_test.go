package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
)

// tune is a search of tiny trials with a state folder of its own.
func tune(t *testing.T, target string, args ...string) (invocation, string) {
	state := filepath.Join(t.TempDir(), "state")
	return invocation{args: append([]string{"tune", target, "--state-dir", state, "--payload-bytes", "100"}, args...)}, state
}

func isEmpty(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

// tiny trials say little about a server, but the search comes to its end.
func tiny() []string {
	return []string{"--rows", "2000", "--batch-bytes", "16KiB", "--max-workers", "4"}
}

func TestTune(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, target string, more ...string) {
		file := filepath.Join(t.TempDir(), "tune.jsonl")
		i, state := tune(t, target, append(append(tiny(), "--record", file), more...)...)
		r := i.run(t).ends(t, 0)
		r.says(t, "warm-up, ")
		isEmpty(t, state)
		require.NotContains(t, r.all(), "hunter2")
		assert.Regexp(t, `(?m)^enough +\d workers?, batches of 16KiB: [\d,]+ rows/s, .* of the best$`, r.stdout)

		kept, err := results.Read(file)
		require.NoError(t, err)
		require.NotEmpty(t, kept.Entries)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(text), "hunter2")
		assert.Contains(t, invocation{args: []string{"report", file}}.run(t).ends(t, 0).stdout, "Workers and batch size")

		found := regexp.MustCompile(`(?m)^use: terapush (push .+)$`).FindStringSubmatch(r.stdout)
		require.NotNil(t, found, r.stdout)
		runAgain(t, found[1]+" --rows 3000").ends(t, 0)
	}
	t.Run("discard", func(t *testing.T) { check(t, "discard://") })
	onServers(t, []kind{postgres}, func(t *testing.T, d *database) {
		check(t, d.target(), "--set", "work_mem=8MB", "--set", "app.password=hunter2 it's")
		assert.EqualValues(t, 3000, d.number(t, "SELECT count(*) FROM documents"), "the printed command makes the table anew")
		assert.Zero(t, d.claims())
	})
}

// Tables of others are left alone.
func TestTuneOfATableOfOthers(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{postgres}, func(t *testing.T, d *database) {
		d.createTable(t, "documents", "")
		i, state := tune(t, d.target(), tiny()...)
		r := i.run(t).ends(t, 5)
		assert.Equal(t, 1, strings.Count(r.stderr, "terapush: "), r.stderr)
		assert.Empty(t, r.stdout)
		isEmpty(t, state)
	})
}

func TestTuneWithoutAServer(t *testing.T) {
	t.Parallel()
	i, state := tune(t, "postgres://u@127.0.0.1:"+freePort(t)+"/db")
	r := i.run(t).ends(t, 5)
	r.says(t, "terapush: the target cannot be reached: ")
	assert.Empty(t, r.stdout)
	isEmpty(t, state)
}

// The first signal drains the trial under way and forgets it; what is known so far is printed.
func TestTuneIsStopped(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{postgres}, func(t *testing.T, d *database) {
		i, state := tune(t, d.target(), "--trial", "500ms", "--batch-bytes", "16KiB", "--max-rate", "200KiB/s")
		p := i.start(t)
		require.Eventually(t, func() bool { return strings.Count(p.stderr.String(), "rows/s") >= 3 }, time.Minute, 5*time.Millisecond)
		p.signal(t, syscall.SIGINT)
		r := p.wait(t).ends(t, 130)
		assert.Contains(t, r.stdout, "the search was stopped by a signal: the search is incomplete")
		assert.Contains(t, r.stdout, "\nuse: terapush push ")
		isEmpty(t, state)
		assert.Zero(t, d.claims())
	})
}

// A killed search leaves runs that the next one of the same table forgets.
func TestTuneIsKilled(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{postgres}, func(t *testing.T, d *database) {
		i, state := tune(t, d.target(), "--trial", "1h", "--workers", "2", "--max-rate", "200KiB/s")
		p := i.start(t)
		require.Eventually(t, func() bool {
			runs, _ := filepath.Glob(filepath.Join(state, ".tune-*", "*", "run.json"))
			return len(runs) == 1
		}, time.Minute, 5*time.Millisecond)
		i.run(t).ends(t, 5).says(t, "another process makes trials of the same table")
		_ = p.Process.Kill()
		<-p.done
		again := invocation{args: append([]string{"tune", d.target(), "--state-dir", state, "--payload-bytes", "100"}, tiny()...)}
		again.run(t).ends(t, 0)
		isEmpty(t, state)
		assert.Zero(t, d.claims(), "what the killed process left is forgotten")
	})
}
