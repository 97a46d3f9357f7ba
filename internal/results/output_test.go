package results_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
)

func TestGolden(t *testing.T) {
	ends := map[string]results.Format{"txt": results.Text, "md": results.Markdown, "json": results.JSON, "bench": results.Benchmarks}
	for _, c := range []struct{ name, files, ends string }{
		{"four-methods", "four-methods.jsonl", "txt md"},
		{"workers", "workers.jsonl", "txt"},
		{"two-parts", "two-parts.jsonl", "txt md"},
		{"one-run", "run-4.json", "txt json"},
		{"two-runs", "run-8.json run-4.json", "txt"},
		{"all", "workers.jsonl run-4.json two-parts.jsonl run-8.json", "bench"},
	} {
		of := records(t, strings.Fields(c.files)...)
		for end := range strings.FieldsSeq(c.ends) {
			t.Run(c.name+"."+end, func(t *testing.T) { golden.Equal(t, "golden/"+c.name+"."+end, rendered(t, ends[end], of)) })
		}
	}
}

func TestCompareGolden(t *testing.T) {
	for name, files := range map[string][2]string{
		"compare-workers":      {"workers.jsonl", "workers-after.jsonl"},
		"compare-runs":         {"run-4.json", "run-8.json"},
		"compare-strangers":    {"two-parts.jsonl", "run-8.json"},
		"compare-four-methods": {"four-methods.jsonl", "four-methods.jsonl"},
	} {
		of := records(t, files[0], files[1])
		if name == "compare-four-methods" {
			for i := range of[1].Entries {
				if e := &of[1].Entries[i]; e.Cell == 5 {
					e.Status, e.Report, e.Error = results.Failed, nil, "disk full"
				}
			}
		}
		c := results.Compare(of[0], of[1], 0.05)
		var text, object bytes.Buffer
		require.NoError(t, c.Write(&text, results.Text))
		golden.Equal(t, "golden/"+name+".txt", text.String())
		if name == "compare-four-methods" {
			var markdown strings.Builder
			require.NoError(t, c.Write(&markdown, results.Markdown))
			golden.Equal(t, "golden/"+name+".md", markdown.String())
		}
		require.NoError(t, c.Write(&object, results.JSON))
		if name == "compare-runs" {
			golden.Equal(t, "golden/"+name+".json", object.String())
		}
		require.NotContains(t, object.String(), "null", name)
	}
}

func TestNothingIsNullInJSON(t *testing.T) {
	for _, r := range everything(t) {
		require.NotContains(t, rendered(t, results.JSON, []results.Record{r}), "null", r.File)
	}
}

func TestTheSameRecordsGiveTheSameBytes(t *testing.T) {
	of := records(t, "two-parts.jsonl", "run-4.json", "run-8.json")
	for _, f := range results.Formats() {
		first := rendered(t, f, of)
		for range 5 { // maps of a few settings often have the same order
			require.Equal(t, first, rendered(t, f, of), f)
		}
	}
}

type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	of := records(t, "run-4.json", "run-8.json")
	for _, f := range results.Formats() {
		require.ErrorContains(t, f.Write(io.Discard, nil), "there is no table to show", f)
		require.ErrorIs(t, f.Write(full{}, results.Tables(of)), errFull, f)
	}
	require.ErrorIs(t, results.Compare(of[0], of[1], 0).Write(full{}, results.Text), errFull)
}

// outputs are all forms of records, and of the comparison of the first two.
func outputs(t *testing.T, of []results.Record) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, f := range results.Formats() {
		all[string(f)] = rendered(t, f, of)
	}
	c := results.Compare(of[0], of[1], 0.05)
	var text, markdown, object strings.Builder
	require.NoError(t, c.Write(&text, results.Text))
	require.NoError(t, c.Write(&markdown, results.Markdown))
	require.NoError(t, c.Write(&object, results.JSON))
	all["compare"], all["compare.md"], all["compare.json"] = text.String(), markdown.String(), object.String()
	return all
}

