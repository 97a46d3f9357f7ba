package runlog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
)

const run = "20260102-030405-abcdef"

func record() runlog.Record {
	return runlog.Record{
		Run: run, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Stage: runlog.Loading,
		Target: "memory://h/d", Table: "public.documents", Identity: "16384/2", Plan: config.Plan{Rows: 7, Dataset: "documents"},
		Flags: map[string][]string{"rows": {"7"}, "set": {"a=1", "b=2"}},
	}
}

func create(t *testing.T, dir string) *runlog.Log {
	t.Helper()
	l, err := runlog.Create(dir, record())
	require.NoError(t, err)
	return l
}

func applied(number int64) event.Event {
	return event.Event{Batch: number, Attempt: 1, Rows: 1, Outcome: event.Applied}
}

// ended creates a run whose journal has the batches 0, 1 and 2, and returns the journal's text.
func ended(t *testing.T, dir string) string {
	t.Helper()
	l := create(t, dir)
	for i := range int64(3) {
		require.NoError(t, l.Append(applied(i)))
	}
	require.NoError(t, l.Close())
	text, err := os.ReadFile(journalOf(dir))
	require.NoError(t, err)
	return string(text)
}

// reopen returns the batches in the journal.
func reopen(dir string) (batches []int64, err error) {
	l, err := runlog.Open(dir, run, func(e event.Event) { batches = append(batches, e.Batch) })
	if err != nil {
		return nil, err
	}
	return batches, l.Close()
}

// batchesIn returns the batches in the journal, which must be whole.
func batchesIn(t *testing.T, dir string) []int64 {
	t.Helper()
	batches, err := reopen(dir)
	require.NoError(t, err)
	return batches
}

func journalOf(dir string) string { return filepath.Join(dir, run, "journal.jsonl") }
func batchesOf(dir string) string { return filepath.Join(dir, run, "batches") }

func TestCreateAndOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	l := create(t, dir)
	require.NoError(t, l.Append(applied(0)))
	r := l.Record()
	r.Stage = runlog.Loaded
	require.NoError(t, l.Save(r))
	require.NoError(t, l.Close())

	l, err := runlog.Open(dir, run, func(event.Event) {})
	require.NoError(t, err)
	want := record()
	want.Schema, want.Stage = "terapush.run/v2", runlog.Loaded
	require.Equal(t, want, l.Record())
	require.Equal(t, "7", want.Flag("rows"))
	require.Empty(t, want.Flag("seed"))
	require.NoError(t, l.Append(event.Event{Batch: 1, Outcome: event.Started}))
	require.NoError(t, l.Close())

	require.Equal(t, []int64{0, 1}, batchesIn(t, dir))
	info, err := os.Stat(filepath.Join(dir, run, "run.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// What is replayed does not depend on the order of marks, and a line comes after its batch's mark.
func TestMarks(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir)
	failed := event.Event{Batch: 3, Attempt: 1, Outcome: event.NotApplied}
	require.NoError(t, l.Mark(3, event.Started))
	require.NoError(t, l.Append(failed))
	for n := int64(70_000); n > 69_000; n-- {
		require.NoError(t, l.Mark(n, event.Started))
		require.NoError(t, l.Mark(n, event.Applied))
	}
	require.NoError(t, l.Mark(0, event.Already))
	require.NoError(t, l.Close())

	var got []event.Event
	l, err := runlog.Open(dir, run, func(e event.Event) { got = append(got, e) })
	require.NoError(t, err)
	require.NoError(t, l.Close())
	mark := func(n int64, o event.Outcome) event.Event { return event.Event{Batch: n, Attempt: 1, Outcome: o} }
	want := []event.Event{mark(0, event.Applied), mark(3, event.Started)}
	for n := int64(69_001); n <= 70_000; n++ {
		want = append(want, mark(n, event.Applied))
	}
	require.Equal(t, append(want, failed), got)
	info, err := os.Stat(batchesOf(dir))
	require.NoError(t, err)
	require.EqualValues(t, 70_001, info.Size(), "a byte a batch")
}

// A run of a version that wrote a line for every attempt continues with marks, and is then no other version's to resume.
func TestRunOfLinesOnly(t *testing.T) {
	dir := t.TempDir()
	ended(t, dir)
	require.NoError(t, os.Remove(batchesOf(dir)))
	path := filepath.Join(dir, run, "run.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "run/v2", "run/v1", 1)), 0o600))

	for range 2 { // the first process ends before it has saved
		require.Equal(t, []int64{0, 1, 2}, batchesIn(t, dir))
	}
	l, err := runlog.Open(dir, run, func(event.Event) {})
	require.NoError(t, err)
	require.NoError(t, l.Save(l.Record()))
	require.NoError(t, l.Mark(5, event.Applied))
	require.NoError(t, l.Close())
	require.Equal(t, []int64{5, 0, 1, 2}, batchesIn(t, dir))
	r, err := runlog.Read(dir, run)
	require.NoError(t, err)
	require.Equal(t, "terapush.run/v2", r.Schema)
}

func TestOneOwner(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir)
	_, err := reopen(dir)
	require.EqualError(t, err, "another process is working on run "+run)
	_, err = runlog.Create(dir, record())
	require.ErrorContains(t, err, "file exists")
	require.Equal(t, []string{run}, entries(t, dir), "who could not create a run leaves nothing")
	_, err = runlog.Read(dir, run)
	require.NoError(t, err, "but everybody may read the record")
	require.NoError(t, l.Close())
	batchesIn(t, dir)
}

// Who lists the runs holds the lock for a moment, and must not keep a resume from it.
func TestOpenWhileRunsAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, create(t, dir).Close())
		look := flock.New(filepath.Join(dir, run, "lock"), flock.SetFlag(os.O_RDONLY))
		free, err := look.TryRLock()
		require.NoError(t, err)
		require.True(t, free)
		time.AfterFunc(50*time.Millisecond, func() { _ = look.Unlock() })
		batchesIn(t, dir)
	})
}

