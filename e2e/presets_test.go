package e2e_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/standin/doris"
)

// Every preset that a server here can take runs to its report: at scale ci beside all other tests, and in a soak at scale
// laptop, one after the other, so that their figures are worth a look.
func TestPresets(t *testing.T) {
	short := func(flags ...string) []string { return scaled(flags, nil) } // a report needs few rows
	if !soak() {
		t.Parallel()
	}
	for preset, on := range map[string]func(t *testing.T) (d *database, flags, env []string){
		"yugabyte-rows-per-transaction": func(t *testing.T) (*database, []string, []string) {
			return newDatabase(t, postgres), short("--duration", "500ms"), nil
		},
		"singlestore-terabyte": func(t *testing.T) (*database, []string, []string) { return newDatabase(t, mariaDB), nil, nil },
		"databend-four-methods": func(t *testing.T) (*database, []string, []string) {
			d := newEngine(t) // whose own stages have no presigned URLs, which method insert wants
			return d, append(short("--rows", "5000"), "--stage", d.stage(t, newFolder(t))), nil
		},
		"databend-copy-cluster": func(t *testing.T) (*database, []string, []string) {
			return newEngine(t), short("--rows", "5000"), nil
		},
		"doris-group-commit": func(t *testing.T) (*database, []string, []string) {
			return newCluster(t, doris.Options{}).database, short("--duration", "500ms"), knowing(invocation{}).env
		},
	} {
		t.Run(preset, func(t *testing.T) {
			if !soak() {
				t.Parallel()
			}
			dir := t.TempDir()
			file := filepath.Join(dir, "record.jsonl")
			d, flags, env := on(t)
			args := append([]string{"sweep", d.target(), "--preset", preset, "--scale", scaled("ci", "laptop"), "--record", file,
				"--state-dir", filepath.Join(dir, "state"), "--report", filepath.Join(dir, "page.html")}, flags...)
			p := invocation{args: args, env: env}.start(t)
			select {
			case <-p.done:
			case <-time.After(15 * time.Minute):
				require.Fail(t, "the preset does not end", p.stderr.String())
			}
			r := p.wait(t).ends(t, 0)
			t.Logf("%s\n%s", r.took, r.stdout)
			assert.Contains(t, r.stdout, "published", "what was published stands beside")

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
		})
	}
}