// A record may come from anybody, and its texts go to terminals.
func TestNoEscapeSequences(t *testing.T) {
	const evil = "\x1b]0;owned\x07\u009b31m\u202e\x7f"
	of := records(t, "four-methods.jsonl", "two-parts.jsonl", "run-4.json")
	for i := range of {
		h := &of[i].Head
		of[i].File += evil
		if h.Name != "" { // a run has none
			h.Name += evil
		}
		h.Title, h.Scale, h.Version, h.Machine.CPU, h.Machine.Host = h.Title+evil, h.Scale+evil, evil, evil, evil
		for p := range h.Parts {
			part := &h.Parts[p]
			part.Name, part.Title, part.Push = part.Name+evil, part.Title+evil, map[string][]string{"flag" + evil: {evil}}
			if part.Facts != nil {
				part.Facts.Source, part.Facts.Machine, part.Facts.Note = evil, evil, evil
				part.Facts.Points[0].At["method"] += evil
			}
			for a := range part.Axes {
				part.Axes[a].Name += evil
				part.Axes[a].Values[0] += evil
			}
		}
		for e := range of[i].Entries {
			entry := &of[i].Entries[e]
			entry.Error += evil
			for s := range entry.Settings {
				entry.Settings[s].Axis += evil
				entry.Settings[s].Value += evil
			}
			if r := entry.Report; r != nil {
				r.Target.Server, r.Target.URL, r.Plan.Dataset = r.Target.Server+evil+strconv.Itoa(e), evil, evil
				r.Target.Settings["fsync"+evil], r.Plan.Options = evil, map[string]string{"x" + evil: evil}
				r.Timeline.Moments = []report.Moment{{At: 1, Phase: evil}, {At: 2, Phase: evil, Rows: 5}}
				r.Target.Backend, r.BoundBy.Evidence.Ceiling = evil, 1e9
			}
		}
	}
	for name, text := range outputs(t, of) {
		if name == "json" || name == "compare.json" {
			continue // texts are as they are, and escaped
		}
		for _, r := range text {
			require.True(t, unicode.IsPrint(r) || r == '\n', "%s: %U", name, r)
		}
		require.Contains(t, text, "\uFFFD", name)
	}
}

func TestACompareThatCannotTellSaysSo(t *testing.T) {
	of := records(t, "run-8.json", "run-4.json")
	text := outputs(t, of)["compare"]
	require.Contains(t, text, "inconclusive: the run, -35.9 %: 1 and 1 pushes cannot tell any difference from noise: "+
		"at least 5 on either side can\n0 of 1 cases slower by more than 5 %, 0 failed, 1 inconclusive\n")
	of[0].Entries[0].Report.Result.RowsPerSecond = 0
	text = outputs(t, of)["compare"]
	require.NotContains(t, text, "Inf")
	require.Contains(t, text, " - ")
}

// An error is a server's text: it may hold anything.
func TestMarkdownIsNotBrokenByTexts(t *testing.T) {
	of := records(t, "four-methods.jsonl")
	for i := range of[0].Entries {
		if of[0].Entries[i].Status == results.Failed {
			of[0].Entries[i].Error = "a | b\n# c <img src=x> `d` [e](f) \\| *g*"
		}
	}
	text := rendered(t, results.Markdown, of)
	const escaped = "a \\| b # c &lt;img src=x&gt; \\`d\\` \\[e\\](f) \\\\\\| \\*g\\*"
	require.Contains(t, text, ": "+escaped)

	var compared strings.Builder
	before := fixture(t, "four-methods.jsonl")
	for i := range before.Entries {
		if before.Entries[i].Status == results.Failed { // so that the other is measured in one only
			before.Entries[i].Status, before.Entries[i].Report = results.Measured, pushed(1000)
		}
	}
	require.NoError(t, results.Compare(before, of[0], 0).Write(&compared, results.Markdown))
	require.Contains(t, compared.String(), "in the other failed, "+escaped)
}