// A process can be killed at any file of the folder: whenever somebody looks, the run is whole or there is none.
func TestKilledWhileRemoving(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir)
	folder := filepath.Join(dir, run)
	for i := range 1000 {
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprint(i)), nil, 0o600))
	}
	removed := make(chan error, 1)
	go func() { removed <- l.Remove() }()
	for there := true; there; {
		_, unread := runlog.Read(dir, run)
		_, err := os.Stat(folder)
		if there = err == nil; there {
			require.NoError(t, unread)
		}
	}
	require.NoError(t, <-removed)
	require.Empty(t, entries(t, dir))
}

// What cannot lose its name is not half removed.
func TestRemoveIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".new-"+run, "in the way"), 0o700))
	require.ErrorContains(t, l.Remove(), "removing the run's state folder")
	require.Empty(t, batchesIn(t, dir), "the run is whole, and free")
}

func TestRunsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, create(t, dir).Close())
	require.NoError(t, os.Rename(filepath.Join(dir, run), filepath.Join(dir, "copy")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	for id, want := range map[string]string{
		"":          "is not the id of a run",
		"../other":  "is not the id of a run",
		`a\b`:       "is not the id of a run",
		"x'; DROP":  "is not the id of a run",
		"2026-none": "no run \"2026-none\" in",
		"empty":     "no run \"empty\" in",
		"copy":      "is the record of run \"" + run + "\": was the folder copied or renamed?",
	} {
		_, err := runlog.Open(dir, id, func(event.Event) {})
		require.ErrorContains(t, err, want, id)
		_, err = runlog.Read(dir, id)
		require.ErrorContains(t, err, want, id)
	}
	r := record()
	r.Run = "../escape"
	_, err := runlog.Create(dir, r)
	require.ErrorContains(t, err, "is not the id of a run")
}

// A crash may cut the last line anywhere, as package event shows. Only that line is lost, and new ones do not join what is
// left of it.
func TestTornJournal(t *testing.T) {
	dir := t.TempDir()
	whole := ended(t, dir)
	for _, cut := range []int{len(whole) - 1, len(whole) - 20} {
		require.NoError(t, os.WriteFile(journalOf(dir), []byte(whole[:cut]), 0o600))
		l, err := runlog.Open(dir, run, func(event.Event) {})
		require.NoError(t, err, "cut at %d", cut)
		require.NoError(t, l.Append(applied(77)))
		require.NoError(t, l.Close())
		require.Equal(t, []int64{0, 1, 77}, batchesIn(t, dir), "cut at %d", cut)
	}
}

// A journal that is missing or unreadable is refused, and kept beside a new one. So are marks: at least once, to take a
// run without its marks for one that has sent nothing would double its rows.
func TestDamaged(t *testing.T) {
	for name, c := range map[string]struct {
		file   func(dir string) string
		change func(text string) string // "" removes it
		says   string
	}{
		"no journal":      {journalOf, func(string) string { return "" }, "opening the journal"},
		"no whole line":   {journalOf, func(text string) string { return text[:10] }, "at byte 0, is incomplete"},
		"a garbled line":  {journalOf, func(text string) string { return strings.Replace(text, `{"batch":1,`, "{\"batch\":\x00", 1) }, "journal line 3"},
		"another run's":   {journalOf, func(text string) string { return strings.Replace(text, run, "other", 1) }, `it is the journal of run "other"`},
		"no marks":        {batchesOf, func(string) string { return "" }, "opening the journal"},
		"an unknown mark": {batchesOf, func(string) string { return "\x02\x00x" }, "the mark of batch 2 is 120"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := c.file(dir)
			if text := c.change(ended(t, dir)); text == "" {
				require.NoError(t, os.Remove(path))
			} else {
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			_, err := reopen(dir)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, path)
			require.ErrorAs(t, err, new(*runlog.DamagedError))

			require.NoError(t, runlog.Renew(dir, run))
			require.Empty(t, batchesIn(t, dir))
			require.FileExists(t, journalOf(dir)+".damaged", "for whoever wants to look into it")
		})
	}
}

