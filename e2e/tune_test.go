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

func isEmpty(t *testing.T, folder string) {
	t.Helper()
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left)
}

// Tiny trials say little about a server, but the search comes to its end.
func TestTune(t *testing.T) {
	t.Parallel()
	d := newDatabase(t, postgres)
	file := filepath.Join(t.TempDir(), "tune.jsonl")
	r := run(t, "tune", d.target(), "--state-dir", d.state, "--record", file, "--payload-bytes", "100", "--rows", "2000",
		"--batch-bytes", "16KiB", "--max-workers", "4", "--tolerance", "60%", "--set", "work_mem=8MB", "--set", "app.password=hunter2 it's").ends(t, 0)
	r.says(t, "warm-up, ")
	isEmpty(t, d.state)
	assert.Regexp(t, `(?m)^enough +\d workers?, batches of 16KiB: [\d,]+ rows/s, .* of the best$`, r.stdout)

	kept, err := results.Read(file)
	require.NoError(t, err)
	require.NotEmpty(t, kept.Entries)
	hides(t, "hunter2", r.all(), everythingIn(t, filepath.Dir(file)))
	assert.Contains(t, run(t, "report", file).ends(t, 0).stdout, "Workers and batch size")

	assert.Zero(t, d.claims(), "the trials' are forgotten")
	found := regexp.MustCompile(`(?m)^use: terapush (push .+)$`).FindStringSubmatch(r.stdout)
	require.NotNil(t, found, r.stdout)
	runAgain(t, found[1]+" --rows 3000").ends(t, 0)
	assert.EqualValues(t, 3000, d.number(t, "SELECT count(*) FROM documents"), "the printed command recreates the table")
}
