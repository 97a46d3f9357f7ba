package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/calibrate"
)

// Every protocol into sinks of the binary's own, plain and encrypted; then a push that is told as a share of it, on paper too.
func TestCalibrate(t *testing.T) {
	state := t.TempDir()
	r := invocation{args: []string{"calibrate", "--state-dir", state, "--time", "3s", "--workers", "1,2", "--memory", "64MiB", "--json"}}.run(t).ends(t, 0)
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

	encrypted := reportOf(t, into(t, sink.url("mysql", ""), nil, "--json", "--state-dir", state, "--bytes", "64MiB"))
	assert.NotEqual(t, e.Ceiling, encrypted.BoundBy.Evidence.Ceiling, "a sink offers TLS, which is taken where nothing speaks against it")
	other := reportOf(t, into(t, sink.url("mysql", ""), nil, "--json", "--state-dir", state, "--bytes", "64MiB", "--payload-bytes", "100"))
	assert.Zero(t, other.BoundBy.Evidence.Ceiling, "of other rows")

	path := filepath.Join(state, "ceilings.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	damaged := reportOf(t, into(t, sink.url("mysql", ""), nil, "--json", "--state-dir", state, "--bytes", "64MiB"))
	assert.Contains(t, strings.Join(damaged.Warnings, "\n"), path)
	r = invocation{args: []string{"calibrate", "--state-dir", state}}.run(t).ends(t, 5)
	assert.Contains(t, r.stderr, path+": damaged")
	assert.Empty(t, r.stdout)
}

func TestCalibrateStopped(t *testing.T) {
	state := t.TempDir()
	c := invocation{args: []string{"calibrate", "--state-dir", state, "--only", "mysql,postgres", "--time", "30s", "--memory", "64MiB"}}.start(t)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(filepath.Join(state, "ceilings.json"))
		return err == nil && strings.Contains(string(text), `"mysql"`)
	}, time.Minute, 50*time.Millisecond)
	c.signal(t, syscall.SIGINT)
	r := c.wait(t).ends(t, 130)
	assert.Contains(t, r.stdout, "mysql load-data")
	assert.Contains(t, r.stderr, "only what was measured to its end is kept")
	entries, err := os.ReadDir(state)
	require.NoError(t, err)
	for _, e := range entries {
		assert.False(t, e.IsDir(), e.Name())
	}
}

func TestCalibrateUsage(t *testing.T) {
	for says, args := range map[string][]string{
		"--tls":                {"--tls", "perhaps"},
		"oracle":               {"--only", "oracle"},
		"HOST has no port":     {"10.0.0.1:3306"},
		"none was given":       {"--mysql", "3306"},
		"1 to 4096":            {"--workers", "0"},
		"at least 1s":          {"--time", "1ms"},
		`dataset "nothing"`:    {"--dataset", "nothing"},
		"a port is 1 to 65535": {"localhost", "--mysql", "70000"},
	} {
		r := invocation{args: append([]string{"calibrate", "--state-dir", t.TempDir()}, args...)}.run(t).ends(t, 2)
		assert.Contains(t, r.stderr, says)
	}
	r := invocation{args: []string{"calibrate", "127.0.0.1", "--state-dir", t.TempDir(), "--only", "mysql", "--mysql", "1"}}.run(t).ends(t, 5)
	assert.Contains(t, r.stderr, "connection refused")
}