// Whatever is seen in the state folder under a run's name can be read, and so resumed, however early somebody looks and
// the process is killed.
func TestNoRunBeforeItsRecord(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	looked := make(chan error, 1)
	go func() {
		var err error
		for err == nil && ctx.Err() == nil {
			err = allReadable(dir)
		}
		looked <- err
	}()
	for i := range 20 {
		r := record()
		r.Run = fmt.Sprintf("%s-%d", run, i)
		l, err := runlog.Create(dir, r)
		require.NoError(t, err)
		require.NoError(t, l.Close())
	}
	stop()
	require.NoError(t, <-looked)
	require.Len(t, entries(t, dir), 20, "and nothing else")
}

// allReadable opens every entry of the state folder but the hidden ones.
func allReadable(dir string) error {
	all, err := os.ReadDir(dir)
	for _, e := range all {
		if err == nil && !strings.HasPrefix(e.Name(), ".") {
			_, err = runlog.Read(dir, e.Name())
			_, missing := os.Stat(filepath.Join(dir, e.Name(), "journal.jsonl"))
			err = errors.Join(err, missing)
		}
	}
	return err
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range all {
		names = append(names, e.Name())
	}
	return names
}

// What a kill left a day ago goes with the next run that begins, unless a process is still at it.
func TestLeftoversAreSwept(t *testing.T) {
	dir := t.TempDir()
	yesterday := time.Now().Add(-25 * time.Hour)
	leave := func(name string, at time.Time) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.Mkdir(path, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(path, "journal.jsonl"), []byte("half"), 0o600))
		require.NoError(t, os.Chtimes(path, at, at))
		return name
	}
	leave(".new-20260102-030405-killed", yesterday)
	fresh := leave(".new-20260102-030405-justnow", time.Now().Add(-23*time.Hour))
	other := leave("20260101-000000-abcdef", yesterday)
	foreign := leave(".newspaper", yesterday)
	busy := leave(".new-20260102-030405-suspended", yesterday)
	lock := flock.New(filepath.Join(dir, busy, "lock"))
	held, err := lock.TryLock()
	require.NoError(t, err)
	require.True(t, held)
	require.NoError(t, os.Chtimes(filepath.Join(dir, busy), yesterday, yesterday))
	file := filepath.Join(dir, ".new-file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Chtimes(file, yesterday, yesterday))

	require.NoError(t, create(t, dir).Close())
	require.ElementsMatch(t, []string{fresh, other, foreign, busy, ".new-file", run}, entries(t, dir))
	require.NoError(t, lock.Unlock())
}

// Save leaves the old record or the new one, whatever a crash left beside it, and never a part of either.
func TestSaveIsAtomic(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir)
	path := filepath.Join(dir, run, "run.json")
	require.NoError(t, os.WriteFile(path+".new", []byte("{half"), 0o600))
	was, err := os.ReadFile(path)
	require.NoError(t, err)
	old, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = old.Close() }()
	r := l.Record()
	r.Stage = runlog.Verified
	require.NoError(t, l.Save(r))
	require.NoError(t, l.Close())
	text, err := io.ReadAll(old)
	require.NoError(t, err)
	require.Equal(t, string(was), string(text), "who has opened the old one reads it to its end")
	require.NoFileExists(t, path+".new")
	again, err := runlog.Read(dir, run)
	require.NoError(t, err)
	require.Equal(t, r, again)
}

