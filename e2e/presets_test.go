package e2e_test

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/standin/doris"
)

// Every preset that a server here can take runs to its report: at scale ci beside all other tests, and in a soak at scale
// laptop, one after the other, so that their figures are worth a look. Of Oracle there is the dry run only.
func TestPresets(t *testing.T) {
	scale := scaled("ci", "laptop")
	beside := func(t *testing.T) {
		if !soak() {
			t.Parallel()
		}
	}
	beside(t)
	run := func(t *testing.T, preset string, target string, env []string, more ...string) {
		dir := t.TempDir()
		file := filepath.Join(dir, "record.jsonl")
		args := append([]string{"sweep", target, "--preset", preset, "--scale", scale, "--record", file,
			"--state-dir", filepath.Join(dir, "state"), "--report", filepath.Join(dir, "page.html")}, more...)
		p := invocation{args: args, env: env}.start(t)
		select {
		case <-p.done:
		case <-time.After(15 * time.Minute):
			require.Fail(t, "the preset does not end", p.stderr.String())
		}
		r := p.wait(t).ends(t, 0)
		t.Logf("%s\n%s", r.took, r.stdout)
		assert.Contains(t, r.stdout, "seed", "what was published stands beside")

		swept, err := results.Read(file)
		require.NoError(t, err)
		require.NotEmpty(t, swept.Entries)
		for _, e := range swept.Entries {
			assert.NotEqual(t, results.Failed, e.Status, "%v: %s", e.Settings, e.Error)
			if e.Status == results.Measured {
				assert.True(t, e.Report.Verify.OK, "%v", e.Settings)
			}
		}
		assert.FileExists(t, filepath.Join(dir, "page.html"))
		for _, format := range []string{"text", "markdown", "json", "csv", "bench", "svg"} {
			again := invocation{args: []string{"report", file, "--format", format}}.run(t).ends(t, 0)
			assert.NotEmpty(t, again.stdout, format)
		}
		invocation{args: []string{"compare", file, file, "--fail-if-slower", "5%"}}.run(t).ends(t, 0)
	}
	fewer := func(rows int) []string { return scaled([]string{"--rows", strconv.Itoa(rows)}, nil) }
	t.Run("yugabyte-rows-per-transaction on PostgreSQL", func(t *testing.T) {
		beside(t)
		d := newDatabase(t, postgres)
		run(t, "yugabyte-rows-per-transaction", d.target(), nil)
	})
	t.Run("singlestore-terabyte on MariaDB", func(t *testing.T) {
		beside(t)
		d := newDatabase(t, mariaDB)
		run(t, "singlestore-terabyte", d.target(), nil)
	})
	t.Run("databend-four-methods on the engine", func(t *testing.T) {
		beside(t)
		d := newEngine(t) // whose own stages have no presigned URLs, which method insert wants
		run(t, "databend-four-methods", d.target(), nil, append(fewer(8000), "--stage", d.stage(t, newFolder(t)))...)
	})
	t.Run("databend-copy-cluster on the engine", func(t *testing.T) {
		beside(t)
		d := newEngine(t)
		run(t, "databend-copy-cluster", d.target(), nil, fewer(10_000)...)
	})
	t.Run("doris-group-commit on the stand-in", func(t *testing.T) {
		beside(t)
		c := newCluster(t, doris.Options{})
		run(t, "doris-group-commit", c.target(), knowing(invocation{}).env)
	})
	t.Run("oracle-fast-ingest by dry run", func(t *testing.T) {
		beside(t)
		r := invocation{args: []string{"sweep", "oracle://bench@db.example/service", "--preset", "oracle-fast-ingest", "--scale", scale, "--dry-run"}}.run(t).ends(t, 0)
		assert.Contains(t, r.stdout, "fast")
	})
}
