package results

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
)

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
	require.Equal(t, []Entry{as(head(), skipped(0)), as(head(), entry(1))}, r.Entries)
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

// Every entry says who pushed it, whoever went on with the sweep later.
func TestEntriesBelongToTheHeadAboveThem(t *testing.T) {
	at := path(t)
	first, second := head(), head()
	first.Version, second.Version = "1.0.0", "1.1.0"
	second.Machine.Host = "another"
	for i, h := range []Head{first, second} {
		f, err := Open(at)
		require.NoError(t, err)
		require.NoError(t, f.Begin(h))
		require.NoError(t, f.Append(as(head(), entry(i))), "what an entry says itself counts for nothing")
		require.NoError(t, f.Close())
	}
	r, err := Read(at)
	require.NoError(t, err)
	require.Equal(t, []Entry{as(first, entry(0)), as(second, entry(1))}, r.Entries)
	require.Equal(t, "1.1.0", r.Head.Version)
	f, err := Open(at)
	require.NoError(t, err)
	require.Equal(t, r.Entries, f.Record().Entries)
	require.NoError(t, f.Close())
}

// axes are so many more axes of so many values each, as JSON.
func axes(n, values int) string {
	var all strings.Builder
	for i := range n {
		list := make([]string, values)
		for v := range list {
			list[v] = fmt.Sprintf("%q", fmt.Sprint(v))
		}
		fmt.Fprintf(&all, `{"name":"a%d","values":[%s]},`, i, strings.Join(list, ","))
	}
	return all.String()
}

// negative puts -1 for the number of the first field of a name.
func negative(line, name string) string {
	return regexp.MustCompile(`("`+name+`":)[0-9.]+`).ReplaceAllString(line, "${1}-1")
}

