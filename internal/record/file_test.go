package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

func head() Head {
	return Head{
		Name: "yugabyte", Title: "rows <per> transaction", Scale: "ci", Digest: "d1", Repeats: 2, Machine: ThisMachine(),
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

// written is the text of a record with a head and so many entries.
func written(t *testing.T, entries int) string {
	at := path(t)
	f, err := Open(at)
	require.NoError(t, err)
	require.Empty(t, f.Record().Head.Schema)
	require.NoError(t, f.Begin(head()))
	for i := range entries {
		require.NoError(t, f.Append(entry(i)))
	}
	require.NoError(t, f.Close())
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
		if next := strings.IndexByte(text[cut:], '\n'); next > 30 && cut > 100 && cut%29 > 0 {
			continue // the middle of a line is like any other
		}
		at := put(t, text[:cut])
		whole := strings.Count(text[:cut], "\n")
		f, err := Open(at)
		require.NoError(t, err, "cut at %d", cut)
		require.Equal(t, cut > 0 && text[cut-1] != '\n', f.Torn(), "cut at %d", cut)
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
	f, err := Open(put(t, lines[0]+lines[1]+"\x00\x00"+lines[2][2:]))
	require.NoError(t, err)
	require.True(t, f.Torn())
	require.Len(t, f.Record().Entries, 1)
	require.NoError(t, f.Close())
}

func TestOneProcessAtATime(t *testing.T) {
	at := put(t, written(t, 1))
	f, err := Open(at)
	require.NoError(t, err)
	_, err = Open(at)
	require.ErrorContains(t, err, "another process is adding to the record "+at)
	_, err = Read(at)
	require.NoError(t, err, "who only reads need not wait")
	require.NoError(t, f.Close())
	f, err = Open(at)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestResetAndASecondHead(t *testing.T) {
	at := put(t, written(t, 2))
	f, err := Open(at)
	require.NoError(t, err)
	more := head()
	more.Repeats = 5
	require.NoError(t, f.Begin(more))
	require.NoError(t, f.Append(entry(2)))
	require.NoError(t, f.Close())
	r, err := Read(at)
	require.NoError(t, err)
	require.Equal(t, 5, r.Head.Repeats)
	require.Len(t, r.Entries, 3)

	f, err = Open(at)
	require.NoError(t, err)
	require.NoError(t, f.Reset())
	require.ErrorContains(t, f.Append(entry(0)), "no head")
	require.NoError(t, f.Close())
	require.NoFileExists(t, at, "an empty file is nobody's record")
}

func TestWhatWasSkippedAndDoneIsThereOnce(t *testing.T) {
	at := put(t, written(t, 0))
	f, err := Open(at)
	require.NoError(t, err)
	skipped := func(cell int) Entry {
		return Entry{Cell: cell, Status: Skipped, Error: "the time was up", Settings: []Setting{}, Started: head().Started}
	}
	for _, e := range []Entry{skipped(0), skipped(1), entry(1)} {
		require.NoError(t, f.Append(e))
	}
	require.NoError(t, f.Close())
	r, err := Read(at)
	require.NoError(t, err)
	require.Equal(t, []Entry{skipped(0), entry(1)}, r.Entries)
}

func TestStrangeFiles(t *testing.T) {
	text := written(t, 2)
	lines := strings.SplitAfter(text, "\n")
	for name, c := range map[string]struct{ text, want string }{
		"nothing":             {"\n", "the file is empty"},
		"prose":               {"# a title", "neither a record nor a report"},
		"one line of prose":   {"{", "neither a record nor a report"},
		"other JSON":          {`{"a":1}`, "JSON that names no schema"},
		"a journal":           {`{"schema":"terapush.journal/v1","run":"x"}` + "\n", `its schema is "terapush.journal/v1"; this terapush reads terapush.sweep/v1`},
		"a newer record":      {`{"schema":"terapush.sweep/v2"}` + "\n", "another version of terapush wrote it"},
		"a newer report":      {`{"schema":"terapush.report/v7"}`, "another version of terapush wrote it"},
		"damage in between":   {lines[0] + "\x00\x00\n" + lines[2], "line 2"},
		"another part":        {lines[0] + strings.Replace(lines[1], `"part":0`, `"part":1`, 1), "line 2: cell 0 of part 1 is none of this sweep's"},
		"a cell too many":     {lines[0] + strings.Replace(lines[1], `"cell":0`, `"cell":3`, 1), "line 2: cell 3"},
		"an unheard-of state": {lines[0] + strings.Replace(lines[1], `"measured"`, `"guessed"`, 1) + lines[2], `line 2: the status is "guessed"`},
	} {
		t.Run(name, func(t *testing.T) {
			at := put(t, c.text)
			_, err := Read(at)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, at)
			if c.text == "{" {
				return // could be the beginning of a record, and nothing is lost with it
			}
			_, err = Open(at)
			require.Error(t, err)
			got, err := os.ReadFile(at)
			require.NoError(t, err)
			require.Equal(t, c.text, string(got), "it is not ours to change")
		})
	}
	_, err := Read(filepath.Join(t.TempDir(), "nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestNewerFieldsAreToleratedAndOtherSpacingToo(t *testing.T) {
	text := strings.ReplaceAll(written(t, 1), `"repeat":0`, `"repeat":0,"phase_of_the_moon":{"full":true}`)
	r, err := Read(put(t, strings.Replace(text, `{"schema":`, `{ "schema": `, 1)))
	require.NoError(t, err)
	require.Len(t, r.Entries, 1)
}

func TestAReportIsARecordOfOne(t *testing.T) {
	var p report.Report
	p.Run.ID, p.Plan.Method, p.Plan.Workers, p.Plan.BatchRows, p.Target.URL = "r", "copy", 8, 1000, "postgres://u@h/d"
	p.Result.Outcome, p.Phases.Load, p.Phases.Verify = report.OK, 2, 3
	write := func() string {
		var out strings.Builder
		require.NoError(t, p.WriteJSON(&out))
		return out.String()
	}
	r, err := Read(put(t, write()))
	require.NoError(t, err)
	require.Empty(t, r.Head.Name)
	require.Equal(t, []Part{{Cells: 1}}, r.Head.Parts)
	require.Len(t, r.Entries, 1)
	require.Equal(t, Measured, r.Entries[0].Status)
	require.Equal(t, 5.0, r.Entries[0].Seconds)
	p.Plan.Options = map[string]string{} // always there
	require.Equal(t, p.Plan, r.Entries[0].Report.Plan)

	_, err = Read(put(t, write()+write()))
	require.ErrorContains(t, err, "something behind the report")
	p.Result.Outcome, p.Result.Error = report.Failed, "refused"
	r, err = Read(put(t, write()))
	require.NoError(t, err)
	require.Equal(t, Failed, r.Entries[0].Status)
	require.Equal(t, "refused", r.Entries[0].Error)
}

func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	f, err := Open(put(t, written(t, 1)))
	require.NoError(t, err)
	real := f.file
	f.file = full
	err = f.Append(entry(1))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "the disk of the record "+f.path+" is full")
	f.file = real
	require.NoError(t, f.Append(entry(1)), "where it was before")
	require.NoError(t, f.Close())
	r, err := Read(f.path)
	require.NoError(t, err)
	require.Len(t, r.Entries, 2)
}

func TestPlacesWithoutFiles(t *testing.T) {
	for _, at := range []string{filepath.Join(t.TempDir(), "no", "where"), t.TempDir()} {
		_, err := Open(at)
		require.Error(t, err)
		require.False(t, errors.Is(err, errors.ErrUnsupported))
	}
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	require.Equal(t, runtime.GOARCH, m.Arch)
	require.Positive(t, m.Cores)
	if runtime.GOOS == "linux" {
		require.Regexp(t, `^Linux \d+\.`, m.OS)
		require.Positive(t, m.MemoryBytes)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"schema":"terapush.sweep/v1","parts":[{"cells":1}]}` + "\n" + `{"part":0,"cell":0,"status":"measured"}` + "\n"))
	f.Add([]byte(`{"schema":"terapush.sweep/v1"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r, again Record
		whole, err := parse(text, &r)
		require.LessOrEqual(t, whole, len(text))
		if err != nil {
			return
		}
		rest, err := parse(text[:whole], &again)
		require.NoError(t, err, "what is kept can be read")
		require.Equal(t, whole, rest)
		require.Equal(t, r, again)
	})
}
