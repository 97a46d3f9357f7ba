package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/calibrate"
	"github.com/terapush/terapush/internal/results"
)

// Every protocol into sinks of the binary's own, plain and encrypted; then a push that is told as a share of it, on paper too.
func TestCalibrate(t *testing.T) {
	backendtest.Long(t)
	t.Parallel()
	state := t.TempDir()
	r := invocation{args: []string{"calibrate", "--state-dir", state, "--time", "1s", "--workers", "1", "--memory", "64MiB", "--json"}}.run(t).ends(t, 0)
	var found struct{ Tables []results.Table }
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &found))
	require.Len(t, found.Tables, 2)
	for _, table := range found.Tables {
		require.Len(t, table.Points, len(calibrate.Protocols()))
		for _, p := range table.Points {
			assert.Equal(t, results.Measured, p.Status, "%s, %s: %s", table.Name, p.Settings, p.Error)
		}
		assert.Empty(t, table.Warnings, "the target is no database")
	}
	assert.Contains(t, r.stderr, "TLS: method load-data, workers 1: ")
	assert.Contains(t, r.stderr, "the best of 10 complete rows is kept in "+state)

	sink, page := startSink(t, nil), filepath.Join(t.TempDir(), "run.html")
	is := reportOf(t, into(t, sink.url("mysql", ""), nil, "--json", "--state-dir", state, "--bytes", "64MiB", "--tls", "off", "--report", page))
	e := is.BoundBy.Evidence
	assert.Greater(t, e.Ceiling, 0.0)
	assert.InDelta(t, is.Result.BytesPerSecond/e.Ceiling, e.OfCeiling, 1e-6)
	html, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Contains(t, string(html), "this client: ")
	assert.Contains(t, string(html), "(mysql load-data)")
}