func TestStrangeFiles(t *testing.T) {
	text := written(t, 2)
	lines := strings.SplitAfter(text, "\n")
	for name, c := range map[string]struct{ text, want string }{
		"nothing":            {"\n", "the file is empty"},
		"prose":              {"# a title", "neither a record nor a report"},
		"one line of prose":  {"{", "neither a record nor a report"},
		"other JSON":         {`{"a":1}`, "JSON that names no schema"},
		"a journal":          {`{"schema":"terapush.journal/v1","run":"x"}` + "\n", `its schema is "terapush.journal/v1"; this terapush reads terapush.sweep/v1`},
		"a newer record":     {`{"schema":"terapush.sweep/v2"}` + "\n", "another version of terapush wrote it"},
		"a newer report":     {`{"schema":"terapush.report/v7"}`, "another version of terapush wrote it"},
		"damage in between":  {lines[0] + "\x00\x00\n" + lines[2], "line 2"},
		"another part":       {lines[0] + strings.Replace(lines[1], `"part":0`, `"part":1`, 1), "line 2: cell 0 of part 1 is none of this sweep's"},
		"a cell too many":    {lines[0] + strings.Replace(lines[1], `"cell":0`, `"cell":3`, 1), "line 2: cell 3"},
		"a repeat below 0":   {lines[0] + strings.Replace(lines[1], `"repeat":0`, `"repeat":-1`, 1), "line 2: repeat -1"},
		"a rate below 0":     {lines[0] + negative(lines[1], "rows_per_second"), "line 2: result: rows_per_second is -1: it cannot be below 0"},
		"a time below 0":     {lines[0] + lines[1] + negative(lines[2], "p99"), "line 3: batch_seconds: p99 is -1"},
		"a moment before":    {lines[0] + strings.Replace(lines[1], `"moments":null`, `"moments":[{"at":-1}]`, 1), "line 2: timeline: at is -1"},
		"a push before":      {lines[0] + negative(lines[1], "seconds"), "line 2: seconds is -1: no push takes less than 0"},
		"no number":          {lines[0] + strings.Replace(negative(lines[1], "rows_per_second"), "-1", "1e999", 1) + lines[2], "line 2: json: cannot unmarshal number 1e999"},
		"repeats below 0":    {negative(lines[0], "repeats"), "line 1: repeats is -1"},
		"facts below 0":      {strings.Replace(lines[0], `"cells":3`, `"cells":3,"facts":{"points":[{"seconds":-1}]}`, 1), "line 1: part 0: facts: seconds is -1"},
		"no end":             {lines[0] + strings.Repeat("x", maxLine+1), "line 2: longer than 16 MiB, which no report is"},
		"cells from nowhere": {strings.Replace(lines[0], `"cells":3`, `"cells":2000000000`, 1) + lines[1], "line 1: part 0: its axes make 3 cells, and it says 2000000000"},
		"too many cells":     {strings.Replace(lines[0], `"axes":[`, `"axes":[`+axes(9, 10), 1), "line 1: more than 10000 cells"},
		"an axis twice":      {strings.Replace(lines[0], `"axes":[`, `"axes":[{"name":"workers","values":["1"]},`, 1), `line 1: part 0: the axis "workers" is there twice`},
		"a value twice":      {strings.Replace(lines[0], `["1","2","4"]`, `["1","2","1"]`, 1), `the axis "workers" has the value "1" twice`},
		"no values":          {strings.Replace(lines[0], `["1","2","4"]`, `[]`, 1), `the axis "workers" has no values`},
		"a part twice":       {strings.Replace(lines[0], `"parts":[`, `"parts":[{"cells":1},`, 1), `line 1: the part "" is there twice`},
		"a later sweep":      {text + strings.Replace(lines[0], `"digest":"d1"`, `"digest":"d2"`, 1), "line 4: this head is of another sweep than the one before it"},
		"a later limit": {text + strings.NewReplacer(`"digest":"d1"`, `"digest":"d2"`, `"repeats":2`, `"repeats":2,"limit_seconds":90`).Replace(lines[0]),
			"line 4: this head is of another sweep than the one before it: limit was none, now it is 1m30s"},
		"fewer cells later":   {text + strings.NewReplacer(`["1","2","4"]`, `["1"]`, `"cells":3`, `"cells":1`).Replace(lines[0]), "line 4: this head has the digest of the one before it and other cells"},
		"a bad last line":     {lines[0] + strings.TrimSpace(strings.Replace(lines[1], `"cell":0`, `"cell":3`, 1)), "line 2: cell 3"},
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

	p.Result.RowsPerSecond = -5
	_, err = Read(put(t, write()))
	require.ErrorContains(t, err, "result: rows_per_second is -5: it cannot be below 0")
	p.Result.RowsPerSecond, p.Warnings = 0, []string{strings.Repeat("x", maxLine)}
	_, err = Read(put(t, write()))
	require.ErrorContains(t, err, "longer than 16 MiB")
	p.Warnings = nil

	_, err = Read(put(t, write()+write()))
	require.ErrorContains(t, err, "something behind the report")
	p.Result.Outcome, p.Result.Error = report.Failed, "refused"
	r, err = Read(put(t, write()))
	require.NoError(t, err)
	require.Equal(t, Failed, r.Entries[0].Status)
	require.Equal(t, "refused", r.Entries[0].Error)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"schema":"terapush.sweep/v1","parts":[{"cells":1}]}` + "\n" + `{"part":0,"cell":0,"status":"measured"}` + "\n"))
	f.Add([]byte(`{"schema":"terapush.sweep/v1"`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r, again Record
		whole, err := parseLines(bytes.NewReader(text), &r)
		require.LessOrEqual(t, whole, int64(len(text)))
		if err != nil {
			return
		}
		rest, err := parseLines(bytes.NewReader(text[:whole]), &again)
		require.NoError(t, err, "what is kept can be read")
		require.Equal(t, whole, rest)
		require.False(t, again.Torn)
		again.Torn = r.Torn
		require.Equal(t, r, again)
	})
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
	f.Fuzz(func(t *testing.T, text []byte) {
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
