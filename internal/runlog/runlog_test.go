package runlog_test

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/event"
)

const runID = "20260102-030405-abcdef"

func record() runlog.Record {
	return runlog.Record{
		Run: runID, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Stage: runlog.Loading,
		Target: "memory://h/d", Table: "public.documents", Identity: "16384/2", Plan: run.Plan{Spec: run.Spec{Rows: 7, Dataset: "documents"}},
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
	text, err := os.ReadFile(pieceOf(dir, 1))
	require.NoError(t, err)
	return string(text)
}

// reopen returns the batches in the journal.
func reopen(dir string) (batches []int64, err error) {
	l, err := open(dir, func(e event.Event) { batches = append(batches, e.Batch) })
	if err != nil {
		return nil, err
	}
	return batches, l.Close()
}

// open opens the run, which must be whole.
func open(dir string, f func(event.Event)) (*runlog.Log, error) {
	return runlog.Open(dir, runID, f, nil)
}

// batchesIn returns the batches in the journal, which must be whole.
func batchesIn(t *testing.T, dir string) []int64 {
	t.Helper()
	batches, err := reopen(dir)
	require.NoError(t, err)
	return batches
}

func pieceOf(dir string, n int) string {
	return filepath.Join(dir, runID, fmt.Sprintf("journal-%012d.jsonl", n))
}

func TestCreateAndOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	l := create(t, dir)
	require.NoError(t, l.Append(applied(0)))
	r := l.Record()
	r.Stage = runlog.Loaded
	require.NoError(t, l.Save(r))
	require.NoError(t, l.Close())

	l, err := open(dir, func(event.Event) {})
	require.NoError(t, err)
	want := record()
	want.Stage = runlog.Loaded
	require.Equal(t, want, l.Record())
	require.Equal(t, "7", want.Flag("rows"))
	require.Empty(t, want.Flag("seed"))
	require.NoError(t, l.Append(event.Event{Batch: 1, Outcome: event.Started}))
	require.NoError(t, l.Close())

	require.Equal(t, []int64{0, 1}, batchesIn(t, dir))
	info, err := os.Stat(pieceOf(dir, 1))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// A mark is replayed as the event that it stands for, in its place among the others.
func TestMarks(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir)
	failed := event.Event{Batch: 3, Attempt: 1, Outcome: event.NotApplied, Error: strings.Repeat("a long message\n", 10_000)}
	require.NoError(t, l.Mark(3, event.Started))
	require.NoError(t, l.Append(failed))
	require.NoError(t, l.Mark(70_000, event.Applied))
	require.NoError(t, l.Mark(0, event.Already))
	require.NoError(t, l.Close())

	text, err := os.ReadFile(pieceOf(dir, 1))
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	require.Equal(t, []string{"begun 3", "in 70000", "in 0", ""}, slices.Delete(lines[1:], 1, 2))

	var got []event.Event
	l, err = open(dir, func(e event.Event) { got = append(got, e) })
	require.NoError(t, err)
	require.NoError(t, l.Close())
	mark := func(n int64, o event.Outcome) event.Event { return event.Event{Batch: n, Attempt: 1, Outcome: o} }
	require.Equal(t, []event.Event{mark(3, event.Started), failed, mark(70_000, event.Applied), mark(0, event.Applied)}, got)
}

func TestOneOwner(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir)
	_, err := reopen(dir)
	require.EqualError(t, err, "another process is working on run "+runID)
	_, err = runlog.Create(dir, record())
	require.ErrorContains(t, err, "file exists")
	require.Equal(t, []string{runID}, entries(t, dir), "who could not create a run leaves nothing")
	_, err = runlog.Read(dir, runID)
	require.NoError(t, err, "but everybody may read the record")
	require.NoError(t, l.Close())
	batchesIn(t, dir)
}

// Who lists the runs holds the lock for a moment, and must not keep a resume from it.
func TestOpenWhileRunsAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, create(t, dir).Close())
		look := flock.New(filepath.Join(dir, runID, "lock"), flock.SetFlag(os.O_RDONLY))
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
	folder := filepath.Join(dir, runID)
	for i := range 1000 {
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprint(i)), nil, 0o600))
	}
	removed := make(chan error, 1)
	go func() { removed <- l.Remove() }()
	for there := true; there; {
		_, unread := runlog.Read(dir, runID)
		_, err := os.Stat(folder)
		if there = err == nil; there {
			require.NoError(t, unread)
		}
	}
	require.NoError(t, <-removed)
	require.Empty(t, entries(t, dir))
}