// What a server says stands below the table, once for all cases that have it.
func TestErrorsStandBelowTheTable(t *testing.T) {
	table := drawn(t)[1]
	for i := range table.Points {
		why := strings.Repeat("the server said much. ", 20) + "END"
		table.Points[i] = results.Point{Settings: table.Points[i].Settings, Status: results.Failed, Error: why}
	}
	for _, f := range []results.Format{results.Text, results.Markdown} {
		text := shown(t, f, table)
		require.Equal(t, 1, strings.Count(text, "END"), f)
	}
}

// What the client can do stands beside what it did, in all forms for people.
func TestCeilingsInOutputs(t *testing.T) {
	table := drawn(t)[1]
	const ceiling = "this client: 572 MiB/s (postgres copy), set.synchronous_commit off, workers 8 reached 60 % of it"
	require.Contains(t, shown(t, results.Text, table), "ceiling           "+ceiling)
	require.Contains(t, shown(t, results.Markdown, table), "- **ceiling** "+strings.ReplaceAll(ceiling, "_", `\_`))
	require.Contains(t, shown(t, results.HTML, table), ">this client: 572 MiB/s (postgres copy)<", "in the drawing")
}

// FuzzShow makes all that reports and comparisons show of whatever is taken for a record: no figure in it ends the
// process. Its seeds are short; -fuzzminimizetime 10x leaves the time to new ones.
func FuzzShow(f *testing.F) {
	run, err := os.ReadFile("testdata/run-4.json")
	require.NoError(f, err)
	f.Add(run)
	head := `{"schema":"terapush.sweep/v1","parts":[{"axes":[{"name":"workers","values":["1","2"]},{"name":"method","values":["a"]}],"cells":2}]}` + "\n"
	entry := func(cell, result, rest string) string {
		return `{"cell":` + cell + `,"status":"measured","settings":[{"axis":"workers","value":"` + cell + `"}],"report":{"result":{` + result + `}` + rest + `}}` + "\n"
	}
	f.Add([]byte(head + entry("0", `"seconds":1,"rows_per_second":-1`, "") + entry("1", `"seconds":1,"rows_per_second":-2`, "")))
	f.Add([]byte(head + entry("0", `"seconds":1e308,"rows_per_second":1e308`, `,"latency":{"batch_seconds":{"max":1e308}}`) +
		entry("1", `"seconds":5e-324,"rows_per_second":0`, `,"timeline":{"moments":[{"at":1e308,"rows":9223372036854775807},{"at":1,"retries":1},{"at":2}]}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := results.From(bytes.NewReader(text))
		if err != nil {
			return
		}
		for range 2 {
			tables := results.Tables([]results.Record{r})
			for _, format := range results.Formats() {
				_ = format.Write(io.Discard, tables) // what has no chart, or no table, is an error
			}
			if len(tables) > 0 {
				require.NoError(t, results.JSON.Write(io.Discard, tables), "JSON has no word for what is no number")
			}
			c := results.Compare(r, r, 0.05)
			require.NoError(t, c.Write(io.Discard, results.Text))
			require.NoError(t, c.Write(io.Discard, results.JSON))
			r = withoutNames(t, r)[0]
		}
	})
}

// On a narrow terminal the last figures are left out, and named; axes, the first figure and failures stay.
func TestNarrowText(t *testing.T) {
	tables := results.Tables(records(t, "four-methods.jsonl"))
	for columns, want := range map[int]string{
		70:  `(?m)^method +batch-rows +rows/s +published rows/s +notes$`,
		110: `(?m)^method +batch-rows +rows/s +published .*overall rows/s +notes$`,
	} {
		var text bytes.Buffer
		require.NoError(t, results.WriteText(&text, tables, columns))
		cells, rest, _ := strings.Cut(text.String(), "\nnot shown ")
		require.Regexp(t, want, cells)
		require.Contains(t, rest, "p50, p99")
		require.Contains(t, cells, " failed\n")
		for line := range strings.Lines(cells) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSpace(line)), columns)
		}
	}
}
