package results_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
)

func everything(t testing.TB) []results.Record {
	return records(t, "four-methods.jsonl", "workers.jsonl", "two-parts.jsonl", "run-4.json", "run-8.json")
}

func TestTheSameRecordsGiveTheSameBytes(t *testing.T) {
	for end, show := range all() {
		first := rendered(t, show, everything(t))
		for range 2 {
			require.Equal(t, first, rendered(t, show, everything(t)), end)
		}
	}
}

func all() map[string]format {
	every := formats()
	every["html"], every["svg"] = results.HTML.Write, results.SVG.Write
	return every
}

func TestNothingIsNoResult(t *testing.T) {
	for end, show := range all() {
		require.ErrorContains(t, show(io.Discard, nil), "there is no table to show", end)
	}
}

type full struct{}

var errFull = errors.New("no space left on device")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestAWriterThatFails(t *testing.T) {
	for end, show := range all() {
		require.ErrorIs(t, show(full{}, results.Tables(records(t, "run-4.json"))), errFull, end)
	}
	c := results.Compare(records(t, "run-4.json")[0], records(t, "run-8.json")[0])
	require.ErrorIs(t, c.Text(full{}, 0), errFull)
	require.ErrorIs(t, c.JSON(full{}, 0), errFull)
}

// A record may come from anybody, and its texts go to terminals.
func TestNoEscapeSequences(t *testing.T) {
	const evil = "\x1b]0;owned\x07\u009b31m\u202e\x7f"
	of := records(t, "four-methods.jsonl", "run-4.json", "workers.jsonl")
	for i := range of {
		h := &of[i].Head
		of[i].File += evil
		if i != 1 {
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
			}
		}
	}
	c := results.Compare(of[0], of[2])
	outputs := map[string]func(io.Writer) error{"compare": func(w io.Writer) error { return c.Text(w, 0.05) }}
	outputs["compare runs"] = func(w io.Writer) error { return results.Compare(of[1], of[1]).Text(w, 0.05) }
	for end, show := range all() {
		if end != "json" { // where texts are as they are, and escaped
			outputs[end] = func(w io.Writer) error { return show(w, results.Tables(of)) }
		}
	}
	for end, show := range outputs {
		var b bytes.Buffer
		require.NoError(t, show(&b))
		for _, r := range b.String() {
			require.True(t, unicode.IsPrint(r) || r == '\n', "%s: %U", end, r)
		}
		require.Contains(t, b.String(), "\uFFFD", end)
	}
}

func TestACompareThatCannotTellSaysSo(t *testing.T) {
	of := records(t, "run-8.json", "run-4.json")
	var b bytes.Buffer
	require.NoError(t, results.Compare(of[0], of[1]).Text(&b, 0.05))
	require.Contains(t, b.String(), "slower by more than 5 %: the run, -35.9 %; too few repeats to tell noise, so it counts as slower\n"+
		"1 of 1 cells slower by more than 5 %, 0 failed; 1 of the slower may be noise: 5 pushes on either side would tell\n")
	of[0].Entries[0].Report.Result.RowsPerSecond = 0
	b.Reset()
	require.NoError(t, results.Compare(of[0], of[1]).Text(&b, 0.05))
	require.NotContains(t, b.String(), "Inf")
	require.Contains(t, b.String(), " - ")
}

func TestAZeroIsALineOfBenchstats(t *testing.T) {
	of := records(t, "run-4.json")
	of[0].Entries[0].Report.Result.RowsPerSecond = 0
	require.Contains(t, rendered(t, results.Benchmarks.Write, of), " 0 rows/s ")
	require.NotContains(t, rendered(t, results.Benchmarks.Write, of), "visible-sec", "which was not measured")
}

// An error is a server's text: it may hold anything.
func TestMarkdownIsNotBrokenByTexts(t *testing.T) {
	of := records(t, "four-methods.jsonl")
	for i := range of[0].Entries {
		if of[0].Entries[i].Status == results.Failed {
			of[0].Entries[i].Error = "a | b\n# c <img src=x> `d` [e](f) \\| *g*"
		}
	}
	text := rendered(t, results.Markdown.Write, of)
	require.Contains(t, text, "failed: a \\| b # c &lt;img src=x&gt; \\`d\\` \\[e\\](f) \\\\\\| \\*g\\*")
	bar := regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*\|`)
	columns := 0
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "| method |") && columns == 0 {
			continue
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		n := len(bar.FindAllString(line, -1))
		require.True(t, columns == 0 || n == columns, line)
		columns = n
	}
	require.Positive(t, columns)
}

func TestCompareGolden(t *testing.T) {
	for name, files := range map[string][2]string{
		"compare-workers":      {"workers.jsonl", "workers-after.jsonl"},
		"compare-same":         {"workers.jsonl", "workers.jsonl"},
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
		c := results.Compare(of[0], of[1])
		var text, object bytes.Buffer
		require.NoError(t, c.Text(&text, 0.05))
		golden(t, name+".txt", text.String())
		require.NoError(t, c.JSON(&object, 0.05))
		if name == "compare-runs" {
			golden(t, name+".json", object.String())
		}
		require.NotContains(t, object.String(), "null", name)
	}
}

// What names somebody is in the fixtures: none of it may be in any output.
func TestRedactedOutputs(t *testing.T) {
	of := everything(t)
	for end, show := range all() {
		require.Contains(t, rendered(t, show, of), "4", end)
	}
	results.Redact(of)
	c := results.Compare(of[0], of[1])
	outputs := map[string]func(io.Writer) error{
		"compare":      func(w io.Writer) error { return c.Text(w, 0.05) },
		"compare.json": func(w io.Writer) error { return c.JSON(w, 0.05) },
	}
	for end, show := range all() {
		outputs[end] = func(w io.Writer) error { return show(w, results.Tables(of)) }
	}
	for end, show := range outputs {
		var b bytes.Buffer
		require.NoError(t, show(&b))
		for _, name := range []string{"anna", "db1", "shop", "orders", "sales", "archive", "10.1.2.3"} {
			require.NotContains(t, b.String(), name, end)
		}
	}
}

// FuzzShow makes all that reports and comparisons show of whatever is taken for a record: no figure in it ends the process.
// Its seeds are short; -fuzzminimizetime 10x leaves the time to new ones.
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
			for _, show := range []func(io.Writer, []results.Table) error{
				results.Text.Write, results.Markdown.Write, results.JSON.Write, results.CSV.Write, results.Benchmarks.Write, results.HTML.Write, results.SVG.Write,
			} {
				_ = show(io.Discard, tables) // what has no chart, or no table, is an error
			}
			require.NoError(t, results.Compare(r, r).Text(io.Discard, 0.05))
			results.Redact([]results.Record{r})
		}
	})
}
