package runlog_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/runlog/runlogtest"
	"github.com/terapush/terapush/pkg/event"
)

// shared is a run in a bucket whose requests are made again once.
func shared(f *runlogtest.Files) *runlog.Shared {
	ask := func(_ string, f func(context.Context) error) error {
		if f(context.Background()) == nil {
			return nil
		}
		return f(context.Background())
	}
	return &runlog.Shared{Files: runlog.Bucket{Store: f, Ask: ask}, Name: "nightly"}
}

// take takes the run over, and returns the batches that its journal has.
func take(t *testing.T, s *runlog.Shared) (l *runlog.Log, batches []int64) {
	t.Helper()
	l, _, err := s.Open(config.Shard{}, record(), func(e event.Event) { batches = append(batches, e.Batch) })
	require.NoError(t, err)
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

	require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(files.All)), func(name string) bool {
		return strings.HasSuffix(name, "/shard/journal-000000000003.jsonl")
	}))
	maps.DeleteFunc(files.All, func(name, _ string) bool { return strings.HasSuffix(name, "3.jsonl") })
	_, _, err = s.Open(config.Shard{}, record(), func(event.Event) {})
	require.ErrorContains(t, err, "shard/journal-000000000003.jsonl is missing: somebody removed a part of the run's journal")
}

// Who forgets a run ends its processes: that which has the journal, one that had it before, and one that has found the
// announcement and has no journal yet. A run that is announced meanwhile is another one.
func TestForgottenInABucket(t *testing.T) {
	files := runlogtest.New()
	s := shared(files)
	announce := func() {
		_, err := s.Announce(7)
		require.NoError(t, err)
		_, err = s.Shards(1)
		require.NoError(t, err)
	}
	announce()
	require.NoError(t, s.Prepare())
	first, _ := take(t, s)
	second, _ := take(t, s)
	late := *s
	require.NoError(t, s.Remove())
	require.Empty(t, files.All)
	for _, l := range []*runlog.Log{first, second} {
		require.NoError(t, l.Mark(3, event.Started))
		require.ErrorIs(t, l.Sync(), runlog.ErrTakenOver)
	}
	_, _, err := late.Open(config.Shard{}, record(), func(event.Event) {})
	require.ErrorIs(t, err, runlog.ErrTakenOver)

	s = shared(files)
	announce()
	require.NotEqual(t, late.ID, s.ID)
	require.ErrorIs(t, late.Remove(), runlog.ErrTakenOver)
	again, batches := take(t, s)
	require.Empty(t, batches)
	require.NoError(t, again.Mark(3, event.Started))
	require.NoError(t, again.Close())
	require.NoError(t, s.Remove())
	require.Empty(t, files.All, "with what came late")
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
	require.NoError(t, s.Prepare(), "it is not in its own way")
	require.ErrorIs(t, again.Prepare(), runlog.ErrPreparing)
	require.NoError(t, s.GiveUp())
	require.NoError(t, s.Prepare())
	files.Dead.Store(true)
	l, _, err := s.Open(config.Shard{}, record(), func(event.Event) {})
	require.Error(t, err)
	require.Nil(t, l)
	files.Dead.Store(false)
	files.IgnoresIfNoneMatch = true
	_, _, err = s.Open(config.Shard{}, record(), func(event.Event) {})
	require.ErrorContains(t, err, "choose another store for --state-dir")
}
