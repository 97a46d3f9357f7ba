//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	reports "github.com/terapush/terapush/internal/report"
)

func TestOracleWantsAServer(t *testing.T) {
	for args, says := range map[string]string{
		"-only oracle":                              "make bench-oracle TARGET=oracle://",
		"-only oracle -target postgres://u@h/d":     "postgres://…",
		"-only oracle -target scott:tiger@h":        "not a URL",
		"-only oracl -target oracle://u:tiger@h/s":  "oracle",
		"-only oracle -target oracle://u:tiger@h/%": "terapush",
	} {
		var out bytes.Buffer
		err := run(t.Context(), append(strings.Fields(args), "-terapush", "/no/terapush"), &out)
		require.ErrorContains(t, err, says, args)
		assert.NotContains(t, err.Error(), "tiger", args)
	}
}

// The table comes from the reports of a push for every method and number of workers; here a script writes them.
func TestOracleTable(t *testing.T) {
	r := reports.Report{
		Result: reports.Result{Outcome: reports.OK, Rows: 1_000_000, RowsPerSecond: 15_000, BytesPerSecond: 20 << 20},
		Rates:  reports.Rates{Load: 20_000}, Stored: reports.Stored{Bytes: 1, BytesPerRow: 1360},
		Cost: reports.Cost{"redo_bytes": 1.5e9, "round_trips": 2000}, Client: reports.Client{LoadSeconds: 2.5},
		Warnings: []string{"a note"},
	}
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "report.json"))
	require.NoError(t, err)
	require.NoError(t, r.WriteJSON(file))
	require.NoError(t, file.Close())
	script := filepath.Join(dir, "terapush")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho \"$TERAPUSH_PASSWORD $*\" >>"+dir+"/log\ncat "+dir+"/report.json\n"), 0o755))

	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{
		"-only", "oracle", "-target", "oracle://scott:tiger@h1,h2/s?ssl=true", "-duration", "90s", "-terapush", script,
	}, &out))
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	require.NoError(t, err)
	asked := strings.Split(strings.TrimSpace(string(log)), "\n")
	require.Len(t, asked, 12)
	assert.Contains(t, asked[0], "tiger push oracle://scott@h1,h2/s?ssl=true --dataset journal --method single --workers 1 --duration 1m30s")
	assert.Contains(t, asked[11], "--method fast --workers 16")
	assert.Equal(t, len(asked), strings.Count(string(log), "tiger"), "in the environment, and not among the arguments")

	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 1+1+12+12, "%s", out.String())
	assert.Equal(t, strings.Fields("fast 16 1000000 20000 15000 20.0 1360 1500 500.0 – 2.50"), strings.Fields(lines[13]))
	assert.Equal(t, "fast, 16 workers: a note", lines[25])
	assert.NotContains(t, out.String(), "tiger")
}
