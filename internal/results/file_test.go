package results

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
)

func head() Head {
	return Head{
		Name: "yugabyte", Title: "rows <per> transaction", Scale: "ci", Digest: "d1", Repeats: 2, Machine: host.ThisMachine(),
		Started: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
		Parts:   []Part{{Cells: 3, Axes: []Axis{{Name: "workers", Values: []string{"1", "2", "4"}}}}},
	}
}

func entry(cell int) Entry {
	e := Entry{Cell: cell, Settings: []Setting{{"workers", fmt.Sprint(cell)}}, Status: Measured, Started: head().Started, Seconds: 1.5}
	e.Report = &report.Report{Schema: report.Schema, Warnings: []string{"a <b> & \"c\"\nd"}}
	return e
}

func path(t *testing.T) string { return filepath.Join(t.TempDir(), "a.sweep.jsonl") }

// opened opens a record, does something to it, closes it, and returns what is read then.
func opened(t *testing.T, at string, do func(f *File)) Record {
	t.Helper()
	f, err := Open(at)
	require.NoError(t, err)
	do(f)
	require.NoError(t, f.Close())
	r, err := Look(at)
	require.NoError(t, err)
	return r
}

// written is the text of a record with a head and so many entries.
func written(t *testing.T, entries int) string {
	at := path(t)
	opened(t, at, func(f *File) {
		require.Empty(t, f.Record().Head.Schema)
		require.NoError(t, f.Begin(head()))
		for i := range entries {
			require.NoError(t, f.Append(entry(i)))
		}
	})
	text, err := os.ReadFile(at)
	require.NoError(t, err)
	require.Equal(t, entries+1, strings.Count(string(text), "\n"), "one line each, whatever is in it")
	return string(text)
}

func put(t *testing.T, text string) string {
	at := path(t)
	require.NoError(t, os.WriteFile(at, []byte(text), 0o644))
	return at
}

func TestRoundTrip(t *testing.T) {
	r, err := Read(put(t, written(t, 3)))
	require.NoError(t, err)
	want := head()
	want.Schema = Schema
	require.Equal(t, Record{File: r.File, Head: want, Entries: []Entry{entry(0), entry(1), entry(2)}}, r)
}

// A process can be killed after any byte, and the machine can lose the line's beginning.
func TestEveryCutIsGoneOnWith(t *testing.T) {
	text := written(t, 2)
	for cut := range len(text) + 1 {
		if next := strings.IndexByte(text[cut:], '\n'); next > 5 && cut > 40 && cut%397 > 0 {
			continue // the middle of a line is like any other
		}
		at := put(t, text[:cut])
		whole := strings.Count(text[:cut], "\n")
		if whole > 0 {
			r, err := Read(at)
			require.NoError(t, err, "cut at %d", cut)
			require.Len(t, r.Entries, whole-1, "cut at %d", cut)
			require.Equal(t, text[cut-1] != '\n', r.Torn, "cut at %d", cut)
		}
		seen, err := Look(at) // which leaves the file as it is
		require.NoError(t, err, "cut at %d", cut)
		f, err := Open(at)
		require.NoError(t, err, "cut at %d", cut)
		require.Equal(t, f.Record(), Record{Head: seen.Head, Entries: seen.Entries, Torn: seen.Torn}, "cut at %d", cut)
		require.Equal(t, cut > 0 && text[cut-1] != '\n', f.Record().Torn, "cut at %d", cut)
		require.Len(t, f.Record().Entries, max(whole-1, 0), "cut at %d", cut)
		if whole == 0 {
			require.Empty(t, f.Record().Head.Schema)
			require.NoError(t, f.Begin(head()))
			whole = 1
		}
		for i := whole - 1; i < 2; i++ {
			require.NoError(t, f.Append(entry(i)))
		}
		require.NoError(t, f.Close())
		got, err := os.ReadFile(at)
		require.NoError(t, err)
		require.Equal(t, text, string(got), "cut at %d", cut)
	}
	lines := strings.SplitAfter(text, "\n")
	r, err := Look(filepath.Join(t.TempDir(), "nothing"))
	require.NoError(t, err)
	require.Empty(t, r.Head.Schema)
	opened(t, put(t, lines[0]+lines[1]+"\x00\x00"+lines[2][2:]), func(f *File) {
		require.True(t, f.Record().Torn)
		require.Len(t, f.Record().Entries, 1)
	})
}

func TestOneProcessAtATime(t *testing.T) {
	at := put(t, written(t, 1))
	opened(t, at, func(*File) {
		_, err := Open(at)
		require.ErrorContains(t, err, "another process is adding to the record "+at)
		_, err = Read(at)
		require.NoError(t, err, "who only reads need not wait")
	})
	opened(t, at, func(*File) {})
}

func TestResetAndASecondHead(t *testing.T) {
	at := put(t, written(t, 2))
	r := opened(t, at, func(f *File) {
		more := head()
		more.Repeats = 5
		require.NoError(t, f.Begin(more))
		require.NoError(t, f.Append(entry(2)))
	})
	require.Equal(t, 5, r.Head.Repeats)
	require.Len(t, r.Entries, 3)

	opened(t, at, func(f *File) {
		require.NoError(t, f.Reset())
		require.ErrorContains(t, f.Append(entry(0)), "no head")
	})
}

// What the reader would refuse does not get in.
func TestRefusedLinesAreNotWritten(t *testing.T) {
	other, bent := head(), head()
	other.Digest, other.Name = "d2", "other"
	bent.Parts[0].Axes[0].Values = []string{"1"}
	r := opened(t, put(t, written(t, 1)), func(f *File) {
		require.ErrorContains(t, f.Begin(other), `the plan was yugabyte, now it is other`)
		require.ErrorContains(t, f.Begin(bent), "its axes make 1 cases, not 3")
		require.ErrorContains(t, f.Append(entry(3)), "no case 3 of part 0")
		require.NoError(t, f.Append(entry(2)))
	})
	require.Len(t, r.Entries, 2)
}

func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	r := opened(t, put(t, written(t, 1)), func(f *File) {
		real := f.file
		f.file = full
		err := f.Append(entry(1))
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, "the disk of the record "+f.path+" is full")
		f.file = real
		require.NoError(t, f.Append(entry(1)), "where it was before")
	})
	require.Len(t, r.Entries, 2)
}

func TestPlacesWithoutFiles(t *testing.T) {
	for _, at := range []string{filepath.Join(t.TempDir(), "no", "where"), t.TempDir()} {
		_, err := Open(at)
		require.ErrorContains(t, err, at)
	}
	for _, open := range []func(string) error{
		func(at string) error { _, err := Open(at); return err }, func(at string) error { _, err := Look(at); return err },
	} {
		require.ErrorContains(t, open("/dev/null"), "/dev/null is not a regular file")
	}
	_, err := Look(t.TempDir())
	require.ErrorContains(t, err, "reading the record: ")
}
