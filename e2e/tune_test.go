package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

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
	d := newDatabase(t, postgres)
	file := filepath.Join(t.TempDir(), "tune.jsonl")
	i, state := tune(t, d.target(), append(tiny(), "--record", file, "--set", "work_mem=8MB", "--set", "app.password=hunter2 it's")...)
	r := i.run(t).ends(t, 0)
	r.says(t, "warm-up, ")
	isEmpty(t, state)
	assert.Regexp(t, `(?m)^enough +\d workers?, batches of 16KiB: [\d,]+ rows/s, .* of the best$`, r.stdout)

	kept, err := results.Read(file)
	require.NoError(t, err)
	require.NotEmpty(t, kept.Entries)
	hides(t, "hunter2", r.all(), everythingIn(t, filepath.Dir(file)))
	assert.Contains(t, run(t, "report", file).ends(t, 0).stdout, "Workers and batch size")

	found := regexp.MustCompile(`(?m)^use: terapush (push .+)$`).FindStringSubmatch(r.stdout)
	require.NotNil(t, found, r.stdout)
	runAgain(t, found[1]+" --rows 3000").ends(t, 0)
	assert.EqualValues(t, 3000, d.number(t, "SELECT count(*) FROM documents"), "the printed command recreates the table")
	assert.Zero(t, d.claims())
}

// A killed search leaves runs that the next one of the same table forgets.
func TestTuneIsKilled(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{postgres}, func(t *testing.T, d *database) {
		i, state := tune(t, d.target(), "--trial", "1h", "--workers", "2", "--max-rate", "200KiB/s")
		p := i.start(t)
		p.until(t, "a trial's run", func() bool {
			runs, _ := filepath.Glob(filepath.Join(state, ".tune-*", "*", "run.json"))
			return len(runs) == 1
		})
		i.run(t).ends(t, 5).says(t, "another process makes trials of the same table")
		p.kill(t)
		again := invocation{args: append([]string{"tune", d.target(), "--state-dir", state, "--payload-bytes", "100"}, tiny()...)}
		again.run(t).ends(t, 0)
		isEmpty(t, state)
		assert.Zero(t, d.claims(), "what the killed process left is forgotten")
	})
}