// What a process leaves that is killed before it has launched its run, or that hides it, is told of until it is freed.
func TestKilledWhenItHadBegun(t *testing.T) {
	for name, launch := range map[string]func(*runlog.Log){
		"not launched": func(*runlog.Log) {},
		"hidden":       func(l *runlog.Log) { require.NoError(t, l.Launch(record(), true)) },
	} {
		dir := t.TempDir()
		l, err := runlog.NewDraft(dir, record())
		require.NoError(t, err, name)
		launch(l)
		found := func(answer error) (all []string) {
			err := runlog.Killed(dir, func(r runlog.Record) error { all = append(all, r.Run); return answer })
			require.ErrorIs(t, err, answer)
			return all
		}
		require.Empty(t, found(nil), "it is at work")
		require.NoError(t, l.Close())
		_, err = runlog.Read(dir, runID)
		require.ErrorIs(t, err, runlog.ErrNoRun)

		require.Equal(t, []string{runID}, found(errors.New("the server is down")))
		require.Equal(t, []string{runID}, found(nil))
		require.Empty(t, entries(t, dir), name)
	}

	dir := t.TempDir()
	l, err := runlog.NewDraft(dir, runlog.Record{Run: runID})
	require.NoError(t, err)
	require.NoError(t, l.Launch(record(), false))
	require.NoError(t, l.Mark(7, event.Applied))
	require.NoError(t, l.Close())
	require.NoError(t, runlog.Killed(dir, func(runlog.Record) error { return errors.New("it can be resumed") }))
	require.Equal(t, []string{runID}, entries(t, dir))
	require.Equal(t, []int64{7}, batchesIn(t, dir))
	read, err := runlog.Read(dir, runID)
	require.NoError(t, err)
	require.Equal(t, record().Table, read.Table)
}

// What cannot lose its name is not half removed.
func TestRemoveIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	l := create(t, dir)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".new-"+runID, "in the way"), 0o700))
	require.ErrorContains(t, l.Remove(), "removing the run's state folder")
	require.Empty(t, batchesIn(t, dir), "the run is whole, and free")
}

func TestRunsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, create(t, dir).Close())
	require.NoError(t, os.Rename(filepath.Join(dir, runID), filepath.Join(dir, "copy")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	for id, want := range map[string]string{
		"":          "is not the id of a run",
		"../other":  "is not the id of a run",
		`a\b`:       "is not the id of a run",
		"x'; DROP":  "is not the id of a run",
		"2026-none": "no run \"2026-none\" in",
		"empty":     "no run \"empty\" in",
		"copy":      "has the record of run \"" + runID + "\": was the folder copied or renamed?",
	} {
		_, err := runlog.Open(dir, id, func(event.Event) {}, nil)
		require.ErrorContains(t, err, want, id)
		_, err = runlog.Read(dir, id)
		require.ErrorContains(t, err, want, id)
	}
	r := record()
	r.Run = "../escape"
	_, err := runlog.Create(dir, r)
	require.ErrorContains(t, err, "is not the id of a run")
}

// What a process that was killed, or had no room on the disk, has left of a piece is nobody's loss: the next one makes
// its own.
func TestHalfAPiece(t *testing.T) {
	dir := t.TempDir()
	whole := ended(t, dir)
	for n, cut := range []int{0, 10, len(whole) - 5} {
		require.NoError(t, os.WriteFile(pieceOf(dir, 2+2*n), []byte(whole[:cut]), 0o600))
		r, err := runlog.Read(dir, runID)
		require.NoError(t, err)
		require.Equal(t, runID, r.Run)
		batches := batchesIn(t, dir)
		require.Equal(t, []int64{0, 1, 2, 0, 1}[:len(batches)], batches)
		require.Equal(t, cut > 10, len(batches) == 5)
	}
}

// A journal of which a part is missing or unreadable is refused: at least once, to take a run without its marks for one
// that has sent nothing would double its rows. Who can do without that part is told, and gets the rest.
func TestDamaged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(text string) string // "" removes it
		says   string
		rest   []int64
	}{
		"a missing piece": {func(string) string { return "" }, "journal-000000000001.jsonl is missing", nil},
		"a garbled line":  {func(text string) string { return strings.Replace(text, `{"batch":1,`, `{"ba`, 1) }, "line 3", []int64{0}},
		"an empty line":   {func(text string) string { return strings.Replace(text, `{"batch":1,`, "\n", 1) }, "line 3", []int64{0}},
		"an unknown mark": {func(text string) string { return strings.Replace(text, `{"batch":1,`, "out 1\n", 1) }, "line 3", []int64{0}},
		"a mark of nothing": {
			func(text string) string { return strings.Replace(text, `{"batch":1,`, "in -1\n", 1) }, "line 3", []int64{0},
		},
		"an outcome of a later version": {
			func(text string) string { return strings.Replace(text, `"applied"`, `"halved"`, 1) },
			`line 2: the outcome is "halved", which this version of terapush does not know`, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path, whole := pieceOf(dir, 1), ended(t, dir)
			require.Equal(t, []int64{0, 1, 2}, batchesIn(t, dir)) // and there is a second piece
			if text := c.change(whole); text == "" {
				require.NoError(t, os.Remove(path))
			} else {
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			for range 2 {
				_, err := reopen(dir)
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, filepath.Base(path))
				require.ErrorAs(t, err, new(*runlog.DamagedError))
			}

			var rest []int64
			l, err := runlog.Open(dir, runID, func(e event.Event) { rest = append(rest, e.Batch) }, func(r runlog.Record) bool { return r.Run == runID })
			require.NoError(t, err)
			require.ErrorContains(t, l.Damage(), c.says)
			require.Equal(t, c.rest, rest)
			require.NoError(t, l.Close())
		})
	}
}

