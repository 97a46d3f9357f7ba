package runlog_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/runlog/runlogtest"
	"github.com/terapush/terapush/pkg/event"
)

func shared(f runlog.Files) *runlog.Shared {
	return &runlog.Shared{Files: f, Name: "nightly", Ask: func(_ string, f func(context.Context) error) error {
		if f(context.Background()) == nil {
			return nil
		}
		return f(context.Background())
	}}
}

// take takes the run over, with an empty disk, and returns the batches that its journal has.
func take(t *testing.T, s *runlog.Shared) (l *runlog.Log, batches []int64) {
	t.Helper()
	dir := t.TempDir()
	j, err := s.Take(config.Shard{})
	require.NoError(t, err)
	begun, err := j.Restore(dir)
	require.NoError(t, err)
	if begun {
		l, err = runlog.Open(dir, run, func(e event.Event) { batches = append(batches, e.Batch) })
	} else {
		l, err = runlog.Create(dir, record())
	}
	require.NoError(t, err)
	require.NoError(t, l.ShareIn(j))
	return l, batches
}

// Who takes a shard over finds everything that was synced, and the process that had it keeps nothing any more.
func TestTakeOver(t *testing.T) {
	files := runlogtest.New()
	s := shared(files)
	_, err := s.Announce(7)
	require.NoError(t, err)
	first, batches := take(t, s)
	require.Empty(t, batches)
	require.NoError(t, first.Append(applied(3)))
	require.NoError(t, first.Mark(4, event.Started))
	files.Lost = true // the piece is made, and its answer lost
	require.NoError(t, first.Sync())
	require.NoError(t, first.Append(applied(5)))
	changed := first.Record()
	changed.Stage = runlog.Loaded

	second, batches := take(t, s)
	require.Equal(t, []int64{3, 4}, batches)
	require.Equal(t, first.Record(), second.Record())
	require.ErrorIs(t, first.Sync(), runlog.ErrTakenOver)
	require.ErrorIs(t, first.Append(applied(6)), runlog.ErrTakenOver)
	require.ErrorIs(t, first.Save(changed), runlog.ErrTakenOver)
	require.Error(t, first.Close())
	require.NoError(t, second.Append(applied(7)))
	require.NoError(t, second.Save(changed))
	require.NoError(t, second.Close())

	var replayed []int64
	var r *runlog.Record
	r, err = s.Replay(config.Shard{}, func(e event.Event) { replayed = append(replayed, e.Batch) })
	require.NoError(t, err)
	require.Equal(t, []any{runlog.Loaded, []int64{3, 4, 7}}, []any{r.Stage, replayed})
	other, err := s.Replay(config.Shard{Index: 1, Count: 2}, nil)
	require.NoError(t, err)
	require.Nil(t, other)

	pieces := slices.Sorted(maps.Keys(files.All)) // and the announcement
	delete(files.All, pieces[2])
	_, err = s.Take(config.Shard{})
	require.ErrorContains(t, err, "shard/000000000003 is missing: somebody removed a part of the run's journal")
}

// What is announced first counts, and a store that replaces what it is told to keep is refused.
func TestAnnounceInFiles(t *testing.T) {
	files := runlogtest.New()
	s := shared(files)
	for _, c := range []struct{ number, kept int64 }{{0, 0}, {7, 7}, {8, 7}, {0, 7}} {
		kept, err := s.Announce(c.number)
		require.NoError(t, err)
		require.Equal(t, c.kept, kept)
	}
	require.Regexp(t, "^nightly-[a-z2-7]{6}$", s.ID)
	again := shared(files)
	_, err := again.Announce(0)
	require.NoError(t, err)
	require.Equal(t, s.ID, again.ID, "all processes have one id")
	require.NoError(t, s.Prepare())
	require.ErrorIs(t, s.Prepare(), runlog.ErrPreparing)
	files.IgnoresIfNoneMatch = true
	_, err = s.Take(config.Shard{})
	require.ErrorContains(t, err, "choose another store for --state-dir")
	require.NoError(t, s.Remove())
	require.Empty(t, files.All)
}
