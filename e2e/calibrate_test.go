package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/calibrate"
)

// Every protocol into sinks of the binary's own, plain and encrypted; then a push that is told as a share of it, on paper too.
func TestCalibrate(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	r := invocation{args: []string{"calibrate", "--state-dir", state, "--time", "1s", "--workers", "1", "--memory", "64MiB", "--json"}}.run(t).ends(t, 0)
	var found calibrate.Found
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &found))
	assert.Equal(t, calibrate.Schema, found.Schema)
	require.Len(t, found.Series, 2*len(calibrate.Protocols()))
	for _, s := range found.Series {
		assert.True(t, s.Complete, "%s, TLS %t: %s", s.Protocol, s.TLS, s.Error)
		assert.NotEmpty(t, s.Points)
	}
	assert.Contains(t, r.stderr, "mysql load-data, TLS: ")

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
