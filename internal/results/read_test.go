package results

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

func TestWhatWasSkippedAndDoneIsThereOnce(t *testing.T) {
	skipped := func(cell int) Entry {
		return Entry{Cell: cell, Status: Skipped, Error: "the time was up", Settings: []Setting{}, Started: head().Started}
	}
	r := opened(t, put(t, written(t, 0)), func(f *File) {
		for _, e := range []Entry{skipped(0), skipped(1), entry(1)} {
			require.NoError(t, f.Append(e))
		}
	})
	require.Equal(t, []Entry{skipped(0), entry(1)}, r.Entries)
}

// One rule for everyone: the first that was measured, else the last failure, else what was skipped last.
func TestLatest(t *testing.T) {
	e := func(status Status, why string, repeat int, warmUp bool) Entry {
		return Entry{Status: status, Error: why, Repeat: repeat, WarmUp: warmUp}
	}
	all := []Entry{
		e(Measured, "warm", 0, true), e(Skipped, "old", 0, false), e(Skipped, "a", 1, false), e(Failed, "first", 0, false),
		e(Measured, "second", 0, false), e(Skipped, "b", 1, false), e(Skipped, "late", 0, false), e(Limited, "third", 0, false),
		e(Failed, "once", 2, false), e(Failed, "twice", 2, false), e(Skipped, "c", 2, false),
	}
	require.Equal(t, []Entry{all[0], all[4], all[5], all[9]}, Record{Entries: all}.Latest())
	require.Equal(t, "late", all[6].Error, "the record's own list stays")
}

func TestStrangeFiles(t *testing.T) {
	text := written(t, 2)
	lines := strings.SplitAfter(text, "\n")
	r, err := Read(put(t, strings.ReplaceAll(text, `"repeat":0`, `"repeat":0,"phase_of_the_moon":{"full":true}`)))
	require.NoError(t, err, "fields of later versions are tolerated")
	require.Len(t, r.Entries, 2)
	for name, c := range map[string]struct{ text, want string }{
		"nothing":            {"\n", "neither a record nor a report"},
		"prose":              {"# a title", "neither a record nor a report"},
		"one line of prose":  {"{", "neither a record nor a report"},
		"other JSON":         {`{"a":1}`, "neither a record nor a report"},
		"a journal":          {`{"schema":"terapush.journal/v1","run":"x"}` + "\n", `the schema of the file is "terapush.journal/v1": want terapush.sweep/v1`},
		"a newer record":     {`{"schema":"terapush.sweep/v2"}` + "\n", "the schema of the file is"},
		"a newer report":     {`{"schema":"terapush.report/v7"}`, "the schema of the file is"},
		"damage in between":  {lines[0] + "\x00\x00\n" + lines[2], "line 2"},
		"another part":       {lines[0] + strings.Replace(lines[1], `"part":0`, `"part":1`, 1), "line 2: the sweep has no case 0 of part 1"},
		"a cell too many":    {lines[0] + strings.Replace(lines[1], `"cell":0`, `"cell":3`, 1), "line 2: the sweep has no case 3"},
		"no number":          {lines[0] + regexp.MustCompile(`("rows_per_second":)[0-9.]+`).ReplaceAllString(lines[1], "${1}1e999") + lines[2], "line 2: json: cannot unmarshal number 1e999"},
		"no end":             {lines[0] + strings.Repeat("x", maxLine+1), "line 2: longer than 16 MiB"},
		"cells from nowhere": {strings.Replace(lines[0], `"cells":3`, `"cells":2000000000`, 1) + lines[1], "line 1: part 0: its axes make 3 cases, not 2000000000"},
		"too many cells":     {strings.Replace(lines[0], `"axes":[`, `"axes":[`+strings.Repeat(`{"name":"a","values":["0","1"]},`, 64), 1), "line 1: more than 10000 cases"},
		"a later sweep":      {text + strings.Replace(lines[0], `"digest":"d1"`, `"digest":"d2"`, 1), "line 4: this head is of another sweep than the one before it"},
		"a later limit": {text + strings.NewReplacer(`"digest":"d1"`, `"digest":"d2"`, `"repeats":2`, `"repeats":2,"limit_seconds":90`).Replace(lines[0]),
			"line 4: this head is of another sweep than the one before it: limit was not given, now it is 1m30s"},
		"fewer cells later":   {text + strings.NewReplacer(`["1","2","4"]`, `["1"]`, `"cells":3`, `"cells":1`).Replace(lines[0]), "line 4: the sweep has no case 1 of part 0"},
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
			_, err = Look(at)
			require.ErrorContains(t, err, at)
			_, err = Open(at)
			require.Error(t, err)
			got, err := os.ReadFile(at)
			require.NoError(t, err)
			require.Equal(t, c.text, string(got), "it is not ours to change")
		})
	}
	_, err = Read(filepath.Join(t.TempDir(), "nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)
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
	require.ErrorContains(t, err, "reading the report: ")
	p.Result.Outcome, p.Result.Error = report.Failed, "refused"
	r, err = Read(put(t, write()))
	require.NoError(t, err)
	require.Equal(t, Failed, r.Entries[0].Status)
	require.Equal(t, "refused", r.Entries[0].Error)
}

// Records come from anywhere: whatever is in them, reading ends, and what comes of it is bounded and can be compared.
func FuzzRead(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json*")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(text[:min(len(text), 8<<10)]) // mutations of a long file are of reports alone
		_, err = read(bytes.NewReader(text))
		require.NoError(f, err)
	}
	f.Add([]byte(`{"schema":"terapush.sweep/v1","parts":[{"cells":2000000000}]}` + "\n"))
	f.Add([]byte(`{"schema":"terapush.sweep/v1","digest":"d","parts":[{"axes":[{"name":"a","values":["1"]},{"name":"a","values":["1"]}],"cells":1}]}` + "\n"))
	f.Add([]byte(`{"schema":"terapush.sweep/v1","parts":[{"axes":[{"name":"a","values":["1","2"]}],"cells":2}]}` + "\n" + `{"cell":1,"status":"skipped"}`))
	f.Add([]byte(`{"schema":"terapush.sweep/v1"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var first, again Record
		if whole, err := parseLines(bytes.NewReader(text), &first); err == nil {
			rest, err := parseLines(bytes.NewReader(text[:whole]), &again)
			require.NoError(t, err, "what is kept can be read")
			require.Equal(t, whole, rest)
			require.False(t, again.Torn)
			again.Torn = first.Torn
			require.Equal(t, first, again)
		}
		r, err := read(bytes.NewReader(text))
		if err != nil {
			return
		}
		cells := 0
		for _, p := range r.Head.Parts {
			cells += p.Cells
		}
		require.LessOrEqual(t, cells, MaxCells)
		for _, e := range r.Entries {
			require.Less(t, e.Cell, r.Head.Parts[e.Part].Cells)
		}
		require.Equal(t, r.Entries, r.Latest())
		require.True(t, r.Head.Same(r.Head))
		other := r.Head
		other.Digest, other.Parts = "x"+other.Digest, append([]Part{}, other.Parts...)
		for i := range other.Parts {
			other.Parts[i].Axes = nil
		}
		require.NotEmpty(t, r.Head.Difference(other))
		require.NotEmpty(t, other.Difference(r.Head))
	})
}
