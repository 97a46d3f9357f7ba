package runlog_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
)

// What a crash cuts off of the list of batches was never sent: the next process goes on behind the last whole line.
func TestRangesAfterACrash(t *testing.T) {
	state := t.TempDir()
	r := runlog.Record{Run: runlog.NewID(time.Now()), Stage: runlog.Loading, Plan: run.Plan{Spec: run.Spec{Files: new(run.Files)}}}
	log, err := runlog.Create(state, r)
	require.NoError(t, err)
	_, keep, err := log.Ranges()
	require.NoError(t, err)
	two := []files.Range{{Batch: 0, To: 10, Records: 1}, {Batch: 1, From: 10, To: 20, Records: 2}}
	require.NoError(t, keep(two))
	require.NoError(t, log.Close())

	name := filepath.Join(state, r.Run, "ranges.jsonl")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	for _, torn := range []string{"", `{"batch":2,"to"`, "\x00\x00\x00\n", `{"batch":7}` + "\n"} {
		require.NoError(t, os.WriteFile(name, append(text, torn...), 0o600))
		log, err := runlog.Open(state, r.Run, nil, nil)
		require.NoError(t, err)
		kept, keep, err := log.Ranges()
		require.NoError(t, err)
		require.Equal(t, two, kept, "%q", torn)
		require.NoError(t, keep([]files.Range{{Batch: 2, From: 20, To: 30, Records: 3}}))
		require.NoError(t, log.Close())

		all, problems := runlog.Runs(state)
		require.NoError(t, problems)
		require.Len(t, all, 1)
		again, err := runlog.Open(state, r.Run, nil, nil)
		require.NoError(t, err)
		kept, _, err = again.Ranges()
		require.NoError(t, err)
		require.Len(t, kept, 3)
		require.NoError(t, again.Close())
	}
}
