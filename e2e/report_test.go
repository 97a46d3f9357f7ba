package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// save keeps what a push printed as a file.
func save(t *testing.T, dir, name string, r result) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(r.stdout), 0o644))
	return path
}

// Runs made by hand become a table along what differs between them, and equal runs are repeats.
func TestReportOfRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var files []string
	for _, c := range []struct{ name, workers string }{{"a.json", "1"}, {"b.json", "1"}, {"c.json", "1"}, {"d.json", "2"}} {
		r := run(t, "push", "discard://", "--rows", "20000", "--batch-rows", "1000", "--workers", c.workers, "--json", "--progress", "none",
			"--state-dir", filepath.Join(dir, "state")).ends(t, 0)
		files = append(files, save(t, dir, c.name, r))
	}
	text := run(t, append([]string{"report"}, files...)...).ends(t, 0)
	assert.Regexp(t, `(?m)^workers +rows/s +spread`, text.stdout)
	assert.Regexp(t, `(?m)^ *1 .*±`, text.stdout, "three repeats have a spread")
	assert.Regexp(t, `(?m)^ *2 .*\?`, text.stdout, "of one push no spread is known")
	assert.Contains(t, text.stdout, "such rates are this client's and no database's")
	assert.Equal(t, text.stdout, run(t, append([]string{"report"}, files...)...).ends(t, 0).stdout, "the same files give the same bytes")

	var tables struct {
		Schema string
		Tables []struct {
			Points []struct {
				Rows struct {
					N      int
					Values []float64
				} `json:"rows_per_second"`
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(run(t, append([]string{"report", "--format", "json"}, files...)...).ends(t, 0).stdout), &tables))
	require.Equal(t, "terapush.table/v1", tables.Schema)
	require.Len(t, tables.Tables[0].Points, 2)
	require.Len(t, tables.Tables[0].Points[0].Rows.Values, 3)

	bench := run(t, append([]string{"report", "--format", "bench"}, files...)...).ends(t, 0).stdout
	assert.Equal(t, 4, strings.Count(bench, "\nBenchmarkSweep/workers="))
	page := filepath.Join(dir, "report.html")
	run(t, append([]string{"report", "--out", page}, files...)...).ends(t, 0)
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(html), "<svg")

	same := run(t, "compare", files[0], files[0], "--fail-if-slower", "1%").ends(t, 0)
	assert.Contains(t, same.stdout, "no input differs")
	run(t, "compare", files[0], files[3]).ends(t, 0)
	assert.Contains(t, run(t, "compare", files[0], files[3]).stdout, "workers")
}

func TestReportRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	bad := writeFile(t, "this is no record\n")
	r := run(t, "report", bad, "/does/not/exist").ends(t, 2).says(t, bad, "/does/not/exist")
	assert.Empty(t, r.stdout)
	run(t, "compare", bad, bad, "--fail-if-slower", "5%").ends(t, 2).says(t, bad)
}

// What names the server or its user is in a report, what is secret is not, and with --redact neither is.
func TestReportRedacts(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{postgres, mariaDB}, func(t *testing.T, d *database) {
		file := save(t, t.TempDir(), "run.json", d.push("--rows", "20000", "--table", "zebra_crossings", "--workers", "2").run(t).ends(t, 0))
		plain := run(t, "report", file).ends(t, 0).stdout
		names := []string{"zebra_crossings", strings.TrimPrefix(d.url.Path, "/")}
		for _, name := range names {
			assert.Contains(t, plain, name)
		}
		assert.Contains(t, plain, "durability  ", "the settings that decide what a crash may take")
		for _, format := range []string{"text", "markdown", "json", "csv", "bench", "html"} {
			clean := run(t, "report", file, "--redact", "--format", format).ends(t, 0).stdout
			for _, name := range append(names, d.url.Host) {
				assert.NotContains(t, clean, name, format)
			}
		}
	})
}