// What another version wrote is left alone.
func TestOtherSchema(t *testing.T) {
	dir := t.TempDir()
	text := strings.Replace(ended(t, dir), "journal/v3", "journal/v2", 1)
	require.NoError(t, os.WriteFile(pieceOf(dir, 1), []byte(text), 0o600))
	_, err := reopen(dir)
	require.ErrorContains(t, err, `its schema is "terapush.journal/v2", this terapush reads "terapush.journal/v3"`)
	require.NotErrorAs(t, err, new(*runlog.DamagedError))
}

// A lock may not hold, as on some network file systems. Who takes the run over finds all that was written, and the
// process that had it keeps nothing any more. The same where somebody forgets the run.
func TestTakenOverInAFolder(t *testing.T) {
	for name, act := range map[string]func(l *runlog.Log) error{
		"mark": func(l *runlog.Log) error { return l.Mark(9, event.Applied) },
		"line": func(l *runlog.Log) error { return l.Append(applied(9)) },
		"save": func(l *runlog.Log) error { return l.Save(l.Record()) },
		"sync": func(l *runlog.Log) error {
			_ = l.Mark(9, event.Applied)
			return l.Sync()
		},
	} {
		for _, forgotten := range []bool{false, true} {
			t.Run(fmt.Sprint(name, forgotten), func(t *testing.T) {
				dir := t.TempDir()
				first := create(t, dir)
				require.NoError(t, first.Mark(1, event.Applied))
				require.NoError(t, os.Remove(filepath.Join(dir, runID, "lock")))
				var found []int64
				second, err := open(dir, func(e event.Event) { found = append(found, e.Batch) })
				require.NoError(t, err)
				require.Equal(t, []int64{1}, found)
				if forgotten {
					require.NoError(t, second.Remove())
				}
				require.Eventually(t, func() bool { return errors.Is(act(first), runlog.ErrTakenOver) }, 10*time.Second, time.Millisecond)
				require.ErrorIs(t, first.Sync(), runlog.ErrTakenOver)
				require.ErrorIs(t, first.Close(), runlog.ErrTakenOver)
				if !forgotten {
					require.NoError(t, second.Save(second.Record()))
					require.NoError(t, second.Close())
				}
			})
		}
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
		r.Run = fmt.Sprintf("%s-%d", runID, i)
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
		require.NoError(t, os.WriteFile(filepath.Join(path, "journal-000000000001.jsonl"), []byte("half"), 0o600))
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
	require.ElementsMatch(t, []string{fresh, other, foreign, busy, ".new-file", runID}, entries(t, dir))
	require.NoError(t, lock.Unlock())
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
	begin := func(runID string, age time.Duration, shards int64) *runlog.Log {
		r := record()
		r.Run, r.Started, r.Plan.BatchRows, r.Plan.Shard.Count = runID, time.Now().Add(-age), 2, shards
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
	require.NoError(t, begin("20260202-000000-cccccc.1", 3*time.Hour, 0).Close())
	require.NoError(t, begin("20260202-000000-cccccc.2", 3*time.Hour, 0).Close())

	all, err := runlog.Runs(state)
	require.NoError(t, err)
	require.Len(t, all, 6)
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
		"20260202":               "20260202-000000-cccccc",

		"20260202-000000-cccccc.2": "20260202-000000-cccccc.2",
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
	require.ErrorContains(t, err, `3 runs begin with "2026": 20260101-000000-aaaaaa, 20260101-000000-bbbbbb, 20260202-000000-cccccc`)
	_, err = runlog.Find(t.TempDir(), "last", any)
	require.ErrorIs(t, err, runlog.ErrNoRun)
}
