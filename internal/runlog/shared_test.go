package runlog_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/runlog/runlogtest"
	"github.com/terapush/terapush/pkg/event"
)

// bucket is Files whose requests are made again once.
type bucket struct{ in *runlogtest.Files }

func again(f func() error) error {
	if err := f(); err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f()
}

func (b bucket) Create(name string, content []byte) error {
	return again(func() error { return b.in.Create(context.Background(), name, content) })
}

func (b bucket) Write(name string, content []byte) error {
	return b.in.Write(context.Background(), name, content)
}

func (b bucket) Open(name string) (io.ReadCloser, error) {
	text, err := b.in.Read(context.Background(), name)
	return io.NopCloser(bytes.NewReader(text)), err
}

func (b bucket) Names(folder string) (names []string, err error) {
	err = b.in.Names(context.Background(), folder, func(name string) error {
		names = append(names, name)
		return nil
	})
	return names, err
}

func (b bucket) Remove(names ...string) error { return b.in.Remove(context.Background(), names...) }

func shared(f *runlogtest.Files) *runlog.Shared {
	return &runlog.Shared{Files: bucket{f}, Name: "nightly"}
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

	pieces := slices.Sorted(maps.Keys(files.All)) // and the announcement
	delete(files.All, pieces[2])
	_, _, err = s.Open(config.Shard{}, record(), func(event.Event) {})
	require.ErrorContains(t, err, "shard/journal-000000000003.jsonl is missing: somebody removed a part of the run's journal")
}

// Who forgets a run ends its processes: those that have a journal, and those that have found the announcement and have none yet.
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
	first, _ := take(t, s)
	late := *s
	require.NoError(t, s.Remove())
	require.Len(t, files.All, 1, "the last piece")
	require.NoError(t, first.Mark(3, event.Started))
	require.ErrorIs(t, first.Sync(), runlog.ErrTakenOver)
	_, _, err := late.Open(config.Shard{}, record(), func(event.Event) {})
	require.ErrorIs(t, err, runlog.ErrTakenOver)

	announce()
	require.NotEqual(t, late.ID, s.ID)
	again, batches := take(t, s)
	require.Empty(t, batches)
	require.NoError(t, again.Close())
	require.NoError(t, s.Remove())
	require.Len(t, files.All, 3, "two last pieces, and that of the process that came late")
	s.ID = "" // as if it had been killed when the announcement was gone
	for range 2 {
		require.NoError(t, s.Remove())
		require.Len(t, files.All, 2)
	}
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
	_, _, err = s.Open(config.Shard{}, record(), func(event.Event) {})
	require.ErrorContains(t, err, "choose another store for --state-dir")
}
