package runlog

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/event"
)

func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/dev/full is Linux's")
	}
	l, err := Create(t.TempDir(), Record{Run: "r"})
	require.NoError(t, err)
	real := l.batches.File
	l.batches.File, err = os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	require.ErrorIs(t, l.Mark(0, event.Applied), syscall.ENOSPC)

	l.batches.File = real
	require.ErrorContains(t, l.Append(event.Event{Outcome: event.Applied}), "writing the journal", "nothing is believed after it")
	require.ErrorIs(t, l.Sync(), syscall.ENOSPC)
	require.ErrorIs(t, l.Close(), syscall.ENOSPC)
}

func TestSyncThatFails(t *testing.T) {
	for _, broken := range []func(*Log) *os.File{
		func(l *Log) *os.File { return l.journal.File },
		func(l *Log) *os.File { return l.batches.File },
	} {
		l, err := Create(t.TempDir(), Record{Run: "r"})
		require.NoError(t, err)
		require.NoError(t, l.Append(event.Event{Outcome: event.NotApplied}))
		require.NoError(t, l.Mark(7, event.Started))
		require.NoError(t, broken(l).Close())
		require.ErrorIs(t, l.Sync(), os.ErrClosed)
		require.ErrorContains(t, l.Append(event.Event{Outcome: event.Applied}), "syncing the journal")
		require.Error(t, l.Close())
	}
}

func TestJournalSyncsByItself(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l, err := Create(dir, Record{Run: "r"})
		require.NoError(t, err)
		require.NoError(t, l.Append(event.Event{Outcome: event.NotApplied}))
		require.NoError(t, l.Mark(7, event.Applied))
		time.Sleep(syncEvery)
		synctest.Wait()
		require.False(t, l.journal.dirty || l.batches.dirty)
		require.NoError(t, l.Close())
	})
}

// An event for which Sync is called is on disk when it returns, also when another call has just taken it along and is
// still waiting for the disk.
func TestSyncWaitsForOneUnderWay(t *testing.T) {
	l, err := Create(t.TempDir(), Record{Run: "r"})
	require.NoError(t, err)
	l.syncing.Lock()
	done := make(chan error)
	go func() { done <- l.Sync() }()
	select {
	case <-done:
		t.Fatal("Sync returned before the disk did")
	case <-time.After(20 * time.Millisecond):
	}
	l.syncing.Unlock()
	require.NoError(t, <-done)
	require.NoError(t, l.Close())
}
