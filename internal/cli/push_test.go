package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

// The flags that find a run belong to a command, and not to the sentence about a run with a name.
func TestNext(t *testing.T) {
	for run, want := range map[string]string{
		"20260101-000000-aaaaaa": "to resume: terapush push discard:// --resume 20260101-000000-aaaaaa --state-dir s",
		"nightly":                "to resume: run the same command again, here or on another machine",
	} {
		var r report.Report
		r.Target.URL, r.Run.ID, r.Run.Resumable = "discard://", run, true
		require.Equal(t, want, next(&r, " --state-dir s"))
	}
}
