package runlog

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
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
	real := l.open
	l.open, err = os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	require.ErrorIs(t, l.Mark(0, event.Applied), syscall.ENOSPC)

	l.open = real
	require.ErrorContains(t, l.Append(event.Event{Outcome: event.Applied}), "writing the journal", "nothing is believed after it")
	require.ErrorIs(t, l.Sync(), syscall.ENOSPC)
	require.ErrorIs(t, l.Save(l.Record()), syscall.ENOSPC)
	require.ErrorIs(t, l.Close(), syscall.ENOSPC)
}

func TestSyncThatFails(t *testing.T) {
	l, err := Create(t.TempDir(), Record{Run: "r"})
	require.NoError(t, err)
	require.NoError(t, l.Mark(7, event.Started))
	require.NoError(t, l.open.Close())
	require.ErrorIs(t, l.Sync(), os.ErrClosed)
	require.ErrorContains(t, l.Append(event.Event{Outcome: event.Applied}), "syncing the journal")
	require.Error(t, l.Close())
}

func TestJournalSyncsByItself(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l, err := Create(dir, Record{Run: "r"})
		require.NoError(t, err)
		require.NoError(t, l.Mark(7, event.Applied))
		time.Sleep(syncEvery)
		synctest.Wait()
		require.False(t, l.dirty)
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

// A process can be killed after any byte. Only the last line is lost. A power failure may leave zeros where a page had
// not reached the disk, before one that had.
func TestEveryPrefixCanBeRead(t *testing.T) {
	whole, err := appendLine(nil, Header{Schema: journalSchema, Record: &Record{Run: "r"}})
	require.NoError(t, err)
	head := len(whole)
	whole = append(whole, "begun 0\n{\"batch\":0,\"outcome\":\"not_applied\"}\nin 0\nin 17\n"...)
	read := func(text []byte) (n int) {
		require.NoError(t, replay(bytes.NewReader(text), func(event.Event) { n++ }))
		return n
	}
	noPage := slices.Clone(whole)
	clear(noPage[:head/2])
	_, err = readHeader(bufio.NewReader(bytes.NewReader(noPage)))
	require.ErrorIs(t, err, errNoHeader)
	for cut := range len(whole) {
		_, err := readHeader(bufio.NewReader(bytes.NewReader(whole[:cut])))
		require.Equal(t, cut < head, errors.Is(err, errNoHeader), "cut at %d", cut)
		lines := max(bytes.Count(whole[:cut], []byte("\n"))-1, 0)
		require.Equal(t, lines, read(whole[:cut]), "cut at %d", cut)
		if cut < head {
			continue
		}
		for length := 1; cut+length < len(whole); length += 7 {
			hole := slices.Clone(whole)
			clear(hole[cut : cut+length])
			ends := bytes.Count(whole[cut:cut+length], []byte("\n"))
			require.Equal(t, 4-ends-1, read(hole), "zeros from %d for %d", cut, length)
		}
	}
}

func FuzzReplay(f *testing.F) {
	f.Add("begun 1\nin 1\n{\"batch\":1,\"outcome\":\"applied\"}\n")
	head, err := appendLine(nil, Header{Schema: journalSchema})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		err := replay(strings.NewReader(string(head)+text), func(event.Event) {})
		if err != nil {
			require.ErrorAs(t, err, new(*DamagedError))
		}
	})
}