func TestSaveThatFailsKeepsTheOldRecord(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir)
	// A folder where the new record is to be written.
	require.NoError(t, os.Mkdir(filepath.Join(dir, run, "run.json.new"), 0o700))
	r := record()
	r.Stage = runlog.Verified
	require.ErrorContains(t, l.Save(r), "saving the run's record")
	require.Equal(t, runlog.Loading, l.Record().Stage)
	require.NoError(t, l.Close())
	r, err := runlog.Read(dir, run)
	require.NoError(t, err)
	require.Equal(t, runlog.Loading, r.Stage)
}

func TestSyncWithManyWriters(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir)
	var writers sync.WaitGroup
	for w := range int64(8) {
		writers.Go(func() {
			for i := range int64(10) {
				require.NoError(t, l.Append(applied(w*10+i)))
				require.NoError(t, l.Sync())
			}
		})
	}
	writers.Wait()
	require.NoError(t, l.Close())
	batches := batchesIn(t, dir)
	slices.Sort(batches)
	require.Len(t, slices.Compact(batches), 80)
}

func TestUsable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	require.NoError(t, runlog.Usable(dir))
	require.Empty(t, entries(t, dir))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, runlog.Usable(file), "without which a run cannot be resumed")
	require.ErrorContains(t, runlog.Usable(filepath.Join(file, "below")), "choose another --state-dir")
}

func TestNewID(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	seen := map[string]bool{}
	for range 100 {
		id := runlog.NewID(now)
		require.Regexp(t, `^20260102-020405-[a-z2-7]{6}$`, id)
		require.False(t, seen[id])
		seen[id] = true
	}
}

// Runs reads without taking a run over, also one that a process works on, and Find goes by what it lists.
func TestRunsAndFind(t *testing.T) {
	state := t.TempDir()
	begin := func(run string, age time.Duration, shards int64) *runlog.Log {
		r := record()
		r.Run, r.Started, r.Plan.BatchRows, r.Plan.Shard.Count = run, time.Now().Add(-age), 2, shards
		l, err := runlog.Create(state, r)
		require.NoError(t, err)
		return l
	}
	old, running := begin("20260101-000000-aaaaaa", time.Hour, 0), begin("20260101-000000-bbbbbb", time.Minute, 0)
	require.NoError(t, old.Mark(0, event.Applied))
	require.NoError(t, old.Mark(1, event.Started))
	require.NoError(t, old.Append(event.Event{Batch: 2, Members: 2, Outcome: event.Applied}))
	require.NoError(t, old.Close())
	require.NoError(t, os.Mkdir(filepath.Join(state, "sweeps"), 0o700))
	require.NoError(t, begin("nightly-2", 2*time.Hour, 0).Close())
	require.NoError(t, begin("nightly", 2*time.Hour, 3).Close())

	all, err := runlog.Runs(state)
	require.NoError(t, err)
	require.Len(t, all, 4)
	require.Equal(t, "20260101-000000-bbbbbb", all[0].Run)
	require.True(t, all[0].Running)
	require.False(t, all[1].Running)
	plan := all[1].Plan
	require.Equal(t, plan.BatchSize(0)+plan.BatchSize(2)+plan.BatchSize(3), all[1].Rows)
	require.NoError(t, running.Close())

	any := func(runlog.Record) bool { return true }
	for name, want := range map[string]string{
		"last":                   "20260101-000000-bbbbbb",
		"20260101-000000-a":      "20260101-000000-aaaaaa",
		"20260101-000000-bbbbbb": "20260101-000000-bbbbbb",
		"20270101":               "20270101",
		"nightly":                "nightly",
		"nightly-2":              "nightly-2",
		"n":                      "n",
		"../../etc":              "../../etc",
	} {
		found, err := runlog.Find(state, name, any)
		require.NoError(t, err)
		require.Equal(t, want, found)
	}
	found, err := runlog.Find(state, "last", func(r runlog.Record) bool { return r.Run != "20260101-000000-bbbbbb" })
	require.NoError(t, err)
	require.Equal(t, "20260101-000000-aaaaaa", found)
	_, err = runlog.Find(state, "last", func(runlog.Record) bool { return false })
	require.ErrorIs(t, err, runlog.ErrNoRun)
	require.ErrorContains(t, err, "no run of this target in "+state)
	_, err = runlog.Find(state, "2026", any)
	require.ErrorContains(t, err, `2 runs begin with "2026": 20260101-000000-aaaaaa, 20260101-000000-bbbbbb`)
	_, err = runlog.Find(t.TempDir(), "last", any)
	require.ErrorIs(t, err, runlog.ErrNoRun)
}
