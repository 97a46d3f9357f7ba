package push_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// breakJournal puts a pipe in the place of this process's open journal: it takes every write and cannot be synced.
func breakJournal(t *testing.T) {
	t.Helper()
	in, out, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = in.Close(), out.Close() })
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	broken := false
	for _, fd := range open {
		if name, _ := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); strings.HasSuffix(name, "journal.jsonl") {
			number, err := strconv.Atoi(fd.Name())
			require.NoError(t, err)
			require.NoError(t, syscall.Dup3(int(out.Fd()), number, 0))
			broken = true
		}
	}
	require.True(t, broken)
}

// The objects of a group are the only copy until the journal has its commit: what could not be written down keeps them,
// also when the run tidies up.
func TestObjectsStayUntilTheJournalHasTheirCommit(t *testing.T) {
	p := newStaged(t, loader.DedupKey)
	p.hook = func(_ context.Context, op string, number int64) error {
		if op == "discard" {
			t.Errorf("group %d is discarded", number)
		}
		if op == "after commit" && number == 0 {
			breakJournal(t)
		}
		return nil
	}
	r := p.fails(grouped+" --workers 1", report.Failed, "syncing the journal")
	require.GreaterOrEqual(t, p.memory.Objects(), 4)
	require.Contains(t, r.Warnings[len(r.Warnings)-1], "a resume uses them")

	p.hook = nil
	p.succeeds("--resume " + r.Run.ID)
	p.exact(0, 195)
	require.Zero(t, p.memory.Objects())
}

// A label is asked for only if the journal knows its attempt: no batch is sent before that is on disk.
func TestNothingIsSentUntilTheJournalHasIt(t *testing.T) {
	p := newLabelled(t)
	j := p.job(small)
	j.Watch = func(push.Watched) (func(), error) {
		breakJournal(t)
		return func() {}, nil
	}
	_, err := push.Run(t.Context(), j)
	require.ErrorContains(t, err, "syncing the journal")
	require.Zero(t, p.memory.Attempts(0))
}
