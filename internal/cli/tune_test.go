package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/cli"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/results"
)

func TestTuneDryRun(t *testing.T) {
	s := newShell(t)
	r := s.run("tune", "postgres://u:hunter2@h/db", "--dry-run", "--workers", "3", "--rows", "1000000", "--max-batch-bytes", "32MiB")
	require.Zero(t, r.code, r.stderr)
	require.NotContains(t, r.stdout+r.stderr, "hunter2")
	golden.Equal(t, "tune-dry-run.txt", r.stdout)
}

func TestTuneMistakes(t *testing.T) {
	s := newShell(t)
	for args, want := range map[string]string{
		"tune":                                              "tune takes one TARGET: 0 arguments given",
		"tune discard:// --near 5":                          `"5" is not a share: write it as 5%`,
		"tune discard:// --trial 0s":                        "--trial and --budget: more than 0s",
		"tune discard:// --trial 1s --rows 4":               "--trial and --rows: both say how much a trial pushes",
		"tune discard:// --resume x":                        "--resume is for a single push",
		"tune discard:// --rows 5 --record " + newRecord(t): "holds a record already: give a new file",
	} {
		r := s.run(strings.Fields(args)...)
		require.Equal(t, 2, r.code, "%s: %s", args, r.stderr)
		require.Contains(t, r.stderr, want, args)
		require.Empty(t, r.stdout, args)
	}
}

func newRecord(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "record.jsonl")
	file, err := results.Open(path)
	require.NoError(t, err)
	require.NoError(t, file.Begin(results.Head{Parts: []results.Part{{Cells: 1}}}))
	require.NoError(t, file.Close())
	return path
}

func TestTune(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "tune.jsonl")
	r := s.run("tune", "discard://", "--rows", "4000", "--payload-bytes", "100", "--max-workers", "4", "--max-batch-bytes", "128KiB",
		"--json", "--record", file)
	require.Zero(t, r.code, r.stderr)
	var found struct {
		Schema, Use string
		Complete    bool
		Trials      []struct {
			Measured []float64 `json:"measured_rows_per_second"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &found), r.stdout)
	require.Equal(t, "terapush.tune/v1", found.Schema)
	require.True(t, found.Complete)
	require.Regexp(t, `^terapush push discard:/// --method discard --workers \d --batch-bytes \d+\S* --create recreate --payload-bytes 100$`, found.Use)
	require.NotContains(t, found.Use, "--rows")
	require.Contains(t, r.stderr, "warm-up, ")
	pushes := 1
	for _, one := range found.Trials {
		pushes += len(one.Measured)
	}
	kept, err := results.Read(file)
	require.NoError(t, err)
	require.Len(t, kept.Entries, pushes)
	shown := s.run("report", file)
	require.Zero(t, shown.code, shown.stderr)
	require.Contains(t, shown.stdout, "Workers and batch size of discard")
	entries, err := os.ReadDir(filepath.Join(s.env["XDG_STATE_HOME"], "terapush"))
	require.NoError(t, err)
	require.Empty(t, entries, "no run of a trial is left")
}

func TestTuneWithoutAServer(t *testing.T) {
	s := newShell(t)
	file := filepath.Join(t.TempDir(), "tune.jsonl")
	r := s.run("tune", "postgres://u@127.0.0.1:1/db", "--record", file)
	require.Equal(t, 5, r.code)
	require.Equal(t, 1, strings.Count(r.stderr, "terapush: the target cannot be reached: opening"), r.stderr)
	require.Empty(t, r.stdout)
	require.Equal(t, 5, s.run("tune", "postgres://u@127.0.0.1:1/db", "--record", file).code, "an empty record is no obstacle")
}

func TestTuneIsStopped(t *testing.T) {
	s := newShell(t)
	signals := make(chan os.Signal, 1)
	var out, log strings.Builder
	signals <- syscall.SIGINT
	code := cli.Run(t.Context(), []string{"tune", "discard://", "--trial", "1h"}, cli.Process{
		Stdout: &out, Stderr: &log, Signals: signals,
		LookupEnv: func(name string) (string, bool) { text, ok := s.env[name]; return text, ok },
	})
	require.Equal(t, 130, code, log.String())
	require.Contains(t, log.String(), "terapush: the search was stopped by a signal")
	require.Empty(t, out.String())
	entries, err := os.ReadDir(filepath.Join(s.env["XDG_STATE_HOME"], "terapush"))
	require.NoError(t, err)
	require.Empty(t, entries)
}
